package node

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	stdnet "net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// etcdNames are what the member's certificates are valid for.
func (n *node) etcdNames() names {
	var s names
	s.addAddrs(n.addresses()...)
	s.add(n.hostname())
	return s
}

// writeEtcdPKI issues the member's certificates from the etcd authority of the
// configuration, into files that only the node can read.
func (n *node) writeEtcdPKI() error {
	ca := n.config().Cluster().Etcd().CA()
	if ca == nil {
		return errors.New("the configuration has no etcd certificate authority")
	}
	peer := n.etcdNames()
	server := n.etcdNames()
	// On a real node clients on the node itself connect to 127.0.0.1; here each
	// node has a loopback address of its own.
	server.add("127.0.0.1", "::1", "localhost", n.loopback.String())
	const decade = 87600 * time.Hour
	for name, opts := range map[string][]x509.Option{
		"server":    {x509.CommonName(n.hostname()), x509.IPAddresses(server.ips), x509.DNSNames(server.dns), bothUse},
		"peer":      {x509.CommonName(n.hostname()), x509.IPAddresses(peer.ips), x509.DNSNames(peer.dns), bothUse},
		"admin":     {x509.CommonName("talos"), clientUse},
		"apiserver": {x509.CommonName("kube-apiserver"), clientUse},
	} {
		pair, err := sign(ca, append(opts, validFor(decade), exchange)...)
		if err != nil {
			return fmt.Errorf("etcd %s certificate: %w", name, err)
		}
		if err := n.writePair("etcd-"+name, pair); err != nil {
			return err
		}
	}
	return os.WriteFile(n.runFile("etcd-ca.crt"), ca.Crt, 0o600)
}

func (n *node) runFile(name string) string { return filepath.Join(n.runDir, name) }

// writePair stores a certificate and its key as name.crt and name.key.
func (n *node) writePair(name string, pair *x509.PEMEncodedCertificateAndKey) error {
	if err := os.WriteFile(n.runFile(name+".crt"), pair.Crt, 0o600); err != nil {
		return err
	}
	if len(pair.Key) == 0 {
		return nil
	}
	return os.WriteFile(n.runFile(name+".key"), pair.Key, 0o600)
}

// etcdClient connects to members as the node's administrator, over its network.
func (n *node) etcdClient(ctx context.Context, endpoints []string) (*clientv3.Client, error) {
	cert, err := tls.LoadX509KeyPair(n.runFile("etcd-admin.crt"), n.runFile("etcd-admin.key"))
	if err != nil {
		return nil, fmt.Errorf("error building etcd client TLS config: %w", err)
	}
	pool := stdx509.NewCertPool()
	pool.AppendCertsFromPEM(n.config().Cluster().Etcd().CA().Crt)
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialTimeout: 5 * time.Second, Context: ctx, Logger: zap.NewNop(),
		TLS: &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool, MinVersion: tls.VersionTLS12},
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, addr string) (stdnet.Conn, error) {
			if host, _, err := stdnet.SplitHostPort(addr); err == nil && host == n.loopback.String() {
				var d stdnet.Dialer
				return d.DialContext(ctx, "tcp", addr)
			}
			return n.dial(ctx, "tcp", addr)
		})},
	})
}

// etcdLocal connects to the node's own member.
func (n *node) etcdLocal(ctx context.Context) (*clientv3.Client, error) {
	return n.etcdClient(ctx, []string{netip.AddrPortFrom(n.loopback, etcdClientPort).String()})
}

// etcdCluster connects to whichever members the node knows of.
func (n *node) etcdCluster(ctx context.Context) (*clientv3.Client, error) {
	endpoints := n.controlPlaneEndpoints()
	if len(endpoints) == 0 {
		return nil, errors.New("no controlplane endpoints discovered yet")
	}
	rand.Shuffle(len(endpoints), func(i, j int) { endpoints[i], endpoints[j] = endpoints[j], endpoints[i] })
	return n.etcdClient(ctx, endpoints)
}

// controlPlaneEndpoints are the etcd addresses of the control plane nodes that
// the node knows of; not all of them need run etcd.
func (n *node) controlPlaneEndpoints() []string {
	var all []string
	for _, a := range n.endpoints() {
		all = append(all, stdnet.JoinHostPort(a.String(), strconv.Itoa(etcdClientPort)))
	}
	return all
}

// memberID is the id of the local member: the published one, so that it is known
// while the member itself is busy, else its own answer.
func (n *node) memberID(ctx context.Context) (uint64, error) {
	if m, err := safe.StateGetByID[*etcd.Member](ctx, n.resources, etcd.LocalMemberID); err == nil {
		return etcd.ParseMemberID(m.TypedSpec().MemberID)
	}
	return n.askMemberID(ctx)
}

func (n *node) askMemberID(ctx context.Context) (uint64, error) {
	c, err := n.etcdLocal(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	resp, err := c.Status(ctx, c.Endpoints()[0])
	if err != nil {
		return 0, err
	}
	return resp.Header.MemberId, nil
}
