package talos

import (
	"context"
	"encoding/json"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"bastide/internal/outcome"
)

// FuzzPatch: no patch makes rendering panic or hang; each is taken or refused,
// and a refusal names the file and shows no secret.
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{"machine: {sysctls: {a: b}}", "cluster: {apiServer: {apiServer: {}}}", "kind: X", "- a", "machine: &a {x: *a}", "? [a]\n: b", "$patch: delete", "",
		"machine: {sysctls: {a: b}}\n---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n$patch: delete\n", "---\n---\n", "machine: ~\ncluster: ~\n", "version: v1alpha2\n",
		"machine: {kubelet: {nodeIP: {validSubnets: ['!']}}}", "cluster: {etcd: {advertisedSubnets: [~]}}", "cluster: {controlPlane: ~, network: ~, discovery: ~}", "machine: {network: {interfaces: [{interface: eth0, dhcp: false}]}}",
		"machine: {files: [{content: x, path: /a, permissions: 0o600, op: create}]}", "apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n", "{\"machine\": {\"type\": \"worker\"}}", "machine: {install: ~, ca: ~}\n",
	} {
		f.Add([]byte(seed))
	}
	e := testEstate(f)
	r, err := NewRenderer(e, bundle(f))
	if err != nil {
		f.Fatal(err)
	}
	n := nodeNamed(e, "staging-cp-1")
	e.Talos.Patches.All = []string{"p.yaml"}
	a := testAddresses(e)
	a.Gateway = netip.MustParseAddr("203.0.113.7")
	f.Fuzz(func(t *testing.T, patch []byte) {
		err := r.files.addPatch("p.yaml", patch)
		if err == nil {
			_, err = r.Node(n, a)
		}
		if err == nil {
			return
		}
		if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), "p.yaml") && !strings.Contains(err.Error(), n.Name) {
			t.Fatalf("patch %q: %v is no refusal that names the file", patch, err)
		}
		for _, s := range bundle(t).Secrets() {
			if strings.Contains(err.Error(), s.Reveal()) {
				t.Fatal("the refusal shows a secret")
			}
		}
	})
}

// teller is a node that answers with whatever it was given.
type teller struct {
	machine.MachineServiceClient
	services *machine.ServiceListResponse
	status   *machine.EtcdStatusResponse
	members  *machine.EtcdMemberListResponse
	alarms   *machine.EtcdAlarmListResponse
	version  *machine.VersionResponse
	files    *machine.FileInfo
}

func (a *teller) ServiceList(context.Context, *emptypb.Empty, ...grpc.CallOption) (*machine.ServiceListResponse, error) {
	return a.services, nil
}
func (a *teller) EtcdStatus(context.Context, *emptypb.Empty, ...grpc.CallOption) (*machine.EtcdStatusResponse, error) {
	return a.status, nil
}
func (a *teller) EtcdMemberList(context.Context, *machine.EtcdMemberListRequest, ...grpc.CallOption) (*machine.EtcdMemberListResponse, error) {
	return a.members, nil
}
func (a *teller) EtcdAlarmList(context.Context, *emptypb.Empty, ...grpc.CallOption) (*machine.EtcdAlarmListResponse, error) {
	return a.alarms, nil
}
func (a *teller) Version(context.Context, *emptypb.Empty, ...grpc.CallOption) (*machine.VersionResponse, error) {
	return a.version, nil
}
func (a *teller) List(context.Context, *machine.ListRequest, ...grpc.CallOption) (machine.MachineService_ListClient, error) {
	return &listing{next: a.files}, nil
}

type listing struct {
	grpc.ClientStream
	next *machine.FileInfo
}

func (l *listing) Recv() (*machine.FileInfo, error) {
	if l.next == nil {
		return nil, io.EOF
	}
	out := l.next
	l.next = nil
	return out, nil
}

// FuzzNodeAnswers: whatever a node answers, in the protocol's own bytes, reading
// it does not panic, and what is read never makes a Bootstrap safe that is not.
func FuzzNodeAnswers(f *testing.F) {
	wire := func(m proto.Message) []byte {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	etcd := func(state string) []byte {
		return wire(&machine.ServiceListResponse{Messages: []*machine.ServiceList{{Services: []*machine.ServiceInfo{{Id: "etcd", State: state}}}}})
	}
	member := wire(&machine.EtcdMemberListResponse{Messages: []*machine.EtcdMembers{{Members: []*machine.EtcdMember{{Id: 7, Hostname: "staging-cp-1"}, {Hostname: ""}, {Id: 7}}}}})
	status := wire(&machine.EtcdStatusResponse{Messages: []*machine.EtcdStatus{{MemberStatus: &machine.EtcdMemberStatus{MemberId: 7, Leader: 7}}, {}}})
	alarm := wire(&machine.EtcdAlarmListResponse{Messages: []*machine.EtcdAlarm{{MemberAlarms: []*machine.EtcdMemberAlarm{{MemberId: 7, Alarm: 99}}}}})
	f.Add([]byte{}, []byte{}, []byte{}, []byte{}, []byte{}, []byte{})
	f.Add(etcd("Running"), status, member, alarm, wire(&machine.VersionResponse{Messages: []*machine.Version{{}}}), []byte{})
	f.Add(etcd("Running"), []byte{}, []byte{}, []byte{}, wire(&machine.VersionResponse{}), []byte{})
	f.Add(etcd("Running"), wire(&machine.EtcdStatusResponse{Messages: []*machine.EtcdStatus{{}}}), member, []byte{}, []byte{}, []byte{})
	f.Add(etcd("Preparing"), []byte{}, []byte{}, []byte{}, []byte{}, wire(&machine.FileInfo{RelativeName: "member"}))
	f.Add(etcd("Preparing"), []byte{}, []byte{}, []byte{}, []byte{}, wire(&machine.FileInfo{Error: "no such file"}))
	f.Add(wire(&machine.ServiceListResponse{Messages: []*machine.ServiceList{{Services: []*machine.ServiceInfo{{Id: "etcd", Events: &machine.ServiceEvents{Events: []*machine.ServiceEvent{{}}}}}}}}), status, member, alarm, []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, services, status, members, alarms, version, files []byte) {
		a := &teller{services: &machine.ServiceListResponse{}, status: &machine.EtcdStatusResponse{}, members: &machine.EtcdMemberListResponse{}, alarms: &machine.EtcdAlarmListResponse{},
			version: &machine.VersionResponse{}, files: &machine.FileInfo{}}
		for text, m := range map[*[]byte]proto.Message{&services: a.services, &status: a.status, &members: a.members, &alarms: a.alarms, &version: a.version, &files: a.files} {
			if proto.Unmarshal(*text, m) != nil {
				return // the library refuses it before anything is read
			}
		}
		if len(files) == 0 {
			a.files = nil
		}
		s := &session{machine: a, limits: Limits{Call: time.Minute}, clean: func(err error) error { return err }}
		node := EtcdNode{Node: "staging-cp-1"}
		s.etcd(t.Context(), &node)
		if v, err := s.version(t.Context()); err == nil && v == "" && len(a.version.GetMessages()) == 0 {
			t.Fatal("an answer without a version was taken for one")
		}
		h := EtcdHealth{Nodes: []EtcdNode{node, {Node: "staging-cp-2", MemberID: 1, Members: []EtcdMember{{ID: 1, Name: "staging-cp-2"}}}}}
		h.Members, h.Split = membership(h.Nodes)
		_, _ = h.Describe(), h.Voters()
		_ = h.Assumed()
		if node.empty && (len(node.Members) > 0 || node.MemberID != 0 || !slices.ContainsFunc([]string{"Preparing", "Waiting", "Initialized"}, func(w string) bool { return strings.HasPrefix(node.Service, w) })) {
			t.Fatalf("taken for a node that never had an etcd: %+v", node)
		}
		if node.empty && a.files.GetRelativeName() != "" && a.files.GetRelativeName() != "." {
			t.Fatalf("its data directory holds %q and it is taken for empty", a.files.GetRelativeName())
		}
		for _, m := range h.Members {
			if m.Healthy && m.ID == 0 {
				t.Fatalf("a member without an ID counts as healthy: %+v", m)
			}
		}
	})
}

// FuzzReadBack: the configuration that a node says it has can be anything.
func FuzzReadBack(f *testing.F) {
	c, err := render(f, testEstate(f), "staging-cp-1")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.Bytes())
	f.Add(c.Bytes()[:len(c.Bytes())/2])
	f.Add([]byte("machine: {}\n"))
	f.Add([]byte("machine: ~\n---\n---\nkind: X\n"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		if _, err := Digest(text); err != nil {
			return
		}
		_, _ = Compare(text, c.Bytes())
		_, _ = Compare(c.Bytes(), text)
	})
}

// FuzzKubernetesNodes: a Kubernetes API that answers strangely.
func FuzzKubernetesNodes(f *testing.F) {
	for _, seed := range []string{`{"items":[null]}`, `{"items":[{"metadata":{"name":"a","labels":null},"status":{"conditions":[null,{"type":"Ready","status":"True"}],"addresses":[null]}}],"metadata":{"continue":"x"}}`,
		`{}`, `[]`, `{"items":{}}`, `{"items":[{"metadata":null,"spec":null,"status":null}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, body []byte) {
		var page nodeList
		if json.Unmarshal(body, &page) != nil {
			return
		}
		for _, item := range page.Items {
			_ = item.node()
		}
	})
}
