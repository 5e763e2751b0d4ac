package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Bootstrap makes a new etcd cluster of this node, if it has no data.
func (a *talosAPI) Bootstrap(ctx context.Context, in *machine.BootstrapRequest) (*machine.BootstrapResponse, error) {
	n := a.node
	n.mu.Lock()
	criUp := n.criUp
	n.mu.Unlock()
	if !criUp {
		return nil, status.Error(codes.FailedPrecondition, "bootstrap is not available yet")
	}
	if err := n.controlPlaneOnly("bootstrap"); err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(ctx, n.farm.opt.Clock.Scale(5*time.Second)+shortestPoll)
	defer cancel()
	if !n.awaitTime(limit) {
		return nil, status.Error(codes.FailedPrecondition, "time is not in sync yet")
	}
	if !n.etcd.empty() {
		return nil, status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	}
	if in.RecoverEtcd {
		if _, err := os.Stat(n.varPath("etcd.snapshot")); err != nil {
			return nil, fmt.Errorf("error verifying snapshot: %w", err)
		}
	}
	n.console.printf("bootstrap request received")
	n.etcd.begin(in.RecoverEtcd, in.RecoverSkipHashCheck)
	return &machine.BootstrapResponse{Messages: []*machine.Bootstrap{{}}}, nil
}

// withEtcd calls f with a client of the local member, or of all.
func (n *node) withEtcd(ctx context.Context, api string, local bool, f func(context.Context, *clientv3.Client) error) error {
	if err := n.controlPlaneOnly(api); err != nil {
		return err
	}
	connect := n.etcdCluster
	if local {
		connect = n.etcdLocal
	}
	c, err := connect(ctx)
	if err != nil {
		return fmt.Errorf("failed to create etcd client: %w", err)
	}
	defer c.Close()
	return f(ctx, c)
}

func (a *talosAPI) EtcdMemberList(ctx context.Context, in *machine.EtcdMemberListRequest) (*machine.EtcdMemberListResponse, error) {
	out := &machine.EtcdMembers{}
	err := a.node.withEtcd(ctx, "member list", in.QueryLocal, func(ctx context.Context, c *clientv3.Client) error {
		resp, err := c.MemberList(clientv3.WithRequireLeader(ctx))
		if err != nil {
			return err
		}
		for _, m := range resp.Members {
			out.LegacyMembers = append(out.LegacyMembers, m.Name)
			out.Members = append(out.Members, &machine.EtcdMember{Id: m.ID, Hostname: m.Name, PeerUrls: m.PeerURLs, ClientUrls: m.ClientURLs, IsLearner: m.IsLearner})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &machine.EtcdMemberListResponse{Messages: []*machine.EtcdMembers{out}}, nil
}

func (a *talosAPI) EtcdStatus(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdStatusResponse, error) {
	var out *machine.EtcdMemberStatus
	err := a.node.withEtcd(ctx, "etcd status", true, func(ctx context.Context, c *clientv3.Client) error {
		r, err := c.Status(ctx, c.Endpoints()[0])
		if err != nil {
			return fmt.Errorf("failed to query etcd status: %w", err)
		}
		out = &machine.EtcdMemberStatus{
			MemberId: r.Header.MemberId, ProtocolVersion: r.Version, StorageVersion: r.StorageVersion, DbSize: r.DbSize, DbSizeInUse: r.DbSizeInUse,
			Leader: r.Leader, RaftIndex: r.RaftIndex, RaftTerm: r.RaftTerm, RaftAppliedIndex: r.RaftAppliedIndex, Errors: r.Errors, IsLearner: r.IsLearner,
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &machine.EtcdStatusResponse{Messages: []*machine.EtcdStatus{{MemberStatus: out}}}, nil
}

func (a *talosAPI) EtcdRemoveMemberByID(ctx context.Context, in *machine.EtcdRemoveMemberByIDRequest) (*machine.EtcdRemoveMemberByIDResponse, error) {
	err := a.node.withEtcd(ctx, "etcd remove member", false, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.MemberRemove(clientv3.WithRequireLeader(ctx), in.MemberId)
		if errors.Is(err, rpctypes.ErrMemberNotFound) {
			return status.Error(codes.NotFound, err.Error())
		}
		if err != nil {
			return fmt.Errorf("failed to remove member: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &machine.EtcdRemoveMemberByIDResponse{Messages: []*machine.EtcdRemoveMemberByID{{}}}, nil
}

func (a *talosAPI) EtcdLeaveCluster(ctx context.Context, _ *machine.EtcdLeaveClusterRequest) (*machine.EtcdLeaveClusterResponse, error) {
	if err := a.node.controlPlaneOnly("etcd leave"); err != nil {
		return nil, err
	}
	if err := a.node.etcd.leave(ctx); err != nil {
		return nil, err
	}
	return &machine.EtcdLeaveClusterResponse{Messages: []*machine.EtcdLeaveCluster{{}}}, nil
}

func (a *talosAPI) EtcdForfeitLeadership(ctx context.Context, _ *machine.EtcdForfeitLeadershipRequest) (*machine.EtcdForfeitLeadershipResponse, error) {
	out := &machine.EtcdForfeitLeadership{}
	err := a.node.withEtcd(ctx, "etcd forfeit leadership", true, func(ctx context.Context, c *clientv3.Client) error {
		st, err := c.Status(ctx, c.Endpoints()[0])
		if err != nil {
			return err
		}
		if st.Leader != st.Header.MemberId {
			return nil
		}
		list, err := c.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range list.Members {
			if m.ID == st.Header.MemberId || m.IsLearner {
				continue
			}
			if _, err := c.MoveLeader(ctx, m.ID); err != nil {
				return fmt.Errorf("failed to forfeit leadership: %w", err)
			}
			out.Member = m.Name
			return nil
		}
		return errors.New("failed to forfeit leadership: cannot find next leader")
	})
	if err != nil {
		return nil, err
	}
	return &machine.EtcdForfeitLeadershipResponse{Messages: []*machine.EtcdForfeitLeadership{out}}, nil
}

// EtcdSnapshot streams a snapshot of the local member.
func (a *talosAPI) EtcdSnapshot(_ *machine.EtcdSnapshotRequest, s grpc.ServerStreamingServer[common.Data]) error {
	return a.node.withEtcd(s.Context(), "etcd snapshot", true, func(ctx context.Context, c *clientv3.Client) error {
		r, err := c.Snapshot(ctx)
		if err != nil {
			return fmt.Errorf("failed reading etcd snapshot: %w", err)
		}
		defer r.Close()
		buf := make([]byte, 1024)
		for {
			k, err := r.Read(buf)
			if k > 0 {
				if err := s.Send(&common.Data{Bytes: append([]byte(nil), buf[:k]...)}); err != nil {
					return err
				}
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
}

// EtcdRecover takes a snapshot for a Bootstrap that recovers from it.
func (a *talosAPI) EtcdRecover(s grpc.ClientStreamingServer[common.Data, machine.EtcdRecoverResponse]) error {
	n := a.node
	if n.varPath("etcd.snapshot") == "" {
		return status.Error(codes.FailedPrecondition, "etcd service is not ready for recovery yet")
	}
	if err := n.controlPlaneOnly("etcd recover"); err != nil {
		return err
	}
	f, err := os.OpenFile(n.varPath("etcd.snapshot"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("error creating etcd recovery snapshot: %w", err)
	}
	defer f.Close()
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			_, err = f.Write(m.Bytes)
		}
		if err != nil {
			_ = os.Remove(f.Name())
			return err
		}
	}
	return s.SendAndClose(&machine.EtcdRecoverResponse{Messages: []*machine.EtcdRecover{{}}})
}

func (a *talosAPI) EtcdAlarmList(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdAlarmListResponse, error) {
	var out []*machine.EtcdMemberAlarm
	err := a.node.withEtcd(ctx, "etcd alarm list", true, func(ctx context.Context, c *clientv3.Client) error {
		r, err := c.AlarmList(ctx)
		if err != nil {
			return fmt.Errorf("failed to list etcd alarms: %w", err)
		}
		out = alarms(r.Alarms)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &machine.EtcdAlarmListResponse{Messages: []*machine.EtcdAlarm{{MemberAlarms: out}}}, nil
}

func (a *talosAPI) EtcdAlarmDisarm(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdAlarmDisarmResponse, error) {
	var out []*machine.EtcdMemberAlarm
	err := a.node.withEtcd(ctx, "etcd alarm disarm", true, func(ctx context.Context, c *clientv3.Client) error {
		r, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
		if err != nil {
			return fmt.Errorf("failed to disarm etcd alarm: %w", err)
		}
		out = alarms(r.Alarms)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &machine.EtcdAlarmDisarmResponse{Messages: []*machine.EtcdAlarmDisarm{{MemberAlarms: out}}}, nil
}

func (a *talosAPI) EtcdDefragment(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdDefragmentResponse, error) {
	err := a.node.withEtcd(ctx, "etcd defragment", true, func(ctx context.Context, c *clientv3.Client) error {
		if _, err := c.Defragment(ctx, c.Endpoints()[0]); err != nil {
			return fmt.Errorf("failed to defragment etcd: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &machine.EtcdDefragmentResponse{Messages: []*machine.EtcdDefragment{{}}}, nil
}

func alarms(in []*etcdserverpb.AlarmMember) []*machine.EtcdMemberAlarm {
	var out []*machine.EtcdMemberAlarm
	for _, al := range in {
		kind := machine.EtcdMemberAlarm_NONE
		switch al.Alarm {
		case etcdserverpb.AlarmType_NOSPACE:
			kind = machine.EtcdMemberAlarm_NOSPACE
		case etcdserverpb.AlarmType_CORRUPT:
			kind = machine.EtcdMemberAlarm_CORRUPT
		}
		out = append(out, &machine.EtcdMemberAlarm{MemberId: al.MemberID, Alarm: kind})
	}
	return out
}
