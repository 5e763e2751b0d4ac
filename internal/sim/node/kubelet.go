package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	stdx509 "crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/siderolabs/net"
	certs "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bastide/internal/sim/kube"
)

// kubelet joins the node to its cluster and reports for it. It runs no
// containers: a pod that is bound to the node is said to run after a while.
type kubelet struct {
	node *node
	wake chan struct{}

	// What run alone uses: when it last told the node's status, and the lease as
	// it last renewed it.
	told  time.Time
	lease *coordination.Lease

	mu      sync.Mutex
	have    *kube.Client // with the node's own identity
	cni     bool         // a network plug-in has been started on the node
	podCIDR string
}

func newKubelet(n *node) *kubelet { return &kubelet{node: n, wake: make(chan struct{}, 1)} }

// poke makes the kubelet look at its configuration now.
func (k *kubelet) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *kubelet) run() {
	n := k.node
	n.services.set("kubelet", stateWaiting, `Waiting for service "cri" to be "up", time sync, network`)
	if !n.awaitTime(n.ctx) || n.delay(n.ctx, imagePullTime) != nil {
		return
	}
	n.services.set("kubelet", stateRunning, "Started task kubelet")
	n.services.health("kubelet", true, "Health check successful")
	if !n.untilDone(n.ctx, serviceRestart, "kubelet", k.join) {
		return
	}
	n.spawn(k.runPods)
	for n.ctx.Err() == nil {
		try, cancel := context.WithTimeout(n.ctx, 10*time.Second)
		if err := k.report(try); err != nil && n.ctx.Err() == nil {
			n.logOf("kubelet").add("error updating node status, will retry: " + err.Error())
		}
		cancel()
		t := time.NewTimer(max(n.farm.opt.Clock.Scale(kubeletPeriod), 2*time.Second))
		select {
		case <-n.ctx.Done():
		case <-k.wake:
		case <-t.C:
		}
		t.Stop()
	}
}

// client returns the client with the node's identity, an error before it has one.
func (k *kubelet) client() (*kube.Client, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.have == nil {
		return nil, errors.New("kubelet client config is not ready yet")
	}
	return k.have, nil
}

func (k *kubelet) certFile() string { return k.node.varPath("kubelet-client.pem") }

// join gets the node an identity: the one on its disk, or a new one that it asks
// for with the bootstrap token.
func (k *kubelet) join(ctx context.Context) error {
	pair, err := os.ReadFile(k.certFile())
	if err != nil || !k.usable(pair) {
		if pair, err = k.bootstrap(ctx); err != nil {
			return fmt.Errorf("failed to run Kubelet: %w", err)
		}
		if err := os.WriteFile(k.certFile(), pair, 0o600); err != nil {
			return err
		}
	}
	conf := k.node.kubeConfig(k.node.ownDial)
	conf.CertData, conf.KeyData = pair, pair
	conf.UserAgent = "kubelet/" + imageTag(k.node.config().Machine().Kubelet().Image())
	c, err := kube.New(conf)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.have = c
	k.mu.Unlock()
	return nil
}

// usable tells whether a stored identity is this node's, in time, and of the
// cluster's present authority.
func (k *kubelet) usable(pair []byte) bool {
	block, _ := pem.Decode(pair)
	if block == nil {
		return false
	}
	c, err := stdx509.ParseCertificate(block.Bytes)
	if err != nil || c.Subject.CommonName != "system:node:"+k.node.hostname() {
		return false
	}
	pool := stdx509.NewCertPool()
	pool.AppendCertsFromPEM(k.node.kubeConfig(nil).CAData)
	_, err = c.Verify(stdx509.VerifyOptions{Roots: pool, KeyUsages: []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}})
	return err == nil
}

// bootstrap asks for a client certificate and waits until it is issued.
func (k *kubelet) bootstrap(ctx context.Context) ([]byte, error) {
	n := k.node
	token := n.config().Cluster().Token()
	conf := n.kubeConfig(n.ownDial)
	conf.BearerToken = token.ID() + "." + token.Secret()
	c, err := kube.New(conf)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := stdx509.CreateCertificateRequest(rand.Reader, &stdx509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + n.hostname(), Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		return nil, err
	}
	csrs := c.SigningRequests()
	csr, err := csrs.Create(ctx, &certs.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-csr-"},
		Spec: certs.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certs.KubeAPIServerClientKubeletSignerName,
			Usages: []certs.KeyUsage{certs.UsageDigitalSignature, certs.UsageClientAuth},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create certificate signing request: %w", err)
	}
	for len(csr.Status.Certificate) == 0 {
		if err := n.pause(ctx, time.Second); err != nil {
			return nil, fmt.Errorf("waiting for certificate signing request %s: %w", csr.Name, err)
		}
		if csr, err = csrs.Get(ctx, csr.Name); err != nil {
			return nil, err
		}
	}
	keyDER, err := stdx509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return append(csr.Status.Certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})...), nil
}

// renewLease says that the node is alive. Like the real one it reads the lease
// only when the one that it knows is not the one that is there.
func (k *kubelet) renewLease(ctx context.Context, c *kube.Client) error {
	name := k.node.hostname()
	leases := c.Leases("kube-node-lease")
	now := metav1.NowMicro()
	seconds := int32(leaseDuration / time.Second)
	spec := coordination.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	renew := func(lease *coordination.Lease) error {
		lease.Spec = spec
		renewed, err := leases.Update(ctx, lease)
		if k.lease = renewed; err != nil {
			k.lease = nil
		}
		return err
	}
	if k.lease != nil && renew(k.lease) == nil {
		return nil
	}
	lease, err := leases.Get(ctx, name)
	if isNotFound(err) {
		_, err = leases.Create(ctx, &coordination.Lease{ObjectMeta: metaOf("kube-node-lease", name), Spec: spec})
		return err
	}
	if err != nil {
		return err
	}
	return renew(lease)
}

// nodeIP is the address that the kubelet registers with: the first one in the
// valid subnets. Public addresses are no candidates.
func (n *node) nodeIP() netip.Addr {
	var private []netip.Addr
	for _, nic := range n.hw.NICs {
		if nic.Address.IsValid() {
			private = append(private, nic.Address.Addr())
		}
	}
	if len(private) == 0 {
		private = n.hw.PublicIPs
	}
	cfg := n.config()
	if cfg == nil || cfg.Machine() == nil {
		return first(private)
	}
	subnets := cfg.Machine().Kubelet().NodeIP().ValidSubnets()
	if len(subnets) == 0 {
		return first(private)
	}
	found, err := net.FilterIPs(private, subnets)
	if err != nil {
		return netip.Addr{}
	}
	return first(found)
}

func first(all []netip.Addr) netip.Addr {
	if len(all) == 0 {
		return netip.Addr{}
	}
	return all[0]
}
