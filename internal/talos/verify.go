package talos

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"bastide/internal/estate"
)

// Check is one thing that was compared on a running node.
type Check struct {
	Node string `json:"node"`
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Want string `json:"want"`
	Have string `json:"have"`
	Fix  string `json:"fix,omitempty"` // what to do when it is not OK

	passing   bool // it is not OK and may come right by itself, as while a node restarts
	elsewhere bool
}

// Own says whether nothing but the checks looks at this. The others repeat what
// plan and status show in their own way: identity, configuration, and what etcd
// and Kubernetes say of the node.
func (c Check) Own() bool { return !c.elsewhere }

// Verify reads from the running nodes what the file asks for and what only
// they can tell: it does not trust that applying was enough. gateway is the
// gateway's public address. Checks come in the order of the nodes. A node that
// cannot be read is a failed check, never an omitted one; what a restart would
// explain is looked at again for a while. Nodes that are off are named, and are
// not waited for.
func (c *Cluster) Verify(ctx context.Context, gateway netip.Addr, off ...string) []Check {
	var checks []Check
	_ = c.until(ctx, c.limits.Patience, func(ctx context.Context) error {
		seen := c.verify(ctx, gateway, off)
		if ctx.Err() != nil && checks != nil {
			return nil
		}
		checks = seen
		if slices.ContainsFunc(checks, func(k Check) bool { return k.passing }) {
			return nil
		}
		return errStop
	}, func(time.Duration) error { return nil })
	return checks
}

// verify asks nodes, etcd and Kubernetes at the same time.
func (c *Cluster) verify(ctx context.Context, gateway netip.Addr, off []string) []Check {
	nodes := c.estate.Nodes()
	verifiers := make([]*verifier, len(nodes))
	var kube []KubernetesNode
	var kubeErr error
	var health EtcdHealth
	var others sync.WaitGroup
	others.Go(func() { kube, kubeErr = c.KubernetesNodes(ctx) })
	others.Go(func() { health = c.EtcdHealth(ctx, off...) })
	inTurn(len(nodes), atOnce, func(i int) {
		verifiers[i] = &verifier{c: c, node: nodes[i], gateway: gateway}
		verifiers[i].all(ctx, slices.Contains(off, nodes[i].Name))
	})
	others.Wait()
	var checks []Check
	for _, v := range verifiers {
		v.kubernetes(kube, kubeErr)
		if v.node.Role == estate.RoleControlPlane {
			v.etcd(health)
		}
		checks = append(checks, v.checks...)
	}
	return checks
}

// Failed are the checks that are not OK.
func Failed(checks []Check) []Check {
	var out []Check
	for _, c := range checks {
		if !c.OK {
			out = append(out, c)
		}
	}
	return out
}

type verifier struct {
	c       *Cluster
	node    estate.Node
	gateway netip.Addr
	checks  []Check
}

func (v *verifier) add(name string, ok bool, want, have, fix string) {
	if ok {
		fix = ""
	}
	v.checks = append(v.checks, Check{Node: v.node.Name, Name: name, OK: ok, Want: want, Have: have, Fix: fix})
}

// perhaps marks the last check as one that may come right by itself.
func (v *verifier) perhaps() {
	last := &v.checks[len(v.checks)-1]
	last.passing = !last.OK
}

// elsewhere marks the last check as one that plan and status make too.
func (v *verifier) elsewhere() { v.checks[len(v.checks)-1].elsewhere = true }

// unread records that something could not be read, which is not OK.
func (v *verifier) unread(name, want string, err error) {
	v.add(name, false, want, "could not be read: "+err.Error(), "bring the node back, then check again")
	v.perhaps()
}

// all asks the node itself.
func (v *verifier) all(ctx context.Context, off bool) {
	if off {
		v.add("cluster", false, v.c.bundle.Fingerprint(), machineOff, "switch it on with `bastide up`")
		v.elsewhere()
		return
	}
	seen, s, err := v.c.visit(ctx, v.node)
	v.add("cluster", seen.state == Ours, v.c.bundle.Fingerprint(), identity(seen), "use the secrets bundle of this cluster")
	v.elsewhere()
	if seen.state != Ours {
		if seen.state != Foreign {
			v.perhaps()
		}
		return
	}
	named := seen.leaf.VerifyHostname(v.gateway.String())
	v.add("certificate holds the gateway's address", named == nil, v.gateway.String(), certificateNames(seen), unsigned)
	v.perhaps() // a worker serves its old certificate until a control plane node has signed the next
	if err != nil {
		v.unread("Talos API", "answers", err)
		return
	}
	defer s.close()
	v.version(ctx, s)
	v.schematic(ctx, s)
	v.configuration(ctx, s)
	v.ephemeral(ctx, s)
	v.nodeIP(ctx, s)
	v.discovery(ctx, s)
}

// unsigned is what to do about a certificate without the gateway's address.
const unsigned = "run `bastide up`: the address belongs in machine.certSANs; if nothing is to be changed, the node was given no new certificate: " +
	"`talosctl logs controller-runtime` says why, for a worker that no control plane node answers on port 50001, and `talosctl reboot` makes it ask again"

func identity(seen contact) string {
	if seen.fingerprint != "" {
		return seen.fingerprint
	}
	return strings.TrimSpace(string(seen.state) + " " + seen.why)
}

func certificateNames(seen contact) string {
	var out []string
	for _, ip := range seen.leaf.IPAddresses {
		out = append(out, ip.String())
	}
	return strings.Join(append(out, seen.leaf.DNSNames...), " ")
}

func (v *verifier) kubernetes(nodes []KubernetesNode, err error) {
	version, address := "v"+v.c.estate.Kubernetes.Version, v.c.addresses.Nodes[v.node.Name].String()
	if err != nil {
		v.unread("Kubernetes node", "Ready", err)
		v.elsewhere()
		return
	}
	i := slices.IndexFunc(nodes, func(n KubernetesNode) bool { return n.Name == v.node.Name })
	if i < 0 {
		v.add("Kubernetes node", false, "Ready", "it has not joined", "look at its kubelet with `talosctl logs kubelet`")
		v.perhaps()
		v.elsewhere()
		return
	}
	n := nodes[i]
	v.add("Kubernetes node", n.Ready, "Ready", strings.TrimSpace(map[bool]string{true: "Ready", false: "not Ready"}[n.Ready]+" "+n.Why), "look at it with `kubectl describe node "+n.Name+"`")
	v.perhaps()
	v.elsewhere()
	v.add("Kubernetes version", n.KubeletVersion == version, version, n.KubeletVersion, "upgrade Kubernetes, or set kubernetes.version to what runs")
	v.add("Kubernetes address", slices.Equal(n.InternalIPs, []string{address}), address, strings.Join(n.InternalIPs, " "), "run `bastide up`: machine.kubelet.nodeIP.validSubnets binds the kubelet")
}

func (v *verifier) etcd(h EtcdHealth) {
	have := serviceOf(h, v.node.Name)
	ok := h.Split == "" && holds(h.Members, v.node.Name)
	if h.Split != "" {
		have = h.Split
	}
	v.add("etcd voter", ok, "a healthy voter", have, "look at it with `talosctl logs etcd`")
	v.perhaps()
	v.elsewhere()
}

// LiveFingerprint is the identity of the live estate, asked of the nodes that
// answer. It is empty when none does. Nodes of two clusters are an error.
func (c *Cluster) LiveFingerprint(ctx context.Context) (string, error) {
	nodes := c.estate.Nodes()
	seen := make([]contact, len(nodes))
	inTurn(len(nodes), atOnce, func(i int) { seen[i] = c.meet(ctx, c.addresses.Nodes[nodes[i].Name]) })
	found := ""
	for i, s := range seen {
		switch {
		case s.fingerprint == "":
		case found == "":
			found = s.fingerprint
		case found != s.fingerprint:
			return "", fmt.Errorf("%s is of cluster %s and others are of %s", nodes[i].Name, s.fingerprint, found)
		}
	}
	return found, ctx.Err()
}
