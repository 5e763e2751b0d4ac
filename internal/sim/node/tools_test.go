package node_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"

	"bastide/internal/sim/hardware"
	"bastide/internal/sim/node"
	"bastide/internal/sim/program"
)

// proxy is an HTTP CONNECT proxy into the private network.
func (r *region) proxy() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.connect(c)
		}
	}()
	return "http://" + l.Addr().String()
}

func (r *region) connect(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	req, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	at, err := netip.ParseAddrPort(req.Host)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	up, err := r.fabric.Dial(ctx, testNetwork, admin, at.Addr(), int(at.Port()))
	if err != nil {
		_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer up.Close()
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(up, in); _ = up.Close() }()
	_, _ = io.Copy(c, up)
}

// shell runs programs as an administrator with the door open would.
type shell struct {
	*region
	env []string
}

func (r *region) shell(kubeconfig []byte) *shell {
	dir := r.t.TempDir()
	cert, err := r.bundle.GenerateTalosAPIClientCertificate(role.MakeSet(role.Admin))
	if err != nil {
		r.t.Fatal(err)
	}
	raw, err := clientconfig.NewConfig("test", []string{"172.16.0.11"}, r.bundle.Certs.OS.Crt, cert).Bytes()
	if err != nil {
		r.t.Fatal(err)
	}
	for name, data := range map[string][]byte{"talosconfig": raw, "kubeconfig": kubeconfig} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	return &shell{r, append(os.Environ(), "HOME="+dir, "TALOSCONFIG="+dir+"/talosconfig", "KUBECONFIG="+dir+"/kubeconfig", "HTTPS_PROXY="+r.proxy(), "NO_PROXY=")}
}

func (s *shell) try(ctx context.Context, command string) (string, error) {
	args := strings.Fields(command)
	cmd := exec.CommandContext(ctx, program.Need(s.t, args[0]), args[1:]...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run expects a command to succeed and its output to hold some texts.
func (s *shell) run(command string, want ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := s.try(ctx, command)
	s.t.Logf("$ %s\n%s", command, out)
	if err != nil {
		s.t.Errorf("%s: %v", command, err)
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			s.t.Errorf("%s: no %q in\n%s", command, w, out)
		}
	}
}

func TestToolsNobodyHereWrote(t *testing.T) {
	r := newRegion(t, func(o *node.Options) { o.APIServerProgram = program.Need(t, "kube-apiserver") })
	program.Need(t, "talosctl")
	program.Need(t, "kubectl")
	r.balance("172.16.0.11")
	machines := []hardware.Machine{hardwareOf("cp-1", "172.16.0.11"), hardwareOf("w-1", "172.16.0.21")}
	r.raise(machines, func(m hardware.Machine) []byte {
		if m.Name[0] == 'w' {
			return r.machineConfig(machinetype.TypeWorker, nil)
		}
		return r.machineConfig(machinetype.TypeControlPlane, nil)
	})
	c := r.talos("172.16.0.11")
	r.bootstrap(c)
	r.voters(c, 1)
	r.until("kubernetes", func(ctx context.Context) error { _, err := r.tryKube(ctx, c); return err })
	r.readyNodes(c, 2)
	raw, err := c.Kubeconfig(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s := r.shell(raw)
	s.run("talosctl -n 172.16.0.11 version", "v1.13.5", "RBAC")
	s.run("talosctl -n 172.16.0.11,172.16.0.21 version --short", "172.16.0.21")
	s.run("talosctl -n 172.16.0.11 get members", "NODE")
	s.run("talosctl -n 172.16.0.11 etcd members", "cp-1", "https://172.16.0.11:2380")
	s.run("talosctl -n 172.16.0.11 etcd status", "172.16.0.11")
	s.run("talosctl -n 172.16.0.11 etcd alarm list")
	s.run("talosctl -n 172.16.0.21 service", "kubelet", "Running")
	s.run("talosctl -n 172.16.0.11 service etcd", "HEALTH", "Health check successful")
	s.run("talosctl -n 172.16.0.21 get machinestatus", "running", "true")
	s.run("talosctl -n 172.16.0.11 get machineconfig -o yaml", "clusterName: test")
	s.run("talosctl -n 172.16.0.11 get volumestatus", "EPHEMERAL", "ready")
	s.run("talosctl -n 172.16.0.11 get nodename", "cp-1")
	s.run("talosctl -n 172.16.0.11 get extensions", "gvisor", "schematic")
	s.run("talosctl -n 172.16.0.11 get disks", "vda")
	s.run("talosctl -n 172.16.0.11 get addresses", "172.16.0.11/22")
	s.run("talosctl -n 172.16.0.11 get routes", "172.16.0.1")
	s.run("talosctl -n 172.16.0.11 get links", "eth1")
	s.run("talosctl -n 172.16.0.11 get staticpodstatus", "kube-apiserver")
	s.run("talosctl -n 172.16.0.11 get kubeletspec -o yaml", "node-ip=172.16.0.11")
	s.run("talosctl -n 172.16.0.11 dmesg", "boot sequence: done")
	s.run("talosctl -n 172.16.0.11 logs etcd --tail 5")
	s.run("talosctl -n 172.16.0.11 memory")
	s.run("talosctl -n 172.16.0.11 time", "time.cloudflare.com")
	s.run("talosctl -n 172.16.0.11 read /proc/sys/kernel/random/boot_id", "-")
	s.run("talosctl -n 172.16.0.11 etcd snapshot "+filepath.Join(t.TempDir(), "db"), "snapshot info")
	s.run("talosctl -n 172.16.0.11 health --server=false --control-plane-nodes 172.16.0.11 --worker-nodes 172.16.0.21 --wait-timeout 5m", "all k8s nodes to report ready: OK", "coredns to report ready: OK")
	s.run("talosctl -n 172.16.0.11 health --control-plane-nodes 172.16.0.11 --worker-nodes 172.16.0.21 --wait-timeout 5m")
	s.run("kubectl get nodes -o wide", "cp-1", "Ready", "172.16.0.21", "Talos (v1.13.5)", "v1.36.3", "containerd://")
	s.run("kubectl create deployment web --image=nginx", "created")
	s.run("kubectl rollout status deployment/web --timeout=5m", "successfully rolled out")
	s.run("kubectl get pods -A -o wide", "kube-apiserver-cp-1", "coredns", "web")
	s.run("kubectl get --raw /readyz", "ok")
	s.run("kubectl create namespace shop", "created")
	s.run("kubectl delete namespace shop --timeout=5m", "deleted")
	s.run("talosctl -n 172.16.0.21 reboot --timeout 5m", "post check passed")
	if _, err := c.EtcdMemberList(context.Background(), &machine.EtcdMemberListRequest{}); err != nil {
		t.Error(err)
	}
}
