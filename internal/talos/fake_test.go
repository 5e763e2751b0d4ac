package talos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/plan"
	"bastide/internal/vault"
)

// The fake nodes of the fake_ files answer with the machinery's own protocol over
// real TLS, and model just enough of a node's life to play scenes: which
// requests are sent, in which order, and what follows from a lost answer. The
// simulated region is the place for fidelity.
type fakeFarm struct {
	t     *testing.T
	mu    sync.Mutex
	nodes map[string]*fakeNode // by address
	order []*fakeNode
	log   []string // requests that change something
	// memberships by cluster; two of them are a split brain
	clusters map[string]*fakeEtcd
	// configurations by their text: reading one takes long under the race detector
	read map[string]config.Provider
}

type fakeNode struct {
	machine.UnimplementedMachineServiceServer
	farm    *fakeFarm
	name    string
	address netip.Addr
	state   State
	version string
	bundle  *vault.Bundle
	cert    tls.Certificate // of maintenance
	face    *tls.Config     // of the configured node, for one configuration and bundle
	faceOf  string
	faceBy  *vault.Bundle
	active  []byte
	stored  []byte
	boot    int
	booted  time.Time // by the node's clock
	joined  time.Time // when its etcd data was made
	stage   runtime.MachineStage
	conns   map[net.Conn]bool
	accept  chan net.Conn

	etcd       string // state of the service
	message    string
	id         uint64
	cluster    string
	learner    bool
	learnFor   int // polls until a learner is promoted; negative: never
	stuck      bool
	rebootOnly bool // the node insists on a reboot
	alarm      machine.EtcdMemberAlarm_AlarmType
	sick       string
	sees       int // how many members its list has, as while others join; 0: all

	// faults are asked before and after each request, by method.
	before, after func(n *fakeNode, method string) error
}

func newFarm(t *testing.T, e *estate.Estate, b *vault.Bundle) *fakeFarm {
	t.Helper()
	f := &fakeFarm{t: t, nodes: map[string]*fakeNode{}, clusters: map[string]*fakeEtcd{}, read: map[string]config.Provider{}}
	a := testAddresses(e)
	for i, n := range e.Nodes() {
		node := &fakeNode{farm: f, name: n.Name, address: a.Nodes[n.Name], state: Maintenance, version: e.Talos.Version, bundle: b, booted: time.Now(), conns: map[net.Conn]bool{}, id: uint64(0xa0 + i), stage: runtime.MachineStageMaintenance}
		node.cert = throwaway(t)
		f.nodes[node.address.String()] = node
		f.order = append(f.order, node)
		node.serve(t)
	}
	return f
}

func (f *fakeFarm) node(name string) *fakeNode {
	for _, n := range f.order {
		if n.name == name {
			return n
		}
	}
	f.t.Fatalf("no node %s", name)
	return nil
}

// with changes a node between requests.
func (f *fakeFarm) with(name string, change func(*fakeNode)) {
	n := f.node(name)
	f.mu.Lock()
	change(n)
	f.mu.Unlock()
	n.hangUp()
}

// parsed reads a configuration; the farm is locked.
func (f *fakeFarm) parsed(text []byte) (config.Provider, error) {
	if p := f.read[string(text)]; p != nil {
		return p, nil
	}
	p, err := configloader.NewFromBytes(text)
	if err == nil {
		f.read[string(text)] = p
	}
	return p, err
}

func (f *fakeFarm) changes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

func (n *fakeNode) did(format string, args ...any) {
	n.farm.log = append(n.farm.log, n.name+" "+fmt.Sprintf(format, args...))
}

func (n *fakeNode) controlPlane() bool { return strings.Contains(n.name, "-cp-") }

func (n *fakeNode) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	return &machine.VersionResponse{Messages: []*machine.Version{{Version: &machine.VersionInfo{Tag: n.version}}}}, nil
}

func (n *fakeNode) ApplyConfiguration(_ context.Context, in *machine.ApplyConfigurationRequest) (*machine.ApplyConfigurationResponse, error) {
	f := n.farm
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.parsed(in.Data); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	mode := in.Mode
	if n.rebootOnly && mode == machine.ApplyConfigurationRequest_AUTO {
		mode = machine.ApplyConfigurationRequest_REBOOT
	}
	answer := &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{{Mode: mode}}}
	if in.DryRun {
		return answer, nil
	}
	n.did("ApplyConfiguration %s in %s", in.Mode, n.state)
	n.active, n.stored = in.Data, in.Data
	switch {
	case n.state == Maintenance:
		n.configure()
	case in.Mode == machine.ApplyConfigurationRequest_REBOOT:
		n.boot++
	}
	return answer, nil
}

// configure is what follows a first configuration.
func (n *fakeNode) configure() {
	n.stage = runtime.MachineStageBooting
	if n.controlPlane() {
		n.state, n.etcd = Ours, "Preparing"
	} else {
		n.state = Refusing
	}
	for c := range n.conns {
		// The answer still leaves; the listener closes behind it.
		go func() { time.Sleep(20 * time.Millisecond); _ = c.Close() }()
		delete(n.conns, c)
	}
}

func (n *fakeNode) SystemStat(context.Context, *emptypb.Empty) (*machine.SystemStatResponse, error) {
	n.farm.mu.Lock()
	defer n.farm.mu.Unlock()
	return &machine.SystemStatResponse{Messages: []*machine.SystemStat{{BootTime: uint64(n.booted.Unix())}}}, nil
}

func (n *fakeNode) Read(_ *machine.ReadRequest, stream machine.MachineService_ReadServer) error {
	n.farm.mu.Lock()
	boot := n.boot
	n.farm.mu.Unlock()
	if err := stream.Send(&common.Data{Bytes: fmt.Appendf(nil, "boot-%d\n", boot)}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// known is what the cloud's steps would have given.
type known map[string]plan.Observed

func (k known) Get(id string) (plan.Observed, bool) { o, ok := k[id]; return o, ok }

func cloud(e *estate.Estate) known {
	k := known{"gateway-ip/" + e.Name + "-gateway": {Spec: blueprint.GatewayIP{Address: netip.MustParseAddr("203.0.113.7")}}}
	for _, n := range e.Nodes() {
		k["power/"+n.Name] = plan.Observed{Spec: blueprint.Power{State: "running"}}
		k["private-nic/"+n.Name] = plan.Observed{Spec: blueprint.PrivateNIC{}}
	}
	return k
}
