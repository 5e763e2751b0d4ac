package talos

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// fakeEtcd is a cluster by its members.
type fakeEtcd struct {
	members []*fakeNode
	added   []*machine.EtcdMember // and not started
}

func (n *fakeNode) Bootstrap(context.Context, *machine.BootstrapRequest) (*machine.BootstrapResponse, error) {
	f := n.farm
	f.mu.Lock()
	defer f.mu.Unlock()
	n.did("Bootstrap")
	if n.cluster != "" {
		return nil, status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	}
	n.join(n.name)
	return &machine.BootstrapResponse{}, nil
}

// join makes a node a voter of the cluster that is named after its first member.
func (n *fakeNode) join(cluster string) {
	f := n.farm
	if f.clusters[cluster] == nil {
		f.clusters[cluster] = &fakeEtcd{}
	}
	n.cluster, n.etcd, n.stage, n.joined = cluster, "Running", runtime.MachineStageRunning, time.Now()
	f.clusters[cluster].members = append(f.clusters[cluster].members, n)
}

// leave makes a node forget its etcd, as a reboot that loses it does.
func (n *fakeNode) leave() {
	if c := n.farm.clusters[n.cluster]; c != nil {
		if c.members = slices.DeleteFunc(c.members, func(m *fakeNode) bool { return m == n }); len(c.members) == 0 {
			delete(n.farm.clusters, n.cluster)
		}
	}
	n.cluster, n.etcd, n.learner = "", "Preparing", false
}

// live lets the others join, one learner at a time, as they are looked at.
func (n *fakeNode) live() {
	if n.etcd != "Preparing" && !n.learner || n.stuck {
		return
	}
	if n.learner {
		if n.learnFor > 0 {
			n.learnFor--
		} else if n.learnFor == 0 {
			n.learner = false
		}
		return
	}
	for name, c := range n.farm.clusters {
		if slices.ContainsFunc(c.members, func(m *fakeNode) bool { return m.learner }) {
			return
		}
		n.join(name)
		n.learner = true
		return
	}
}

func (n *fakeNode) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	f := n.farm
	f.mu.Lock()
	defer f.mu.Unlock()
	n.live()
	list := &machine.ServiceList{}
	if n.etcd != "" {
		list.Services = append(list.Services, &machine.ServiceInfo{Id: "etcd", State: n.etcd, Health: &machine.ServiceHealth{Healthy: n.etcd == "Running", LastMessage: n.message},
			Events: &machine.ServiceEvents{Events: []*machine.ServiceEvent{{Msg: "Running pre state", State: n.etcd}}}})
	}
	return &machine.ServiceListResponse{Messages: []*machine.ServiceList{list}}, nil
}

func (n *fakeNode) EtcdMemberList(context.Context, *machine.EtcdMemberListRequest) (*machine.EtcdMemberListResponse, error) {
	f := n.farm
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.etcd != "Running" || n.learner {
		return nil, status.Error(codes.Unavailable, "etcdserver: rpc not supported for learner")
	}
	out := &machine.EtcdMembers{}
	members := f.clusters[n.cluster].members
	if n.sees > 0 {
		members = members[:n.sees]
	}
	for _, m := range members {
		out.Members = append(out.Members, &machine.EtcdMember{Id: m.id, Hostname: m.name, IsLearner: m.learner})
	}
	out.Members = append(out.Members, f.clusters[n.cluster].added...)
	return &machine.EtcdMemberListResponse{Messages: []*machine.EtcdMembers{out}}, nil
}

func (n *fakeNode) EtcdStatus(context.Context, *emptypb.Empty) (*machine.EtcdStatusResponse, error) {
	f := n.farm
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.etcd != "Running" {
		return nil, status.Error(codes.Unavailable, "connection refused")
	}
	st := &machine.EtcdMemberStatus{MemberId: n.id, Leader: f.clusters[n.cluster].members[0].id, IsLearner: n.learner, DbSize: 4096}
	if n.sick != "" {
		st.Errors = []string{n.sick}
	}
	return &machine.EtcdStatusResponse{Messages: []*machine.EtcdStatus{{MemberStatus: st}}}, nil
}

func (n *fakeNode) EtcdAlarmList(context.Context, *emptypb.Empty) (*machine.EtcdAlarmListResponse, error) {
	f := n.farm
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &machine.EtcdAlarm{}
	if n.alarm != machine.EtcdMemberAlarm_NONE {
		out.MemberAlarms = []*machine.EtcdMemberAlarm{{MemberId: n.id, Alarm: n.alarm}}
	}
	return &machine.EtcdAlarmListResponse{Messages: []*machine.EtcdAlarm{out}}, nil
}

func (n *fakeNode) List(_ *machine.ListRequest, stream machine.MachineService_ListServer) error {
	n.farm.mu.Lock()
	data, joined := n.cluster != "", n.joined
	n.farm.mu.Unlock()
	if !data {
		return errors.New("lstat /var/lib/etcd: no such file or directory")
	}
	return stream.Send(&machine.FileInfo{RelativeName: "member/snap/1.snap", Modified: joined.Unix()})
}
