package talos

import (
	"bytes"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/vault"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

var born = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// testBundle is made once: generating keys is most of the time of a test.
var testBundle = sync.OnceValues(func() (*vault.Bundle, error) { return vault.Generate("v1.13.5", time.Now()) })

// strangersBundle is another cluster's.
var strangersBundle = sync.OnceValues(func() (*vault.Bundle, error) { return vault.Generate("v1.13.5", born) })

func bundle(t testing.TB) *vault.Bundle {
	t.Helper()
	b, err := testBundle()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func prefix(s string) estate.Prefix { return estate.Prefix{Prefix: netip.MustParsePrefix(s)} }

// testEstate has three control plane nodes and a pool of two workers.
func testEstate(t testing.TB) *estate.Estate {
	t.Helper()
	return &estate.Estate{
		APIVersion: estate.APIVersion, Kind: estate.Kind, Name: "staging", Dir: t.TempDir(),
		Scaleway:     estate.Scaleway{Project: "11111111-1111-4111-8111-111111111111", Region: "fr-par", Zones: []string{"fr-par-1"}},
		Talos:        estate.Talos{Version: "v1.13.5", Extensions: []string{"siderolabs/gvisor", "siderolabs/kata-containers"}},
		Kubernetes:   estate.Kubernetes{Version: "1.36.3"},
		Network:      estate.Network{Mode: "private", CIDR: prefix("172.16.0.0/22"), Pods: prefix("10.244.0.0/16"), Services: prefix("10.96.0.0/12")},
		API:          estate.API{LoadBalancer: "LB-S", Names: []string{"k8s.staging.example.org"}},
		ControlPlane: estate.ControlPlane{Count: 3, Type: "PLAY2-NANO", Disk: estate.Disk{Size: 20e9, IOPS: 5000}},
		Pools: []estate.Pool{{Name: "system", Count: 2, Type: "PLAY2-MICRO", Disk: estate.Disk{Size: 40e9, IOPS: 5000},
			Labels: map[string]string{"role": "system"}, Taints: []estate.Taint{{Key: "dedicated", Value: "system", Effect: "NoSchedule"}, {Key: "slow", Effect: "NoExecute"}}}},
	}
}

func testAddresses(e *estate.Estate) Addresses {
	g, err := blueprint.Build(e, nil, nil)
	if err != nil {
		panic(err)
	}
	return AddressesOf(g, e, netip.MustParseAddr("203.0.113.7"))
}

func nodeNamed(e *estate.Estate, name string) estate.Node {
	nodes := e.Nodes()
	return nodes[slices.IndexFunc(nodes, func(n estate.Node) bool { return n.Name == name })]
}

func render(t testing.TB, e *estate.Estate, name string) (Config, error) {
	t.Helper()
	r, err := NewRenderer(e, bundle(t))
	if err != nil {
		return Config{}, err
	}
	return r.Node(nodeNamed(e, name), testAddresses(e))
}

func write(t testing.TB, e *estate.Estate, name, text string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(e.Dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// volatile is what differs between bundles in a redacted configuration.
var volatile = regexp.MustCompile(`(?m)^( +)(crt|id): .*$`)

func TestGoldenConfigurations(t *testing.T) {
	e := testEstate(t)
	e.Pools[0].Ephemeral = &estate.Disk{Size: 60e9}
	e.Kubernetes.Etcd = estate.Etcd{Quota: 4 << 30, ExtraArgs: map[string]string{"auto-compaction-retention": "1h"}}
	e.Kubernetes.APIServer.ExtraArgs = map[string]string{"goaway-chance": "0.001"}
	e.Kubernetes.APIServer.AuditPolicy = write(t, e, "audit.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n")
	e.Kubernetes.Admission = []estate.AdmissionPlugin{
		{Name: "PodSecurity", Configuration: write(t, e, "pss.yaml", "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\ndefaults: {enforce: restricted}\n")},
		{Name: "EventRateLimit", Configuration: write(t, e, "rate.yaml", "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: [{type: Server, qps: 50, burst: 100}]\n")},
	}
	e.Kubernetes.Kubelet = estate.Kubelet{ExtraArgs: map[string]string{"v": "2"}, ExtraConfig: map[string]any{"maxPods": 200}}
	for _, name := range []string{"staging-cp-1", "staging-system-2"} {
		t.Run(name, func(t *testing.T) {
			c, err := render(t, e, name)
			if err != nil {
				t.Fatal(err)
			}
			redacted, err := encode(c.provider.RedactSecrets(vault.Mask))
			if err != nil {
				t.Fatal(err)
			}
			got := volatile.ReplaceAll(redacted, []byte("${1}${2}: (of the bundle)"))
			for _, s := range bundle(t).Secrets() {
				if bytes.Contains(got, []byte(s.Reveal())) {
					t.Fatal("a secret is left in the redacted configuration")
				}
			}
			golden := filepath.Join("testdata", name+".yaml")
			if *rewrite {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("configuration differs from %s; run with -rewrite and review:\n%s", golden, got)
			}
		})
	}
}

func TestEveryNodeRendersValidAndTheSameTwice(t *testing.T) {
	for _, version := range []string{"v1.13.5", "v1.12.3"} {
		e := testEstate(t)
		e.Talos.Version, e.Kubernetes.Version = version, "1.34.2"
		for _, n := range e.Nodes() {
			first, err := render(t, e, n.Name)
			if err != nil {
				t.Fatal(err)
			}
			second, err := render(t, e, n.Name)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first.Bytes(), second.Bytes()) || first.Digest != second.Digest {
				t.Errorf("%s %s: two renderings differ", version, n.Name)
			}
			if d, err := Digest(first.Bytes()); err != nil || d != first.Digest {
				t.Errorf("%s %s: digest %s of the bytes, %s of the rendering, %v", version, n.Name, d, first.Digest, err)
			}
			if bytes.Contains(first.Bytes(), []byte("#")) {
				t.Errorf("%s %s: the configuration has comments", version, n.Name)
			}
			if size := len(first.Bytes()); size > 16<<10 {
				t.Errorf("%s %s: %d bytes without any patch", version, n.Name, size)
			}
			if len(first.Warnings) > 0 {
				t.Errorf("%s %s: warnings %q", version, n.Name, first.Warnings)
			}
			p, err := configloader.NewFromBytes(first.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Validate(cloudMode{}, validation.WithLocal(), validation.WithStrict()); err != nil {
				t.Errorf("%s %s: %v", version, n.Name, err)
			}
		}
	}
}

// Field report 13: names and addresses by which the API is reached are in both
// certificates' lists.
func TestFieldReport13CertificatesNameEveryWayIn(t *testing.T) {
	e := testEstate(t)
	a := testAddresses(e)
	c, err := render(t, e, "staging-cp-2")
	if err != nil {
		t.Fatal(err)
	}
	for _, san := range []string{a.API.String(), "203.0.113.7", "127.0.0.1", "k8s.staging.example.org", a.Nodes["staging-cp-1"].String(), a.Nodes["staging-cp-2"].String()} {
		if !slices.Contains(c.provider.Machine().Security().CertSANs(), san) {
			t.Errorf("machine.certSANs lacks %s", san)
		}
		if !slices.Contains(c.provider.RawV1Alpha1().ClusterConfig.APIServerConfig.CertSANs, san) {
			t.Errorf("cluster.apiServer.certSANs lacks %s", san)
		}
	}
	a.API = netip.MustParseAddr("172.16.0.200")
	r, err := NewRenderer(e, bundle(t))
	if err != nil {
		t.Fatal(err)
	}
	moved, err := r.Node(nodeNamed(e, "staging-cp-2"), a)
	if err != nil {
		t.Fatal(err)
	}
	if moved.Digest == c.Digest {
		t.Error("another load balancer address does not change the digest")
	}
	w, err := render(t, e, "staging-system-1")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(w.provider.Machine().Security().CertSANs(), "203.0.113.7") {
		t.Error("the worker's certificate lacks the gateway's address")
	}
}

// Field report 20: configurations carry neither comments nor examples, and a
// size that no limit of a cloud or of Talos comes near.
func TestFieldReport20ConfigurationsAreSmall(t *testing.T) {
	c, err := render(t, testEstate(t), "staging-cp-1")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.Bytes()); n > 16<<10 || bytes.Contains(c.Bytes(), []byte("#")) {
		t.Errorf("%d bytes", n)
	}
	// What counts is the size of what comes out, not of the files that it is made of.
	manifests := "{name: m0, contents: &big '" + strings.Repeat("a", 900<<10) + "'}"
	for i := range MaxConfig / (900 << 10) {
		manifests += fmt.Sprintf(", {name: n%d, contents: *big}", i)
	}
	e := testEstate(t)
	e.Talos.Patches.ControlPlane = append(e.Talos.Patches.ControlPlane, write(t, e, "big.yaml", "cluster: {inlineManifests: ["+manifests+"]}\n"))
	_, err = render(t, e, "staging-cp-1")
	if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), fmt.Sprint(MaxConfig)) {
		t.Errorf("a huge configuration: %.200v", err)
	}
}

// Field report 22: a private node leaves its default route to DHCP on the
// private interface; any document about links or routes would change that.
func TestFieldReport22TheDefaultRouteIsLeftToDHCP(t *testing.T) {
	e := testEstate(t)
	for _, n := range e.Nodes() {
		c, err := render(t, e, n.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range c.provider.Documents() {
			if !slices.Contains([]string{"v1alpha1", "HostnameConfig", "VolumeConfig", "NetworkDefaultActionConfig", "NetworkRuleConfig"}, d.Kind()) {
				t.Errorf("%s has a %s", n.Name, d.Kind())
			}
		}
		if net := c.provider.RawV1Alpha1().MachineConfig.MachineNetwork; net != nil && len(net.NetworkInterfaces) > 0 {
			t.Errorf("%s has interfaces: %v", n.Name, net.NetworkInterfaces)
		}
	}
}

func TestNothingForControlPlanesOnlyReachesAWorker(t *testing.T) {
	w, err := render(t, testEstate(t), "staging-system-1")
	if err != nil {
		t.Fatal(err)
	}
	m := bundle(t).Machine()
	for name, secret := range map[string]string{
		"secretbox key": m.Secrets.SecretboxEncryptionSecret, "etcd": string(m.Certs.Etcd.Crt),
	} {
		if bytes.Contains(w.Bytes(), []byte(secret)) {
			t.Errorf("a worker is sent the %s", name)
		}
	}
	for _, key := range []string{"aggregatorCA", "serviceAccount", "etcd:", "apiServer", "controllerManager", "scheduler:"} {
		if bytes.Contains(w.Bytes(), []byte(key)) {
			t.Errorf("a worker is sent %s", key)
		}
	}
}

func TestConfigHidesItself(t *testing.T) {
	c, err := render(t, testEstate(t), "staging-cp-1")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%v %+v %#v %s", c, c, c, c)
	for _, s := range bundle(t).Secrets() {
		if strings.Contains(text, s.Reveal()) {
			t.Fatal("printing a configuration shows a secret")
		}
	}
}

func TestCompleteFillsDigestsOnceTheGatewayIsKnown(t *testing.T) {
	e := testEstate(t)
	g, err := blueprint.Build(e, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRenderer(e, bundle(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Complete(g, netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	step, _ := g.Step("machine/staging-cp-1")
	if m := step.Spec.(blueprint.Machine); m.Digest != "" || m.Pending == "" {
		t.Errorf("before the gateway is known: %+v", m)
	}
	e.Talos.Patches.All = []string{write(t, e, "odd.yaml", "machine: {typo: 1}\n")}
	odd, err := NewRenderer(e, bundle(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := odd.Complete(g, netip.Addr{}); outcome.CodeOf(err) != outcome.Refused {
		t.Errorf("a patch that does not fit is not refused before the gateway is there: %v", err)
	}
	if _, err := r.Complete(g, netip.MustParseAddr("203.0.113.7")); err != nil {
		t.Fatal(err)
	}
	step, _ = g.Step("machine/staging-cp-1")
	if m := step.Spec.(blueprint.Machine); !strings.HasPrefix(m.Digest, "sha256:") || m.Pending != "" {
		t.Errorf("after: %+v", m)
	}
	if _, err := r.Node(nodeNamed(e, "staging-cp-1"), Addresses{}); outcome.CodeOf(err) != outcome.Unknown {
		t.Errorf("without addresses: %v", err)
	}
}

func TestFilesThatTheEstateNames(t *testing.T) {
	cases := []struct {
		name string
		set  func(*testing.T, *estate.Estate)
		want string
	}{
		{"missing patch", func(_ *testing.T, e *estate.Estate) { e.Talos.Patches.All = []string{"none.yaml"} }, "could not read none.yaml"},
		{"audit policy of another kind", func(t *testing.T, e *estate.Estate) {
			e.Kubernetes.APIServer.AuditPolicy = write(t, e, "a.yaml", "apiVersion: v1\nkind: ConfigMap\n")
		}, "it is a ConfigMap of v1, not a Policy of audit.k8s.io/v1"},
		{"empty admission", func(t *testing.T, e *estate.Estate) {
			e.Kubernetes.Admission = []estate.AdmissionPlugin{{Name: "PodSecurity", Configuration: write(t, e, "p.yaml", "{}")}}
		}, "it is empty"},
		{"not an object", func(t *testing.T, e *estate.Estate) {
			e.Kubernetes.APIServer.AuditPolicy = write(t, e, "a.yaml", "- a\n")
		}, "not a YAML object"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := testEstate(t)
			c.set(t, e)
			_, err := NewRenderer(e, bundle(t))
			if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
