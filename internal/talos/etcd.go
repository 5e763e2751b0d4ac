package talos

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/emptypb"

	"bastide/internal/estate"
	"bastide/internal/quorum"
)

// EtcdNode is what one control plane node says of etcd. It is asked itself,
// never through another node.
type EtcdNode struct {
	Node    string
	Service string // state of its etcd service, and the last thing it said
	Problem string // why it could not be asked, or does not answer

	MemberID uint64
	Leader   bool
	Learner  bool
	Stranded bool  // a learner that Talos does not promote any more
	DBSize   int64 // bytes
	DBInUse  int64 // bytes
	Version  string
	Errors   []string
	Alarms   []string
	Members  []EtcdMember // the membership in its own eyes

	empty bool // certain: it has never been part of any etcd cluster
}

// State says in words how etcd is on the node: what is wrong, the state of its
// service, and the last thing that it said.
func (n EtcdNode) State() string {
	switch {
	case n.Problem != "" && n.Service != "":
		return n.Problem + ", service " + n.Service
	case n.Problem != "":
		return n.Problem
	case n.Learner:
		return "a learner, service " + n.Service
	}
	return "service " + n.Service
}

// EtcdMember is one entry of a member list.
type EtcdMember struct {
	ID      uint64
	Name    string     // empty until it first started
	Peer    netip.Addr // where the other members reach it
	Learner bool
}

// EtcdHealth is all that the control plane nodes say of etcd, asked at one time.
type EtcdHealth struct {
	Nodes   []EtcdNode // in the order of the estate
	Members quorum.Members
	// Split names what the nodes disagree on; empty when there is one cluster.
	Split string
}

// Bootstrapped says whether any node is part of an etcd cluster.
func (h EtcdHealth) Bootstrapped() bool {
	return slices.ContainsFunc(h.Nodes, func(n EtcdNode) bool { return n.MemberID != 0 || len(n.Members) > 0 })
}

// Voters are the names of the voting members, sorted.
func (h EtcdHealth) Voters() []string {
	var out []string
	for _, m := range h.Members {
		if m.Voter {
			out = append(out, m.Name)
		}
	}
	slices.Sort(out)
	return out
}

// unlisted says whether etcd runs somewhere and no member list could be read.
func (h EtcdHealth) unlisted() bool { return h.Bootstrapped() && len(h.Members) == 0 }

// Assumed is the membership that the file asks for, with what the nodes
// themselves say of their health, for when no member list can be read.
func (h EtcdHealth) Assumed() quorum.Members {
	var out quorum.Members
	for _, n := range h.Nodes {
		out = append(out, quorum.Member{ID: n.MemberID, Name: n.Node, Voter: true, Leader: n.Leader,
			Healthy: n.MemberID != 0 && n.Problem == "" && len(n.Errors) == 0, Note: n.Problem})
	}
	return out
}

// untouched says whether it is certain of every node that etcd never ran on
// it. Anything less, a node that does not answer included, is no.
func (h EtcdHealth) untouched() bool {
	return !slices.ContainsFunc(h.Nodes, func(n EtcdNode) bool { return !n.empty })
}

// Describe says in one line per node why etcd is not as it should be.
func (h EtcdHealth) Describe() string {
	var lines []string
	for _, n := range h.Nodes {
		text := n.Node + ": etcd service " + n.Service
		if n.Problem != "" {
			text = n.Node + ": " + n.Problem
			if n.Service != "" {
				text += "; etcd service " + n.Service
			}
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// EtcdHealth asks every control plane node, all at once; those that the cloud
// says are off are named, and are not waited for.
func (c *Cluster) EtcdHealth(ctx context.Context, off ...string) EtcdHealth {
	nodes := c.controlPlaneNodes()
	h := EtcdHealth{Nodes: make([]EtcdNode, len(nodes))}
	var wg sync.WaitGroup
	for i, n := range nodes {
		if slices.Contains(off, n.Name) {
			h.Nodes[i] = EtcdNode{Node: n.Name, Problem: machineOff}
			continue
		}
		wg.Go(func() { h.Nodes[i] = c.askEtcd(ctx, n) })
	}
	wg.Wait()
	h.Members, h.Split = membership(h.Nodes)
	return h
}

func (c *Cluster) askEtcd(ctx context.Context, n estate.Node) EtcdNode {
	out := EtcdNode{Node: n.Name}
	seen, s, err := c.visit(ctx, n)
	switch seen.state {
	case Ours:
	case Maintenance:
		// It has no configuration. Its disk may yet hold an old cluster's data,
		// but a node in maintenance cannot be told to bootstrap.
		out.Problem = "it is in maintenance mode"
		return out
	case Foreign:
		out.Problem = "it belongs to another cluster, " + seen.fingerprint
		return out
	default:
		out.Problem = "its Talos API does not answer: " + seen.why
		return out
	}
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	defer s.close()
	s.etcd(ctx, &out)
	return out
}

// etcd fills in what a node says.
func (s *session) etcd(ctx context.Context, out *EtcdNode) {
	v, err := s.service(ctx, "etcd")
	if err != nil {
		out.Problem = "its services could not be read: " + err.Error()
		return
	}
	out.Service = v.String()
	if v.state != "Running" {
		// A stopped etcd has no members to tell. Whether it ever had is
		// written on its disk.
		out.Problem = "etcd does not run"
		out.empty = waiting(v.state) && s.neverRan(ctx)
		return
	}
	var status, alarms, members error
	var all sync.WaitGroup
	all.Go(func() { status = s.etcdStatus(ctx, out) })
	var raised []alarm
	all.Go(func() { raised, alarms = s.alarms(ctx) })
	var listed []EtcdMember
	all.Go(func() { listed, members = s.members(ctx) })
	all.Wait()
	switch {
	case status != nil:
		out.Problem = "etcd's status could not be read: " + status.Error()
		return
	case out.Learner: // tells its status but answers no other question
		out.Members = listed
	case alarms != nil:
		out.Problem = "etcd's status could not be read: alarms: " + alarms.Error()
		return
	case members != nil:
		out.Problem = "etcd does not answer: " + members.Error()
		return
	default:
		out.Members = listed
		for _, a := range raised {
			if a.member == out.MemberID {
				out.Alarms = append(out.Alarms, a.name)
			}
		}
	}
	if out.Stranded = out.Learner && s.restartedSinceJoining(ctx); out.Stranded {
		out.Problem = "a learner that is not promoted any more, because the node restarted since it joined"
		return
	}
	if len(out.Errors) > 0 {
		out.Problem = strings.Join(out.Errors, "; ")
	}
}

// waiting says whether a service has not yet started its process.
func waiting(state string) bool {
	return slices.Contains([]string{"Preparing", "Waiting", "Initialized"}, state)
}

func (s *session) members(ctx context.Context) ([]EtcdMember, error) {
	list, err := read(ctx, s, func(ctx context.Context) (*machine.EtcdMemberListResponse, error) {
		return s.machine.EtcdMemberList(ctx, &machine.EtcdMemberListRequest{QueryLocal: true})
	})
	if err != nil {
		return nil, err
	}
	var out []EtcdMember
	for _, m := range list.GetMessages() {
		for _, e := range m.GetMembers() {
			out = append(out, EtcdMember{ID: e.GetId(), Name: e.GetHostname(), Peer: peer(e.GetPeerUrls()), Learner: e.GetIsLearner()})
		}
	}
	if len(out) == 0 {
		return nil, errors.New("it lists no members")
	}
	return out, nil
}

func (s *session) etcdStatus(ctx context.Context, out *EtcdNode) error {
	st, err := read(ctx, s, func(ctx context.Context) (*machine.EtcdStatusResponse, error) {
		return s.machine.EtcdStatus(ctx, &emptypb.Empty{})
	})
	if err != nil {
		return err
	}
	for _, m := range st.GetMessages() {
		v := m.GetMemberStatus()
		out.MemberID, out.Learner, out.Version = v.GetMemberId(), v.GetIsLearner(), v.GetProtocolVersion()
		out.DBSize, out.DBInUse, out.Errors = v.GetDbSize(), v.GetDbSizeInUse(), v.GetErrors()
		out.Leader = v.GetLeader() == v.GetMemberId() && v.GetLeader() != 0
		if v.GetLeader() == 0 {
			out.Errors = append(out.Errors, "it sees no leader")
		}
	}
	return nil
}

// alarm is one that a member has raised.
type alarm struct {
	member uint64
	name   string
}

func (s *session) alarms(ctx context.Context) ([]alarm, error) {
	list, err := read(ctx, s, func(ctx context.Context) (*machine.EtcdAlarmListResponse, error) {
		return s.machine.EtcdAlarmList(ctx, &emptypb.Empty{})
	})
	if err != nil {
		return nil, err
	}
	var out []alarm
	for _, m := range list.GetMessages() {
		for _, a := range m.GetMemberAlarms() {
			if a.GetAlarm() != machine.EtcdMemberAlarm_NONE {
				out = append(out, alarm{a.GetMemberId(), a.GetAlarm().String()})
			}
		}
	}
	return out, nil
}
