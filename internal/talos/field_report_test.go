package talos

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
)

// versions are the Talos releases that this build drives, each with a
// Kubernetes that it runs.
var versions = map[string]string{"v1.12.4": "1.35.4", "v1.13.5": "1.36.3"}

// refusedPatch renders a node with one patch, which must be refused.
func refusedPatch(t *testing.T, node, patch string, want ...string) {
	t.Helper()
	e := testEstate(t)
	e.Talos.Patches.Nodes = map[string][]string{node: {write(t, e, "p.yaml", patch)}}
	_, err := render(t, e, node)
	if outcome.CodeOf(err) != outcome.Refused {
		t.Errorf("patch\n%s\ngot %v, want a refusal", patch, err)
		return
	}
	for _, w := range append(want, "p.yaml") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("patch\n%s\nrefusal %q\nlacks %q", patch, err, w)
		}
	}
}

// Field report 08: nodes were configured with one bundle and managed with
// another. No node is configured, and no credential of another bundle is taken
// for ours: a certificate that another authority signed is told from one of ours
// by its signature alone.
func TestFieldReport08CredentialsOfAnotherBundle(t *testing.T) {
	stranger, err := strangersBundle()
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t).up()
	changed := len(s.farm.changes())
	mine := s.cluster.bundle
	// The same nodes, and somebody else's bundle in the environment.
	g, err := blueprint.Build(s.estate, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	limits := quick // nothing is worth waiting for here
	limits.Node, limits.Etcd = 200*time.Millisecond, 200*time.Millisecond
	s.cluster, err = New(Options{Estate: s.estate, Bundle: stranger, Graph: g, Dial: s.farm.dial, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.cluster.Renderer().Complete(g, netip.MustParseAddr("203.0.113.7")); err != nil {
		t.Fatal(err)
	}
	s.graph = g
	_, err = s.observe()
	s.refuses(err, outcome.Refused, "belongs to another cluster", mine.Fingerprint(), stranger.Fingerprint())
	for _, id := range append(slices.Clone(controlPlane), etcdUp, "etcd-members/staging") {
		if err := s.apply(id); err == nil {
			t.Errorf("%s went through with another cluster's bundle", id)
		}
	}
	if n := len(s.farm.changes()); n != changed {
		t.Errorf("%d requests changed something: %v", n-changed, s.farm.changes()[changed:])
	}
}

// Every node of an estate shares the one bundle, whatever its role.
func TestFieldReport08AllNodesShareOneBundle(t *testing.T) {
	e := testEstate(t)
	for _, n := range e.Nodes() {
		c, err := render(t, e, n.Name)
		if err != nil {
			t.Fatal(err)
		}
		m, want := c.provider.RawV1Alpha1(), bundle(t).Machine()
		if m.ClusterConfig.ClusterID != want.Cluster.ID || m.ClusterConfig.ClusterSecret != want.Cluster.Secret || m.MachineConfig.MachineToken != want.TrustdInfo.Token ||
			!bytes.Equal(m.MachineConfig.MachineCA.Crt, want.Certs.OS.Crt) || !bytes.Equal(m.ClusterConfig.ClusterCA.Crt, want.Certs.K8s.Crt) {
			t.Errorf("%s has another identity than the bundle", n.Name)
		}
	}
}

// freeForm are the mappings whose keys are the user's.
var freeForm = []string{"cluster.apiServer.auditPolicy", "cluster.apiServer.admissionControl", "machine.nodeLabels", "machine.nodeTaints", "machine.sysctls", "machine.registries",
	"cluster.apiServer.extraArgs", "cluster.etcd.extraArgs", "machine.kubelet.extraArgs", "machine.kubelet.extraConfig", "machine.nodeAnnotations"}

// Field report 12: a key one level too deep was silently ignored. In every
// mapping of a rendered configuration, a key that does not exist is refused with
// file and key path, and so is the mapping nested inside itself.
func TestFieldReport12UnknownKeysAreRefusedEverywhere(t *testing.T) {
	tried := 0
	for _, node := range []string{"staging-cp-1", "staging-system-1"} {
		c, err := render(t, testEstate(t), node)
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(c.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		var walk func(n *yaml.Node, path []string)
		walk = func(n *yaml.Node, path []string) {
			if n.Kind != yaml.MappingNode || slices.Contains(freeForm, strings.Join(path, ".")) {
				return
			}
			wrong := []string{"noSuchKey"}
			if len(path) > 0 {
				wrong = append(wrong, path[len(path)-1]) // nested inside itself
			}
			for _, key := range wrong {
				tried++
				keys := append(slices.Clone(path), key)
				if len(path) == 0 { // at the top it could be a document of its own
					refusedPatch(t, node, key+": {a: b}\n", "p.yaml:1 is not a patch")
					continue
				}
				refusedPatch(t, node, strings.Join(keys, ": {")+": {a: b}"+strings.Repeat("}", len(keys)-1)+"\n", "p.yaml:1: "+strings.Join(keys, ".")+" is not a key")
			}
			for i := 0; i+1 < len(n.Content); i += 2 {
				walk(n.Content[i+1], append(slices.Clone(path), n.Content[i].Value))
			}
		}
		walk(doc.Content[0], nil)
	}
	if tried < 40 {
		t.Errorf("only %d places were tried", tried)
	}
	for _, patch := range []string{"cluster: {apiServer: {extraArgs: {advertise-address: 0.0.0.0}}}\n", "cluster: {apiServer: {extraArgs: {advertise-address: '::'}}}\n"} {
		refusedPatch(t, "staging-cp-1", patch, "cluster.apiServer.extraArgs.advertise-address")
	}
	refusedPatch(t, "staging-cp-1", "---\napiVersion: v1alpha1\nkind: HostnameConfg\nhostname: a\n", "p.yaml:3", "HostnameConfg")
}

// Field report 18: discovery through Kubernetes does not work since 1.32, and
// health that leans on it calls a healthy etcd wrong. It is off in every
// configuration, cannot be switched on, and nothing here asks it: an estate
// comes up on nodes that serve no cluster health and know no member.
func TestFieldReport18DiscoveryIsOffAndNotNeeded(t *testing.T) {
	for talosVersion, kubernetes := range versions {
		e := testEstate(t)
		e.Talos.Version, e.Kubernetes.Version = talosVersion, kubernetes
		for _, n := range e.Nodes() {
			c, err := render(t, e, n.Name)
			if err != nil {
				t.Fatal(err)
			}
			d := c.provider.Cluster().Discovery()
			if d.Enabled() || d.Registries().Kubernetes().Enabled() || d.Registries().Service().Enabled() {
				t.Errorf("%s %s: discovery is on", talosVersion, n.Name)
			}
		}
	}
	for _, node := range []string{"staging-cp-1", "staging-system-1"} {
		for _, on := range []string{"{enabled: true}", "{registries: {kubernetes: {disabled: false}}}", "{registries: {service: {disabled: false}}}", "{enabled: true, registries: {kubernetes: {disabled: false}, service: {disabled: true}}}",
			"{registries: {kubernetes: {$patch: delete}}}", "{$patch: delete}"} {
			refusedPatch(t, node, "cluster: {discovery: "+on+"}\n", "cluster.discovery")
		}
	}
	s := newScene(t).up()
	if n := len(s.cluster.EtcdHealth(t.Context()).Voters()); n != 3 {
		t.Errorf("%d voters are seen without discovery, want 3", n)
	}
}

// Field report 20: whatever patches carry, what is sent has no comment.
func TestFieldReport20CommentsOfPatchesAreNotSent(t *testing.T) {
	e := testEstate(t)
	e.Talos.Patches.All = []string{write(t, e, "c.yaml", "# a long story\n"+strings.Repeat("# and more of it\n", 2000)+"machine:\n  # why\n  sysctls: {a: b} # here\n")}
	for _, n := range e.Nodes() {
		c, err := render(t, e, n.Name)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Bytes()) > 16<<10 || bytes.Contains(c.Bytes(), []byte("#")) {
			t.Errorf("%s: %d bytes", n.Name, len(c.Bytes()))
		}
	}
}

// Field report 60, the nodes' part: a run that is killed at any request that
// changes a node, before or after the request arrives, is adopted by the next.
// There is one Bootstrap ever, and no node is configured twice.
func TestFieldReport60TheRunAfterAKillAdoptsTheNodes(t *testing.T) {
	kills := 0
	for _, arrives := range []bool{false, true} {
		for n := 1; ; n++ {
			s := newScene(t)
			ctx, kill := context.WithCancel(t.Context())
			seen, dead := 0, false
			for _, node := range s.farm.order {
				die := func(node *fakeNode, method string) error {
					node.farm.mu.Lock()
					defer node.farm.mu.Unlock()
					if method == "ApplyConfiguration" || method == "Bootstrap" {
						seen++
					}
					if dead = dead || seen == n; dead {
						kill()
						return status.Error(codes.Unavailable, "killed")
					}
					return nil
				}
				if arrives {
					node.after = die
				} else {
					node.before = die
				}
			}
			for _, id := range append(slices.Clone(controlPlane), etcdUp, "etcd-members/staging") {
				if err := s.applyIn(ctx, id); err != nil {
					break
				}
			}
			kill()
			for _, node := range s.farm.order {
				s.farm.with(node.name, func(n *fakeNode) { n.before, n.after = nil, nil })
			}
			s.rerun().up()
			if b, a := s.count("Bootstrap"), s.count("ApplyConfiguration"); b != 1 || a != 3 {
				t.Errorf("killed at %d (arrives: %v): %d Bootstraps, %d configurations:\n%s", n, arrives, b, a, strings.Join(s.farm.changes(), "\n"))
			}
			if !dead {
				break
			}
			kills++
		}
	}
	if kills < 8 {
		t.Errorf("%d kills, want each of four requests twice", kills)
	}
	t.Logf("%d kills survived", kills)
}

// applyIn is apply in a run that can be killed.
func (s *scene) applyIn(ctx context.Context, id string) error {
	s.t.Helper()
	step, ok := s.graph.Step(id)
	if !ok {
		return errors.New("no step " + id)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := s.cluster.Apply(ctx, plan.Action{Step: step, Op: plan.Create}, cloud(s.estate))
	return err
}

// Field report 66: a node that has IPv6 only never reads its user data. Here no
// configuration travels by user data at all: nothing of the file or of a patch
// gives a node a configuration but the Talos API inside the private network,
// which is IPv4.
func TestFieldReport66ConfigurationsTravelOverIPv4Only(t *testing.T) {
	e := testEstate(t)
	for _, cidr := range []string{"fd00::/64", "2001:db8::/56", "::/0"} {
		e.Network.CIDR = prefix(cidr)
		if err := estate.Validate(e); err == nil || !strings.Contains(err.Error(), "network.cidr") {
			t.Errorf("%s as the private network: %v", cidr, err)
		}
	}
	s := newScene(t).must("machine/staging-system-1")
	s.transcript("staging-system-1 ApplyConfiguration NO_REBOOT in maintenance")
	for _, n := range s.estate.Nodes() {
		if a := s.cluster.addresses.Nodes[n.Name]; !a.Is4() {
			t.Errorf("%s is reached at %s", n.Name, a)
		}
	}
	for _, patch := range []string{"machine: {kubelet: {nodeIP: {validSubnets: ['2001:db8::/64']}}}\n"} {
		refusedPatch(t, "staging-cp-1", patch, "2001:db8::/64")
	}
}

// Field report 19: a node that took something else for its configuration never
// waits for ours. The wait ends, and says what the node was last seen to do, so
// that the two states can be told apart.
func TestFieldReport19TheWaitSaysWhatItSaw(t *testing.T) {
	for state, want := range map[State]string{Refusing: "connection refused", Unreachable: "no answer in time"} {
		t.Run(string(state), func(t *testing.T) {
			s := newScene(t)
			limits := quick
			limits.Node = 100 * time.Millisecond
			s.with(limits)
			s.farm.with("staging-cp-1", func(n *fakeNode) { n.state = state })
			s.refuses(s.apply("machine/staging-cp-1"), outcome.Failed, "staging-cp-1", string(state), want)
			s.transcript()
		})
	}
}

// Field report 17: volumes that could never be, or that claim a disk twice, are
// refused before anything is sent.
func TestFieldReport17VolumesThatCannotBe(t *testing.T) {
	volume := func(kind, name, provisioning string) string {
		return "---\napiVersion: v1alpha1\nkind: " + kind + "\nname: " + name + "\nprovisioning: " + provisioning + "\n"
	}
	refusedPatch(t, "staging-cp-1", volume("VolumeConfig", "EPHEMERAL", "{maxSize: 2GB}"), "maxSize is below the least size")
	refusedPatch(t, "staging-cp-1", volume("VolumeConfig", "EPHEMERAL", "{minSize: 8GB, maxSize: 6GB}"), "maxSize is below the least size")
	refusedPatch(t, "staging-cp-1", volume("VolumeConfig", "STATE", "{minSize: 2GB, maxSize: 1GB}"))
	refusedPatch(t, "staging-cp-1", volume("VolumeConfig", "EPHEMERAL", "{diskSelector: {match: '!system_disk'}}"), "is not system_disk")
	for _, kind := range []string{"UserVolumeConfig", "RawVolumeConfig"} {
		for _, match := range []string{"system_disk", "!system_disk", "disk.size > 10u * GB"} {
			refusedPatch(t, "staging-cp-1", volume(kind, "data", "{diskSelector: {match: '"+match+"'}, minSize: 5GB}"), kind, "EPHEMERAL takes")
		}
	}
	e := testEstate(t)
	e.Talos.Patches.All = []string{write(t, e, "v.yaml", volume("VolumeConfig", "EPHEMERAL", "{diskSelector: {match: system_disk}, minSize: 4GB, maxSize: 10GB}")+
		volume("UserVolumeConfig", "data", "{diskSelector: {match: system_disk}, minSize: 5GB}"))}
	if _, err := render(t, e, "staging-cp-1"); err != nil {
		t.Errorf("a volume beside an EPHEMERAL of bounded size: %v", err)
	}
}
