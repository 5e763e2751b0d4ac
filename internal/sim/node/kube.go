package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/siderolabs/crypto/x509"
	"k8s.io/client-go/rest"

	"bastide/internal/sim/kube"
)

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// endpointDial reaches the cluster endpoint as the node's network allows.
func (n *node) endpointDial(ctx context.Context, _, _ string) (net.Conn, error) {
	u := n.config().Cluster().Endpoint()
	return n.dial(ctx, "tcp", hostPort(u))
}

// ownDial reaches the node's own API server, and the cluster endpoint while that
// is down: what KubePrism does on a control plane node. Elsewhere there is only
// the endpoint.
func (n *node) ownDial(ctx context.Context, network, address string) (net.Conn, error) {
	if n.isControlPlane() && n.apiserver.ready() {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", netip.AddrPortFrom(n.loopback, uint16(n.apiPort())).String())
	}
	return n.endpointDial(ctx, network, address)
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// kubeConfig is a client's configuration for the cluster endpoint without an
// identity. The name that certificates are checked against is the endpoint's.
func (n *node) kubeConfig(dial dialFunc) *rest.Config {
	cl := n.config().Cluster()
	var ca []byte
	if c := cl.IssuingCA(); c != nil {
		ca = append(ca, c.Crt...)
	}
	for _, c := range cl.AcceptedCAs() {
		ca = append(ca, c.Crt...)
	}
	return &rest.Config{
		Host: cl.Endpoint().String(), Dial: dial, QPS: 200, Burst: 400,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca}, UserAgent: "talos/" + n.version(),
	}
}

// adminClient acts as an administrator of the cluster, with a certificate that
// a control plane node signs for itself.
func (n *node) adminClient(dial dialFunc) (*kube.Client, error) {
	conf, err := n.adminConfig(dial)
	if err != nil {
		return nil, err
	}
	return kube.New(conf)
}

func (n *node) adminConfig(dial dialFunc) (*rest.Config, error) {
	pair, err := sign(n.config().Cluster().IssuingCA(),
		x509.CommonName("talos:admin"), x509.Organization("system:masters"), validFor(day), exchange, clientUse)
	if err != nil {
		return nil, fmt.Errorf("signing the node's Kubernetes identity: %w", err)
	}
	conf := n.kubeConfig(dial)
	conf.CertData, conf.KeyData = pair.Crt, pair.Key
	return conf, nil
}

// apiPort is the port of the node's own API server.
func (n *node) apiPort() int { return n.config().Cluster().LocalAPIServerPort() }

// untilDone calls f with a simulated pause between until it succeeds or the
// context ends; it returns false in the second case.
func (n *node) untilDone(ctx context.Context, pause time.Duration, log string, f func(context.Context) error) bool {
	for {
		try, cancel := context.WithTimeout(ctx, 30*time.Second)
		err := f(try)
		cancel()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		n.logOf(log).add(err.Error())
		if n.pause(ctx, pause) != nil {
			return false
		}
	}
}
