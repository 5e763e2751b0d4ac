package node

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

// EtcdCommand is the hidden command under which a program that simulates nodes is
// started again as an etcd member, in a process of its own, so that a power loss is one.
const EtcdCommand = "sim-etcd-member"

// RunEtcd is etcd itself: the simulator starts its own program again with the
// arguments that lead here, and one more, the file that holds etcd's flags, one
// a line. It returns only when it cannot start; etcd exits by itself.
func RunEtcd(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("etcd needs one argument, the file of its flags, not %d", len(args))
	}
	raw, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("reading etcd's flags: %w", err)
	}
	argv := []string{"etcd"}
	for _, line := range strings.Split(string(raw), "\n") {
		if line != "" {
			argv = append(argv, line)
		}
	}
	os.Args = argv // etcd looks at them for its first log line
	etcdmain.Main(argv)
	return errors.New("etcd ended")
}

// etcdArgs renders etcd's flags as Talos does, with the configuration's extra
// arguments, which may not touch what Talos sets.
func (n *node) etcdArgs() (*argSet, error) {
	lo := func(port uint16) string { return "https://" + netip.AddrPortFrom(n.loopback, port).String() }
	own := map[string]string{
		"name": n.hostname(), "auto-tls": "false", "peer-auto-tls": "false", "data-dir": n.etcd.dataDir(),
		"listen-peer-urls": lo(etcdPeerPort), "listen-client-urls": lo(etcdClientPort),
		"client-cert-auth": "true", "cert-file": n.runFile("etcd-server.crt"), "key-file": n.runFile("etcd-server.key"),
		"trusted-ca-file":       n.runFile("etcd-ca.crt"),
		"peer-client-cert-auth": "true", "peer-cert-file": n.runFile("etcd-peer.crt"), "peer-key-file": n.runFile("etcd-peer.key"),
		"peer-trusted-ca-file": n.runFile("etcd-ca.crt"),
	}
	set := newArgs(own)
	for k := range own {
		set.deny(k)
	}
	// These are spelled differently in the etcd that this program contains than
	// in the one that Talos 1.13 runs.
	set.values["watch-progress-notify-interval"] = []string{"5s"}
	set.values["feature-gates"] = []string{"InitialCorruptCheck=true,CompactHashCheck=true"}
	set.join("feature-gates")
	if err := set.merge(n.config().Cluster().Etcd().ExtraArgs()); err != nil {
		return nil, err
	}
	set.def("initial-advertise-peer-urls", strings.Join(n.etcdURLs(etcdPeerPort), ","))
	set.def("advertise-client-urls", strings.Join(n.etcdURLs(etcdClientPort), ","))
	// A simulated loss of power kills the process and not the host, so what was
	// written is kept without being forced to the disk.
	set.values["unsafe-no-fsync"] = []string{"true"}
	// Peers appear to come from this host's loopback address, which is in no certificate.
	set.values["peer-skip-client-san-verification"] = []string{"true"}
	// Several members share this host's few processors, so that a late heartbeat
	// says little.
	set.def("heartbeat-interval", "200")
	set.def("election-timeout", "2000")
	set.def("logger", "zap")
	return set, nil
}

// etcdProxy is how the etcd process of one node reaches its peers' simulated
// addresses: etcd is told to use an HTTP proxy, and the proxy dials over the
// simulated network from the node's address, where partitions apply.
type etcdProxy struct {
	node     *node
	listener net.Listener
}

func (n *node) startEtcdProxy() (*etcdProxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &etcdProxy{node: n, listener: l}
	n.spawn(p.accept)
	return p, nil
}

func (p *etcdProxy) env() []string {
	return []string{"HTTPS_PROXY=http://" + p.listener.Addr().String()}
}

func (p *etcdProxy) close() { _ = p.listener.Close() }

func (p *etcdProxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.connect(c)
	}
}

// connect serves one CONNECT request.
func (p *etcdProxy) connect(c net.Conn) {
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	r := bufio.NewReader(c)
	req, err := http.ReadRequest(r)
	if err != nil || req.Method != http.MethodConnect {
		_, _ = io.WriteString(c, "HTTP/1.1 405 Method Not Allowed\r\n\r\n")
		_ = c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithTimeout(p.node.ctx, 5*time.Second)
	up, err := p.node.dial(ctx, "tcp", req.Host)
	cancel()
	if err != nil {
		_, _ = fmt.Fprintf(c, "HTTP/1.1 502 %s\r\n\r\n", strings.ReplaceAll(err.Error(), "\n", " "))
		_ = c.Close()
		return
	}
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_ = c.Close()
		_ = up.Close()
		return
	}
	// What the client already sent behind its request belongs to the peer.
	if early, _ := r.Peek(r.Buffered()); len(early) > 0 {
		_, _ = io.Copy(up, bytes.NewReader(early))
	}
	splice(c, up)
}
