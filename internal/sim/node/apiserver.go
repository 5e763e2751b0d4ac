package node

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/crypto/x509"
)

// apiserver runs the real kube-apiserver of a control plane node, once the
// node's etcd member is well: a learner's is not.
type apiserver struct {
	node *node
	mu   sync.Mutex
	up   bool
}

func (a *apiserver) ready() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.up
}

func (a *apiserver) set(up bool) {
	a.mu.Lock()
	changed := a.up != up
	a.up = up
	a.mu.Unlock()
	if changed {
		a.node.publishStaticPods()
		a.node.refreshStatus()
	}
}

func (a *apiserver) run() {
	n := a.node
	for !n.etcdHealthy() {
		if n.pause(n.ctx, time.Second) != nil {
			return
		}
	}
	if n.delay(n.ctx, imagePullTime) != nil {
		return
	}
	for n.ctx.Err() == nil {
		err := a.once(n.ctx)
		a.set(false)
		if n.ctx.Err() != nil {
			return
		}
		n.tell("kube-apiserver", err)
		n.logOf("kube-apiserver").add("static pod kube-apiserver: " + err.Error())
		if n.pause(n.ctx, serviceRestart) != nil {
			return
		}
	}
}

// etcdHealthy tells whether the last health check of the local member passed.
func (n *node) etcdHealthy() bool {
	for _, s := range n.services.list() {
		if s.Id == "etcd" {
			return s.State == stateRunning && s.Health.Healthy
		}
	}
	return false
}

// once runs the API server until it ends or what it is started with changes.
func (a *apiserver) once(ctx context.Context) error {
	n := a.node
	if err := a.writeFiles(); err != nil {
		return err
	}
	flags, err := a.flags()
	if err != nil {
		return err
	}
	var env []string
	for k, v := range n.config().Cluster().APIServer().Env() {
		env = append(env, k+"="+v)
	}
	c, err := n.launch(append([]string{n.farm.opt.APIServerProgram}, flags...), env, n.logOf("kube-apiserver"))
	if err != nil {
		return err
	}
	launched := time.Now()
	defer n.serve(n.apiPort())()
	probe, err := a.prober()
	if err != nil {
		c.stop(false)
		return err
	}
	before := strings.Join(flags, "\n") + a.fingerprint()
	failures := 0
	for {
		wait := 10 * time.Second
		if err := probe(ctx); err == nil {
			failures = 0
			if !launched.IsZero() {
				n.farm.opt.Clock.Held("kube-apiserver starts", launched)
				launched = time.Time{}
			}
			a.set(true)
		} else if failures++; failures >= 3 || !a.ready() {
			a.set(false)
			wait = 2 * time.Second
		}
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		if flags, err := a.flags(); err == nil && strings.Join(flags, "\n")+a.fingerprint() != before {
			c.stop(true)
			return errors.New("restarted for a changed configuration")
		}
		// Asking costs processor time of the server, so a ready one is asked rarely.
		least := 2 * shortestPoll
		if a.ready() {
			least = time.Second
		}
		t := time.NewTimer(max(n.farm.opt.Clock.Scale(wait), least))
		select {
		case <-c.done:
			t.Stop()
			return fmt.Errorf("%w: %s", cmpErr(c.err), n.logOf("kube-apiserver").last(1))
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-changed:
			t.Stop()
		case <-t.C:
		}
	}
}

// prober returns a check of /readyz over the node's own connection.
func (a *apiserver) prober() (func(context.Context) error, error) {
	n := a.node
	conf, err := n.adminConfig(nil)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(conf.CertData, conf.KeyData)
	if err != nil {
		return nil, err
	}
	pool := stdx509.NewCertPool()
	pool.AppendCertsFromPEM(conf.CAData)
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS12},
	}}
	url := "https://" + netip.AddrPortFrom(n.loopback, uint16(n.apiPort())).String() + "/readyz"
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz: %s", resp.Status)
		}
		return nil
	}, nil
}

// flags renders the API server's flags as Talos does.
func (a *apiserver) flags() ([]string, error) {
	n := a.node
	cl := n.config().Cluster()
	endpoint := cl.Endpoint().String()
	audit := n.varPath("audit")
	own := map[string]string{
		"admission-control-config-file": n.runFile("admission-control-config.yaml"), "allow-privileged": "true",
		"anonymous-auth": "false", "api-audiences": endpoint, "bind-address": n.loopback.String(),
		"client-ca-file": n.runFile("ca.crt"), "enable-admission-plugins": "NodeRestriction",
		"requestheader-client-ca-file": n.runFile("aggregator-ca.crt"), "requestheader-allowed-names": "front-proxy-client",
		"requestheader-extra-headers-prefix": "X-Remote-Extra-", "requestheader-group-headers": "X-Remote-Group",
		"requestheader-username-headers": "X-Remote-User",
		"proxy-client-cert-file":         n.runFile("front-proxy-client.crt"), "proxy-client-key-file": n.runFile("front-proxy-client.key"),
		"enable-bootstrap-token-auth": "true", "tls-min-version": "VersionTLS12",
		"encryption-provider-config": n.runFile("encryptionconfig.yaml"), "audit-policy-file": n.runFile("auditpolicy.yaml"),
		"audit-log-path": filepath.Join(audit, "kube-apiserver.log"), "audit-log-maxage": "30", "audit-log-maxbackup": "10",
		"audit-log-maxsize": "100", "profiling": "false",
		"etcd-cafile": n.runFile("etcd-ca.crt"), "etcd-certfile": n.runFile("etcd-apiserver.crt"), "etcd-keyfile": n.runFile("etcd-apiserver.key"),
		"etcd-servers":               "https://" + netip.AddrPortFrom(n.loopback, etcdClientPort).String(),
		"kubelet-client-certificate": n.runFile("apiserver-kubelet-client.crt"), "kubelet-client-key": n.runFile("apiserver-kubelet-client.key"),
		"secure-port": strconv.Itoa(n.apiPort()), "service-account-issuer": endpoint,
		"service-account-key-file": n.runFile("service-account.pub"), "service-account-signing-key-file": n.runFile("service-account.key"),
		"service-cluster-ip-range": strings.Join(cl.Network().ServiceCIDRs(), ","),
		"tls-cert-file":            n.runFile("apiserver.crt"), "tls-private-key-file": n.runFile("apiserver.key"),
		"kubelet-preferred-address-types": "InternalIP,ExternalIP,Hostname",
	}
	if ip := n.nodeIP(); ip.IsValid() {
		own["advertise-address"] = ip.String()
	}
	extra := cl.APIServer().ExtraArgs()
	byMode := false
	for k := range extra {
		byMode = byMode || k == "authorization-mode" || strings.HasPrefix(k, "authorization-webhook-")
	}
	if byMode {
		own["authorization-mode"] = "Node,RBAC"
	} else {
		own["authorization-config"] = n.runFile("authorization-config.yaml")
	}
	set := newArgs(own).join("enable-admission-plugins", "feature-gates", "authorization-mode", "tls-cipher-suites").deny(
		"etcd-servers", "client-ca-file", "requestheader-client-ca-file", "proxy-client-cert-file", "proxy-client-key-file",
		"encryption-provider-config", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "kubelet-client-certificate", "kubelet-client-key",
		"service-account-key-file", "service-account-signing-key-file", "tls-cert-file", "tls-private-key-file", "authorization-config")
	if err := set.merge(extra); err != nil {
		return nil, err
	}
	// Where it listens is the simulator's own business.
	set.values["bind-address"] = []string{n.loopback.String()}
	return set.flags(), os.MkdirAll(audit, 0o700)
}

// fingerprint covers the files whose change Talos restarts the API server for.
func (a *apiserver) fingerprint() string {
	cl := a.node.config().Cluster()
	raw, _ := json.Marshal([]any{cl.APIServer().AuditPolicy(), admission(cl), authorizers(cl), cl.CertSANs(), cl.APIServer().Image()})
	return string(raw)
}

// writeFiles issues certificates and renders the API server's files.
func (a *apiserver) writeFiles() error {
	n := a.node
	cl := n.config().Cluster()
	ips, err := cl.Network().APIServerIPs()
	if err != nil {
		return err
	}
	var s names
	s.add(cl.Endpoint().Hostname())
	s.add(cl.CertSANs()...)
	s.add("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc."+cl.Network().DNSDomain(), "localhost", n.hostname(), "127.0.0.1")
	s.addAddrs(ips...)
	s.addAddrs(n.addresses()...)
	year := validFor(365 * day)
	server, err := sign(cl.IssuingCA(), x509.CommonName("kube-apiserver"), x509.Organization("kube-master"), x509.IPAddresses(s.ips), x509.DNSNames(s.dns), year, exchange, serverUse)
	if err != nil {
		return fmt.Errorf("API server certificate: %w", err)
	}
	kubelet, err := sign(cl.IssuingCA(), x509.CommonName("apiserver-kubelet-client"), x509.Organization("system:masters"), year, exchange, clientUse)
	if err != nil {
		return fmt.Errorf("kubelet client certificate: %w", err)
	}
	front, err := sign(cl.AggregatorCA(), x509.CommonName("front-proxy-client"), year, exchange, clientUse)
	if err != nil {
		return fmt.Errorf("front proxy certificate: %w", err)
	}
	for name, pair := range map[string]*x509.PEMEncodedCertificateAndKey{"apiserver": server, "apiserver-kubelet-client": kubelet, "front-proxy-client": front} {
		if err := n.writePair(name, pair); err != nil {
			return err
		}
	}
	if cl.ServiceAccount() == nil {
		return errors.New("the configuration has no service account key")
	}
	key, err := cl.ServiceAccount().GetKey()
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	ca := append([]byte(nil), cl.IssuingCA().Crt...)
	for _, c := range cl.AcceptedCAs() {
		ca = append(ca, c.Crt...)
	}
	files := map[string][]byte{
		"ca.crt": ca, "aggregator-ca.crt": cl.AggregatorCA().Crt,
		"service-account.pub": key.GetPublicKeyPEM(), "service-account.key": key.GetPrivateKeyPEM(),
	}
	for name, doc := range map[string]any{
		"encryptionconfig.yaml": encryption(cl), "admission-control-config.yaml": admission(cl),
		"authorization-config.yaml": authorizers(cl), "auditpolicy.yaml": cl.APIServer().AuditPolicy(),
	} {
		if files[name], err = json.Marshal(doc); err != nil {
			return fmt.Errorf("rendering %s: %w", name, err)
		}
	}
	for name, data := range files {
		if err := os.WriteFile(n.runFile(name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
