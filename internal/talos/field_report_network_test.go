package talos

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	documents "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"

	"bastide/internal/estate"
	"bastide/internal/outcome"
)

// Field report 14: the kubelet took the virtual address, or one of the wrong
// family. On every node the filter is the private network, never empty, and a
// patch can only narrow it; a virtual address has to be excluded.
func TestFieldReport14KubeletStaysOnThePrivateNetwork(t *testing.T) {
	for talosVersion, kubernetes := range versions {
		e := testEstate(t)
		e.Talos.Version, e.Kubernetes.Version = talosVersion, kubernetes
		for _, n := range e.Nodes() {
			c, err := render(t, e, n.Name)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.provider.Machine().Kubelet().NodeIP().ValidSubnets(); !slices.Equal(got, []string{"172.16.0.0/22"}) {
				t.Errorf("%s %s: validSubnets %v", talosVersion, n.Name, got)
			}
		}
	}
	subnets := func(s string) string { return "machine: {kubelet: {nodeIP: {validSubnets: " + s + "}}}\n" }
	for _, node := range []string{"staging-cp-1", "staging-system-1"} {
		for _, filter := range []string{"['0.0.0.0/0']", "['::/0']", "['fd00::/8']", "['2001:db8::/32', '172.16.0.0/22']", "['!172.16.0.0/22']", "['10.0.0.0/8']", "['172.16.0.0/21']", "['']", "[x]", "['100.64.0.0/10']"} {
			refusedPatch(t, node, subnets(filter), "machine.kubelet.nodeIP.validSubnets")
		}
		refusedPatch(t, node, "machine: {kubelet: {nodeIP: {$patch: delete}}}\n", "machine.kubelet.nodeIP.validSubnets")
	}
	vip := "---\napiVersion: v1alpha1\nkind: Layer2VIPConfig\nname: 172.16.0.9\nlink: eth1\n"
	old := "machine: {network: {interfaces: [{interface: eth1, dhcp: true, vip: {ip: 172.16.0.9}}]}}\n"
	for _, patch := range []string{vip, old} {
		refusedPatch(t, "staging-cp-1", patch, "selects the virtual address 172.16.0.9", "'!172.16.0.9/32'")
	}
	e := testEstate(t)
	e.Talos.Patches.ControlPlane = []string{write(t, e, "vip.yaml", subnets("['!172.16.0.9/32']")+"cluster: {etcd: {advertisedSubnets: ['!172.16.0.9/32']}}\n"+vip)}
	if _, err := render(t, e, "staging-cp-1"); err != nil {
		t.Errorf("a virtual address that is excluded: %v", err)
	}
}

// Field report 15: an etcd filter that matches no address of the node gives no
// error there. Here it is refused before anything is sent.
func TestFieldReport15EtcdSubnetsThatMatchNothing(t *testing.T) {
	for _, key := range []string{"advertisedSubnets", "listenSubnets"} {
		for _, filter := range []string{"[10.9.0.0/24]", "['172.16.2.0/24']", "['!172.16.0.0/22']", "['fd00::/64']", "[0.0.0.0/0]", "['172.16.0.200']", "[nonsense]"} {
			e := testEstate(t)
			text := "cluster: {etcd: {" + key + ": " + filter + "}}\n"
			if key == "advertisedSubnets" { // merging adds to the list, so take what is there away first
				e.Talos.Patches.ControlPlane = []string{write(t, e, "a.yaml", "cluster: {etcd: {advertisedSubnets: {$patch: delete}}}\n")}
			}
			e.Talos.Patches.Nodes = map[string][]string{"staging-cp-1": {write(t, e, "p.yaml", text)}}
			if _, err := render(t, e, "staging-cp-1"); outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), "cluster.etcd."+key) && !strings.Contains(err.Error(), "cluster.etcd.advertisedSubnets") {
				t.Errorf("%s %s: %v", key, filter, err)
			}
		}
	}
	refusedPatch(t, "staging-cp-1", "cluster: {etcd: {advertisedSubnets: [10.9.0.0/24]}}\n", "no node address is to be in it", "10.9.0.0/24")
	for _, n := range testEstate(t).Nodes() {
		c, err := render(t, testEstate(t), n.Name)
		if err != nil {
			t.Fatal(err)
		}
		if n.Role == estate.RoleControlPlane && !slices.Equal(c.provider.RawV1Alpha1().ClusterConfig.EtcdConfig.EtcdAdvertisedSubnets, []string{"172.16.0.0/22"}) {
			t.Errorf("%s advertises %v", n.Name, c.provider.RawV1Alpha1().ClusterConfig.EtcdConfig.EtcdAdvertisedSubnets)
		}
	}
}

// Field report 22: a second default route competes with the one from DHCP, and
// takes the metadata service with it. No patch can bring one.
func TestFieldReport22NoPatchBringsASecondDefaultRoute(t *testing.T) {
	dhcp := "---\napiVersion: v1alpha1\nkind: DHCPv4Config\nname: eth1\n"
	link := func(kind, more, routes string) string {
		return "---\napiVersion: v1alpha1\nkind: " + kind + "\nname: eth1\n" + more + "routes: " + routes + "\n"
	}
	for _, patch := range []string{
		link("LinkConfig", "", "[{gateway: 172.16.0.1}]") + dhcp, link("LinkConfig", "", "[{destination: 0.0.0.0/0, gateway: 172.16.0.1, metric: 1}]") + dhcp,
		link("LinkConfig", "", "[{destination: '::/0', gateway: 'fd00::1'}]") + dhcp,
		link("VLANConfig", "vlanID: 4\nparent: eth0\n", "[{gateway: 172.16.0.1}]") + dhcp,
		"machine: {network: {interfaces: [{interface: eth0, dhcp: true, routes: [{network: 0.0.0.0/0, gateway: 172.16.0.1}]}]}}\n",
		"machine: {network: {interfaces: [{interface: eth0, dhcp: true, routes: [{network: '::/0', gateway: 'fd00::1'}]}]}}\n",
	} {
		refusedPatch(t, "staging-system-1", patch, "has a default route")
	}
	refusedPatch(t, "staging-system-1", "---\napiVersion: v1alpha1\nkind: LinkConfig\nname: eth1\nmtu: 1400\n", "switches the default DHCP off")
	e := testEstate(t)
	e.Talos.Patches.Workers = []string{write(t, e, "r.yaml", link("LinkConfig", "", "[{destination: 10.50.0.0/16, gateway: 172.16.0.50}]")+dhcp)}
	if _, err := render(t, e, "staging-system-1"); err != nil {
		t.Errorf("a route to one range: %v", err)
	}
}

// Field report 37: security groups do not filter inside the private network. The
// nodes' own firewall does: it blocks by default on every node, opens nothing to
// the world, and etcd to control plane nodes alone. It is no document about a
// link, which would switch the default DHCP off.
func TestFieldReport37NodesFilterPrivateTraffic(t *testing.T) {
	for version, kubernetes := range versions {
		e := testEstate(t)
		e.Talos.Version, e.Kubernetes.Version = version, kubernetes
		a := testAddresses(e)
		var voters []netip.Prefix
		for _, n := range e.Nodes() {
			if n.Role == estate.RoleControlPlane {
				voters = append(voters, netip.PrefixFrom(a.Nodes[n.Name], 32))
			}
		}
		private, pods := e.Network.CIDR.Prefix, e.Network.Pods.Prefix
		worker := map[string][]netip.Prefix{"tcp 50000-50000": {private}, "tcp 10250-10250": {private, pods}, "udp 4789-4789": {private}}
		control := map[string][]netip.Prefix{"tcp 50001-50001": {private}, "tcp 6443-6443": {private, pods}, "tcp 2379-2380": voters}
		maps.Copy(control, worker)
		for _, n := range e.Nodes() {
			c, err := render(t, e, n.Name)
			if err != nil {
				t.Fatal(err)
			}
			p := c.provider
			if p.NetworkRules().DefaultAction() != nethelpers.DefaultActionBlock {
				t.Errorf("%s %s: the default is %s", version, n.Name, p.NetworkRules().DefaultAction())
			}
			if !p.RunDefaultDHCPOperators() {
				t.Errorf("%s %s: the default DHCP is off", version, n.Name)
			}
			if !p.Machine().Features().KubePrism().Enabled() || !p.Machine().Features().HostDNS().ForwardKubeDNSToHost() {
				t.Errorf("%s %s: KubePrism or the host's DNS for pods is off", version, n.Name)
			}
			got := map[string][]netip.Prefix{}
			for _, rule := range p.NetworkRules().Rules() {
				for _, ports := range rule.PortRanges() {
					got[fmt.Sprintf("%s %d-%d", rule.Protocol(), ports[0], ports[1])] = rule.Subnets()
				}
				for _, from := range rule.Subnets() {
					if from != private && from != pods && !slices.Contains(voters, from) {
						t.Errorf("%s %s: open to %s", version, n.Name, from)
					}
				}
			}
			want := worker
			if n.Role == estate.RoleControlPlane {
				want = control
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s: open are\n%v\nwant\n%v", version, n.Name, got, want)
			}
		}
	}
}

// A node that is there already gets its firewall without a reboot.
func TestFieldReport37TheFirewallComesWithoutReboot(t *testing.T) {
	for _, name := range []string{"staging-cp-1", "staging-system-1"} {
		c, err := render(t, testEstate(t), name)
		if err != nil {
			t.Fatal(err)
		}
		var before []documents.Document
		for _, d := range c.provider.Documents() {
			if d.Kind() != network.DefaultActionConfig && d.Kind() != network.RuleConfigKind {
				before = append(before, d)
			}
		}
		old, err := container.New(before...)
		if err != nil {
			t.Fatal(err)
		}
		text, err := encode(old)
		if err != nil {
			t.Fatal(err)
		}
		mode, err := modeFor(text, c.Bytes())
		if err != nil || mode != WithoutReboot {
			t.Errorf("%s: %s, %v", name, mode, err)
		}
		change, err := Compare(text, c.Bytes())
		if err != nil || !slices.Contains(change.Lines, "+kind: NetworkDefaultActionConfig") {
			t.Errorf("%s: %v, %v", name, change.Lines, err)
		}
	}
}
