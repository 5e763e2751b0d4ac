package talos

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"bastide/internal/estate"
)

// networks: kubelet and etcd stay on the private network.
func (r rules) networks(_ config.Provider, c *v1alpha1.Config) *breach {
	var valid []string
	if c.MachineConfig.MachineKubelet.KubeletNodeIP != nil {
		valid = c.MachineConfig.MachineKubelet.KubeletNodeIP.KubeletNodeIPValidSubnets
	}
	if why := r.selects(valid); why != "" {
		return &breach{"machine.kubelet.nodeIP.validSubnets", why, "the kubelet's address must be the node's in " + r.cidr().String(), "keep to parts of that range that hold the node"}
	}
	want := r.renderer.estate.Network
	if got := c.ClusterConfig.ClusterNetwork; got == nil || !slices.Equal(got.PodSubnet, []string{want.Pods.String()}) || !slices.Equal(got.ServiceSubnet, []string{want.Services.String()}) {
		return &breach{"cluster.network", "has other pod or service ranges", "they are checked against the other ranges in the environment file", "set network.pods and network.services there"}
	}
	if r.node.Role != estate.RoleControlPlane {
		return nil
	}
	if why := r.selects(c.ClusterConfig.EtcdConfig.EtcdAdvertisedSubnets); why != "" {
		return &breach{"cluster.etcd.advertisedSubnets", why, "etcd gives no error when the selection is empty or wrong, it just does not come up", "keep to parts of " + r.cidr().String() + " that hold the node"}
	}
	if listen := c.ClusterConfig.EtcdConfig.EtcdListenSubnets; len(listen) > 0 {
		if why := r.selects(listen); why != "" {
			return &breach{"cluster.etcd.listenSubnets", why, "etcd would not listen where its peers look for it", "keep to parts of " + r.cidr().String() + " that hold the node"}
		}
	}
	return nil
}

// selects says what is wrong with a subnet filter: it must pick the node's own
// private address and nothing outside the private network. A leading ! excludes.
func (r rules) selects(filter []string) string {
	picked := false
	for _, text := range filter {
		text, excluded := strings.CutPrefix(text, "!")
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, bad := netip.ParseAddr(text)
			if bad != nil {
				return fmt.Sprintf("holds %q, which is not an address range", text)
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		holds := prefix.Contains(r.address)
		switch {
		case excluded && holds:
			return "excludes the node's own address " + r.address.String()
		case excluded:
		case prefix.Bits() < r.cidr().Bits() || !r.cidr().Contains(prefix.Addr()):
			return fmt.Sprintf("holds %s, which is not within network.cidr %s: no node address is to be in it", prefix, r.cidr())
		default:
			picked = picked || holds
		}
	}
	if !picked {
		return "selects no address of the node (" + r.address.String() + ")"
	}
	return ""
}

func (r rules) cidr() netip.Prefix { return r.renderer.estate.Network.CIDR.Prefix }

// discovery stays off: the hosted service would be told of every node, and the
// registry in Kubernetes is dead since 1.32.
func (r rules) discovery(p config.Provider, c *v1alpha1.Config) *breach {
	d := c.ClusterConfig.ClusterDiscoveryConfig
	off := func(b *bool) bool { return b != nil && *b }
	switch {
	case d == nil || d.DiscoveryEnabled == nil || *d.DiscoveryEnabled:
		return &breach{"cluster.discovery.enabled", "is on", "the hosted discovery service would learn of every node, and the registry in Kubernetes does not work since 1.32", "remove it"}
	case !off(d.DiscoveryRegistries.RegistryService.RegistryDisabled):
		return &breach{"cluster.discovery.registries.service", "is on", "the hosted discovery service would learn of every node", "remove it"}
	case kubeSpan(p):
		return &breach{"KubeSpanConfig.enabled", "is on", "KubeSpan finds its peers by discovery, which is off", "remove the document"}
	case !off(d.DiscoveryRegistries.RegistryKubernetes.RegistryDisabled):
		return &breach{"cluster.discovery.registries.kubernetes", "is on", "it does not work since Kubernetes 1.32", "remove it"}
	}
	return nil
}

func kubeSpan(p config.Provider) bool {
	k := p.NetworkKubeSpanConfig()
	return k != nil && k.Enabled()
}

// links: one document about a link switches the default DHCP off everywhere.
func (r rules) links(p config.Provider, _ *v1alpha1.Config) *breach {
	var first string
	for _, d := range p.Documents() {
		switch d.Kind() {
		case "DHCPv4Config":
			return nil
		case "LinkConfig", "BondConfig", "BridgeConfig", "VLANConfig", "DHCPv6Config", "DummyLinkConfig", "WireguardConfig", "VRFConfig":
			if first == "" {
				first = d.Kind()
			}
		}
	}
	if first != "" {
		return &breach{first, "stands without a DHCPv4Config", "any document about a link switches the default DHCP off on every interface, and the node would lose its private address", "add a DHCPv4Config for the private interface"}
	}
	return nil
}
