package talos

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	cosiserver "github.com/cosi-project/runtime/pkg/state/protobuf/server"
	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/plan"
	"bastide/internal/vault"
)

// The fake nodes of this file answer with the machinery's own protocol over
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
}

type fakeEtcd struct {
	members []*fakeNode
	added   []*machine.EtcdMember // and not started
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
	f := &fakeFarm{t: t, nodes: map[string]*fakeNode{}, clusters: map[string]*fakeEtcd{}}
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

func (f *fakeFarm) changes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

// dial is the way in: it knows only the private addresses.
func (f *fakeFarm) dial(_ context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	n := f.nodes[host]
	var at State
	if n != nil {
		at = n.state
	}
	f.mu.Unlock()
	switch {
	case n == nil:
		return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	case at == Unreachable:
		return nil, fmt.Errorf("dial %s: %w", address, context.DeadlineExceeded) // at once, so that scenes do not wait for it
	case at == Refusing:
		return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	}
	client, server := net.Pipe()
	f.mu.Lock()
	n.conns[server] = true
	f.mu.Unlock()
	n.accept <- server
	return client, nil
}

// pipes is a listener whose connections the farm's dialer makes.
type pipes struct {
	accept chan net.Conn
	done   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (n *fakeNode) serve(t *testing.T) {
	n.accept = make(chan net.Conn)
	listener := &pipes{accept: n.accept, done: make(chan struct{})}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{NextProtos: []string{"h2"}, GetConfigForClient: n.tls})),
		grpc.UnaryInterceptor(func(ctx context.Context, in any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			method := info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
			if n.before != nil {
				if err := n.before(n, method); err != nil {
					return nil, err
				}
			}
			out, err := next(ctx, in)
			if err == nil && n.after != nil {
				err = n.after(n, method)
			}
			return out, err
		}))
	machine.RegisterMachineServiceServer(server, n)
	cosiv1alpha1.RegisterStateServer(server, &fakeResources{node: n})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { close(listener.done); server.Stop() })
}

func (n *fakeNode) hangUp() {
	n.farm.mu.Lock()
	defer n.farm.mu.Unlock()
	for c := range n.conns {
		_ = c.Close()
		delete(n.conns, c)
	}
}

// tls is the listener's face: a throwaway certificate that asks for nothing,
// or one of the cluster that asks for the admin's.
func (n *fakeNode) tls(*tls.ClientHelloInfo) (*tls.Config, error) {
	n.farm.mu.Lock()
	defer n.farm.mu.Unlock()
	if n.state == Maintenance {
		return &tls.Config{Certificates: []tls.Certificate{n.cert}, NextProtos: []string{"h2"}}, nil
	}
	ca, err := talosx509.NewCertificateAuthorityFromCertificateAndKey(n.bundle.Machine().Certs.OS)
	if err != nil {
		return nil, err
	}
	names := []string{n.address.String()}
	if n.active != nil {
		if p, err := configloader.NewFromBytes(n.active); err == nil {
			names = append(names, p.Machine().Security().CertSANs()...)
		}
	}
	var ips []net.IP
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			ips = append(ips, ip)
		}
	}
	pair, err := talosx509.NewKeyPair(ca, talosx509.CommonName(n.name), talosx509.IPAddresses(ips), talosx509.NotBefore(time.Now().Add(-time.Minute)),
		talosx509.NotAfter(time.Now().Add(time.Hour)), talosx509.ExtKeyUsage([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.Crt)
	return &tls.Config{Certificates: []tls.Certificate{*pair.Certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, NextProtos: []string{"h2"}}, nil
}

func throwaway(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: maintenanceName}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
	if err != nil {
		t.Fatal(err)
	}
	return pair
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
	if _, err := configloader.NewFromBytes(in.Data); err != nil {
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

// fakeResources serves the resources that are read, made anew for each request.
type fakeResources struct {
	cosiv1alpha1.UnimplementedStateServer
	node *fakeNode
}

func (r *fakeResources) Get(ctx context.Context, in *cosiv1alpha1.GetRequest) (*cosiv1alpha1.GetResponse, error) {
	made, err := r.made(ctx)
	if err != nil {
		return nil, err
	}
	return made.Get(ctx, in)
}

func (r *fakeResources) List(in *cosiv1alpha1.ListRequest, stream cosiv1alpha1.State_ListServer) error {
	made, err := r.made(stream.Context())
	if err != nil {
		return err
	}
	return made.List(in, stream)
}

func (r *fakeResources) made(ctx context.Context) (*cosiserver.State, error) {
	n := r.node
	n.farm.mu.Lock()
	core := state.WrapCore(namespaced.NewState(inmem.Build))
	for id, text := range map[string][]byte{configres.ActiveID: n.active, configres.PersistentID: n.stored} {
		if text == nil {
			continue
		}
		p, err := configloader.NewFromBytes(text)
		if err == nil {
			err = core.Create(ctx, configres.NewMachineConfigWithID(p, id))
		}
		if err != nil {
			n.farm.mu.Unlock()
			return nil, err
		}
	}
	st := runtime.NewMachineStatus()
	st.TypedSpec().Stage = n.stage
	n.farm.mu.Unlock()
	if err := core.Create(ctx, st); err != nil {
		return nil, err
	}
	return cosiserver.NewState(core), nil
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
