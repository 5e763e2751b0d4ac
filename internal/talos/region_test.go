package talos_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/plan"
	"bastide/internal/sim/balancer"
	"bastide/internal/sim/clock"
	"bastide/internal/sim/fabric"
	"bastide/internal/sim/hardware"
	"bastide/internal/sim/node"
	"bastide/internal/sim/program"
	"bastide/internal/talos"
	"bastide/internal/vault"
)

// TestMain lets the test program be the etcd of the nodes that it simulates.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == node.EtcdCommand {
		if err := node.RunEtcd(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// etcdProgram is the released binary where make has built it: under the race
// detector the test program is a slow etcd, and etcd's code is not what is tested.
func etcdProgram() []string {
	return []string{cmp.Or(os.Getenv("BASTIDE"), os.Args[0]), node.EtcdCommand}
}

const network = "pn"

var admin = netip.MustParseAddr("172.16.3.250")

// limits are wide where a machine under load could exceed them: how long etcd may
// take to start says nothing there.
var limits = talos.Limits{Settle: time.Second, Joining: time.Hour}

// patience bounds what would hang.
const patience = 15 * time.Minute

// world is a small simulated region: the estate's machines, its load balancer,
// and real etcd and kube-apiserver on them.
type world struct {
	t       *testing.T
	estate  *estate.Estate
	graph   *blueprint.Graph
	farm    *node.Farm
	fabric  *fabric.Fabric
	cluster *talos.Cluster
	bundle  *vault.Bundle
	cloud   plan.Live
	gateway netip.Addr
}

func (w *world) Get(id string) (plan.Observed, bool) { o, ok := w.cloud.Steps[id]; return o, ok }

// regionsBundle is one for all worlds: an RSA key takes seconds under the race detector.
var regionsBundle = sync.OnceValues(func() (*vault.Bundle, error) { return vault.Generate("v1.13.5", time.Now()) })

func newWorld(t *testing.T, change func(*estate.Estate)) *world {
	t.Helper()
	prefix := func(s string) estate.Prefix { return estate.Prefix{Prefix: netip.MustParsePrefix(s)} }
	w := &world{t: t, fabric: fabric.New(), gateway: netip.MustParseAddr("203.0.113.7"), estate: &estate.Estate{
		APIVersion: estate.APIVersion, Kind: estate.Kind, Name: "staging", Dir: t.TempDir(),
		Scaleway:     estate.Scaleway{Region: "fr-par", Zones: []string{"fr-par-1"}},
		Talos:        estate.Talos{Version: "v1.13.5", Extensions: []string{"siderolabs/gvisor"}},
		Kubernetes:   estate.Kubernetes{Version: "1.36.3"},
		Network:      estate.Network{Mode: "private", CIDR: prefix("172.16.0.0/22"), Pods: prefix("10.244.0.0/16"), Services: prefix("10.96.0.0/12")},
		API:          estate.API{Names: []string{"k8s.staging.example.org"}},
		ControlPlane: estate.ControlPlane{Count: 3, Type: "PLAY2-NANO", Disk: estate.Disk{Size: 20e9}},
		Pools:        []estate.Pool{{Name: "system", Count: 1, Type: "PLAY2-MICRO", Disk: estate.Disk{Size: 20e9}, Ephemeral: &estate.Disk{Size: 40e9}, Labels: map[string]string{"role": "system"}}},
	}}
	if change != nil {
		change(w.estate)
	}
	apiServer := program.Need(t, "kube-apiserver")
	ticks := clock.New(20)
	var err error
	if w.farm, err = node.New(node.Options{Clock: ticks, Fabric: w.fabric, Dir: t.TempDir(), EtcdProgram: etcdProgram(), APIServerProgram: apiServer}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.farm.Close() })
	w.fabric.HostUp(network, admin)
	if w.bundle, err = regionsBundle(); err != nil {
		t.Fatal(err)
	}
	w.rerun()
	balancers := balancer.New(ticks, w.fabric, nil)
	t.Cleanup(func() { _ = balancers.Close() })
	addresses := talos.AddressesOf(w.graph, w.estate, w.gateway)
	lb := hardware.Balancer{ID: "lb", Attachments: []hardware.Attachment{{NetworkID: network, Address: addresses.API}}}
	backend := hardware.Backend{Port: 6443, CheckDelay: 3 * time.Second, CheckTimeout: time.Second, CheckRetries: 3}
	w.cloud = plan.Live{Steps: map[string]plan.Observed{"gateway-ip/staging-gateway": {Spec: blueprint.GatewayIP{Address: w.gateway}}}}
	for _, n := range w.estate.Nodes() {
		if n.Role == estate.RoleControlPlane {
			backend.Servers = append(backend.Servers, addresses.Nodes[n.Name])
		}
		w.cloud.Steps["power/"+n.Name] = plan.Observed{Spec: blueprint.Power{State: "running"}}
		w.cloud.Steps["private-nic/"+n.Name] = plan.Observed{Spec: blueprint.PrivateNIC{}}
	}
	lb.Frontends = []hardware.Frontend{{Port: 6443, Backend: backend}}
	balancers.Apply(lb)
	return w
}

// rerun is a new process with the file as it is now.
func (w *world) rerun() {
	w.t.Helper()
	var err error
	if w.graph, err = blueprint.Build(w.estate, nil, nil); err != nil {
		w.t.Fatal(err)
	}
	w.cluster, err = talos.New(talos.Options{Estate: w.estate, Bundle: w.bundle, Graph: w.graph, Dial: w.dial, Limits: limits})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.cluster.Renderer().Complete(w.graph, w.gateway); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) dial(ctx context.Context, _, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	return w.fabric.Dial(ctx, network, admin, to.Addr(), int(to.Port()))
}

func (w *world) powerOn() {
	addresses := talos.AddressesOf(w.graph, w.estate, w.gateway)
	for i, n := range w.estate.Nodes() {
		m := hardware.Machine{
			ServerID: n.Name, Name: n.Name, Hostname: n.Name, Zone: n.Zone, CommercialType: n.Type, RAMBytes: 8 << 30, CPUs: 2,
			NICs: []hardware.NIC{{ID: n.Name, MAC: fmt.Sprintf("02:00:00:00:00:%02x", i+1), NetworkID: network,
				Address: netip.PrefixFrom(addresses.Nodes[n.Name], 22), Gateway: netip.MustParseAddr("172.16.0.2")}},
			Volumes: []hardware.Volume{{ID: n.Name, SizeBytes: int64(n.Disk.Size), Image: &hardware.TalosImage{Version: "v1.13.5", Schematic: w.estate.Talos.SchematicID(), Extensions: w.estate.Talos.Extensions}}},
		}
		if n.Ephemeral != nil {
			m.Volumes = append(m.Volumes, hardware.Volume{ID: n.Name + "-ephemeral", SizeBytes: int64(n.Ephemeral.Size)})
		}
		w.farm.PowerOn(m)
	}
}

// up carries out the cluster's steps as soon as each may run.
func (w *world) up() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := map[string]chan struct{}{}
	for _, s := range w.graph.Steps {
		done[s.ID] = make(chan struct{})
	}
	var wg sync.WaitGroup
	for _, s := range w.graph.Steps {
		if !s.Kind.Cluster() {
			close(done[s.ID])
			continue
		}
		wg.Go(func() {
			for _, need := range s.Needs {
				select {
				case <-done[need]:
				case <-ctx.Done():
					return
				}
			}
			if _, err := w.cluster.Apply(ctx, plan.Action{Step: s, Op: plan.Create}, w); err != nil {
				w.t.Errorf("%s: %v", s.ID, err)
				cancel()
				return
			}
			close(done[s.ID])
		})
	}
	wg.Wait()
	if w.t.Failed() {
		w.t.FailNow()
	}
}

func (w *world) settled() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	live, err := w.cluster.Observe(ctx, w.graph, w.cloud)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, a := range plan.Make(w.graph, live).Actions {
		if a.Step.Kind.Cluster() && a.Op != plan.Keep {
			w.t.Errorf("after up %s is to be %s: %s %+v", a.Step.ID, a.Op, a.Reason, a.Changes)
		}
	}
	for _, c := range talos.Failed(w.cluster.Verify(ctx, w.gateway)) {
		w.t.Errorf("%s: %s: want %s, have %s; %s", c.Node, c.Name, c.Want, c.Have, c.Fix)
	}
}

// A cluster from maintenance to Ready on simulated machines with real etcd and
// real API servers; nothing to do afterwards; then a change of etcd's quota
// rolls through the control plane, and quorum is there at every look.
func TestRegionUpAndRoll(t *testing.T) {
	if testing.Short() {
		t.Skip("raises a whole cluster")
	}
	w := newWorld(t, nil)
	w.powerOn()
	start := time.Now()
	w.up()
	t.Logf("up after %s", time.Since(start).Round(time.Second))
	w.settled()
	health := w.cluster.EtcdHealth(context.Background())
	t.Logf("\n%s", health.Members.Picture())
	if health.Members.Spare() != 1 {
		t.Errorf("etcd: %s", health.Describe())
	}
	w.rerun()
	w.up()
	w.settled()

	w.estate.Kubernetes.Etcd.Quota = 4 << 30
	w.rerun()
	watch, stop := context.WithCancel(context.Background())
	var looks sync.WaitGroup
	looks.Go(func() { w.neverBelowQuorum(watch) })
	start = time.Now()
	w.up()
	stop()
	looks.Wait()
	t.Logf("rolled after %s", time.Since(start).Round(time.Second))
	w.settled()
}

// neverBelowQuorum looks, for as long as a roll takes, at which etcd members do
// not listen. A look is not of one instant: one member may come back and the
// next one go while it lasts. Two looks in a row that find the same two members
// away cannot be explained so.
func (w *world) neverBelowQuorum(ctx context.Context) {
	var before map[string]bool
	for ctx.Err() == nil {
		away := w.away(ctx)
		both := 0
		for name := range away {
			if before[name] {
				both++
			}
		}
		if both > 1 && ctx.Err() == nil {
			w.t.Errorf("two members were away at once: %v", away)
			return
		}
		before = away
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *world) away(ctx context.Context) map[string]bool {
	addresses := talos.AddressesOf(w.graph, w.estate, w.gateway)
	out := map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, n := range w.estate.Nodes() {
		if n.Role != estate.RoleControlPlane {
			continue
		}
		wg.Go(func() {
			own := addresses.Nodes[n.Name] // only members get through the firewall
			conn, err := w.fabric.Dial(ctx, network, own, own, 2379)
			if err == nil {
				_ = conn.Close()
				return
			}
			mu.Lock()
			out[n.Name] = true
			mu.Unlock()
		})
	}
	wg.Wait()
	return out
}

// Field report 17: EPHEMERAL stays small; up must not call that done.
func TestFieldReport17SmallEphemeral(t *testing.T) {
	if testing.Short() {
		t.Skip("raises a node")
	}
	w := newWorld(t, func(e *estate.Estate) { e.ControlPlane.Count, e.Pools = 1, nil })
	err := w.farm.Event(context.Background(), hardware.NodeEvent{Node: "staging-cp-1", Event: "small-ephemeral", Params: map[string]any{"bytes": 1200 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	w.powerOn()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	step, _ := w.graph.Step("machine/staging-cp-1")
	if _, err := w.cluster.Apply(ctx, plan.Action{Step: step, Op: plan.Create}, w); err != nil {
		t.Logf("apply: %v", err)
	}
	for _, c := range talos.Failed(w.cluster.Verify(ctx, w.gateway)) {
		if c.Name == "EPHEMERAL volume" && strings.Contains(c.Fix, "smaller than the minimum") {
			t.Logf("want %s, have %s", c.Want, c.Have)
			return
		}
	}
	t.Error("a small EPHEMERAL passes verification")
}
