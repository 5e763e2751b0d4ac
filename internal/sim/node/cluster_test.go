package node_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"bastide/internal/sim/balancer"
	"bastide/internal/sim/clock"
	"bastide/internal/sim/fabric"
	"bastide/internal/sim/hardware"
	"bastide/internal/sim/node"
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

const testNetwork = "pn-1"

// admin is the address in the private network that the tests call from.
var admin = netip.MustParseAddr("172.16.0.250")

// region is a small world: a network, machines, and a load balancer for 6443.
type region struct {
	t      *testing.T
	farm   *node.Farm
	fabric *fabric.Fabric
	lb     *balancer.Set
	bundle *secrets.Bundle
	input  *generate.Input
}

// bundle is one for all tests: an RSA key takes seconds under the race detector.
var bundle = sync.OnceValues(func() (*secrets.Bundle, error) {
	return secrets.NewBundle(secrets.NewClock(), config.TalosVersionCurrent)
})

func newRegion(t *testing.T, change func(*node.Options)) *region {
	r := &region{t: t, fabric: fabric.New()}
	var log *slog.Logger
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	}
	opt := node.Options{
		Clock: clock.New(20), Fabric: r.fabric, Dir: t.TempDir(), EtcdProgram: etcdProgram(), Log: log,
	}
	if change != nil {
		change(&opt)
	}
	var err error
	if r.farm, err = node.New(opt); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.farm.Close() })
	r.lb = balancer.New(opt.Clock, r.fabric, log)
	t.Cleanup(func() { _ = r.lb.Close() })
	r.fabric.HostUp(testNetwork, admin)

	if r.bundle, err = bundle(); err != nil {
		t.Fatal(err)
	}
	r.input, err = generate.NewInput("test", "https://172.16.0.2:6443", "1.36.3", generate.WithSecretsBundle(r.bundle),
		generate.WithClusterDiscovery(false), generate.WithVersionContract(config.TalosVersionCurrent))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// hardwareOf describes a machine with one Talos disk.
func hardwareOf(name, addr string) hardware.Machine {
	return hardware.Machine{
		ServerID: "server-" + name, Name: name, Hostname: name, Zone: "fr-par-1", CommercialType: "PLAY2-NANO", RAMBytes: 8 << 30, CPUs: 2,
		NICs:    []hardware.NIC{{ID: "nic-" + name, MAC: "02:00:00:00:00:01", NetworkID: testNetwork, Address: netip.MustParsePrefix(addr + "/22"), Gateway: netip.MustParseAddr("172.16.0.1")}},
		Volumes: []hardware.Volume{{ID: "volume-" + name, SizeBytes: 20e9, Image: &hardware.TalosImage{Version: "v1.13.5", Schematic: strings.Repeat("a", 64), Extensions: []string{"siderolabs/gvisor"}}}},
	}
}

// machineConfig renders the configuration of a role.
func (r *region) machineConfig(kind machinetype.Type, change func(*v1alpha1.Config)) []byte {
	p, err := r.input.Config(kind)
	if err != nil {
		r.t.Fatal(err)
	}
	p, err = p.PatchV1Alpha1(func(c *v1alpha1.Config) error {
		if change != nil {
			change(c)
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	raw, err := p.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		r.t.Fatal(err)
	}
	return raw
}

func (r *region) dialer() grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		ap, err := netip.ParseAddrPort(addr)
		if err != nil {
			return nil, err
		}
		return r.fabric.Dial(ctx, testNetwork, admin, ap.Addr(), int(ap.Port()))
	})
}

// insecure is a client as of `talosctl --insecure`.
func (r *region) insecure(addr string) *client.Client {
	c, err := client.New(context.Background(), client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}), client.WithEndpoints(addr), client.WithGRPCDialOptions(r.dialer()))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// talos is a client with the administrator's certificate.
func (r *region) talos(addr string) *client.Client { return r.talosAs(addr, role.Admin) }

func (r *region) talosAs(addr string, roles ...role.Role) *client.Client {
	cert, err := r.bundle.GenerateTalosAPIClientCertificate(role.MakeSet(roles...))
	if err != nil {
		r.t.Fatal(err)
	}
	conf := clientconfig.NewConfig("test", []string{addr}, r.bundle.Certs.OS.Crt, cert)
	c, err := client.New(context.Background(), client.WithConfig(conf), client.WithGRPCDialOptions(r.dialer()))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// patience bounds what would hang, on a machine that is shared and slow too.
const patience = 10 * time.Minute

// until repeats a check until it passes.
func (r *region) until(what string, check func(context.Context) error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, 10*time.Second)
		err := check(try)
		done()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			r.t.Fatalf("%s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// apply pushes a configuration to a machine in maintenance.
func (r *region) apply(addr string, raw []byte) {
	r.t.Helper()
	c := r.insecure(addr)
	r.until("maintenance API of "+addr, func(ctx context.Context) error { _, err := c.Version(ctx); return err })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := c.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Data: raw, Mode: machine.ApplyConfigurationRequest_AUTO}); err != nil {
		r.t.Fatal(err)
	}
}

// balance puts a load balancer at 172.16.0.2:6443 before servers.
func (r *region) balance(servers ...string) {
	var addrs []netip.Addr
	for _, s := range servers {
		addrs = append(addrs, netip.MustParseAddr(s))
	}
	r.lb.Apply(hardware.Balancer{
		ID: "lb", Attachments: []hardware.Attachment{{NetworkID: testNetwork, Address: netip.MustParseAddr("172.16.0.2")}},
		Frontends: []hardware.Frontend{{Port: 6443, Backend: hardware.Backend{Port: 6443, Servers: addrs, CheckDelay: 3 * time.Second, CheckTimeout: time.Second, CheckRetries: 3}}},
	})
}

// kube is a client through the load balancer.
func (r *region) kube(c *client.Client) *kubernetes.Clientset {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	k, err := r.kubeClient(ctx, c)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

// tryKube fails while the API server does not answer through the load balancer.
func (r *region) tryKube(ctx context.Context, c *client.Client) (*kubernetes.Clientset, error) {
	k, err := r.kubeClient(ctx, c)
	if err == nil {
		_, err = k.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	}
	return k, err
}

func (r *region) kubeClient(ctx context.Context, c *client.Client) (*kubernetes.Clientset, error) {
	raw, err := c.Kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	conf, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, err
	}
	conf.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return r.fabric.Dial(ctx, testNetwork, admin, netip.MustParseAddr("172.16.0.2"), 6443)
	}
	return kubernetes.NewForConfig(conf)
}

// raise powers machines on and configures them at the same time.
func (r *region) raise(machines []hardware.Machine, configOf func(hardware.Machine) []byte) {
	r.t.Cleanup(func() {
		for _, m := range machines {
			if r.t.Failed() {
				r.dump(m.NICs[0].Address.Addr().String(), "etcd")
			}
		}
	})
	var wg sync.WaitGroup
	for _, m := range machines {
		r.farm.PowerOn(m)
		wg.Go(func() { r.apply(m.NICs[0].Address.Addr().String(), configOf(m)) })
	}
	wg.Wait()
}

// dump prints a node's console and the end of a service's log.
func (r *region) dump(addr, service string) {
	c := r.talos(addr)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	console, err := c.Dmesg(ctx, false, false)
	if err != nil {
		r.t.Logf("%s: %v", addr, err)
		return
	}
	logs, err := c.Logs(ctx, "system", common.ContainerDriver_CONTAINERD, service, false, 40)
	if err != nil {
		return
	}
	for _, s := range []interface{ Recv() (*common.Data, error) }{console, logs} {
		for {
			m, err := s.Recv()
			if err != nil {
				break
			}
			r.t.Logf("%s: %s", addr, strings.TrimSuffix(string(m.Bytes), "\n"))
		}
	}
}
