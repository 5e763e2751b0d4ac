package talos

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// virtual addresses move between nodes: a kubelet or an etcd that takes one for
// its own would speak for another node after the next move.
func (r rules) virtual(p config.Provider, c *v1alpha1.Config) *breach {
	var vips []netip.Addr
	for _, d := range p.NetworkVirtualIPConfigs() {
		vips = append(vips, d.VIP())
	}
	for _, d := range p.Machine().Network().Devices() {
		if v := d.VIPConfig(); v != nil {
			if a, err := netip.ParseAddr(v.IP()); err == nil {
				vips = append(vips, a)
			}
		}
	}
	filters := map[string][]string{"machine.kubelet.nodeIP.validSubnets": p.Machine().Kubelet().NodeIP().ValidSubnets()}
	if c.ClusterConfig.EtcdConfig != nil {
		filters["cluster.etcd.advertisedSubnets"] = c.ClusterConfig.EtcdConfig.EtcdAdvertisedSubnets
	}
	for _, vip := range vips {
		for _, path := range []string{"machine.kubelet.nodeIP.validSubnets", "cluster.etcd.advertisedSubnets"} {
			if filter := filters[path]; len(filter) > 0 && takes(filter, vip) {
				return &breach{path, fmt.Sprintf("selects the virtual address %s", vip), "it moves between nodes, and the one that holds it could take it for its own", fmt.Sprintf("add '!%s/%d' there", vip, vip.BitLen())}
			}
		}
	}
	return nil
}

// takes says whether a subnet filter would select an address.
func takes(filter []string, address netip.Addr) bool {
	picked := false
	for _, text := range filter {
		text, excluded := strings.CutPrefix(text, "!")
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			single, bad := netip.ParseAddr(text)
			if bad != nil {
				continue // refused by the rule about the filter
			}
			prefix = netip.PrefixFrom(single, single.BitLen())
		}
		if !prefix.Contains(address) {
			continue
		}
		if excluded {
			return false
		}
		picked = true
	}
	return picked
}

// routes: the one default route is what DHCP gives on the private interface,
// and the metadata service is reached by it. A second would compete with it.
func (r rules) routes(p config.Provider, _ *v1alpha1.Config) *breach {
	why := "nodes have one way out, which DHCP on the private network gives them, and two default routes compete"
	for _, link := range p.NetworkCommonLinkConfigs() {
		for _, route := range link.Routes() {
			if to, ok := route.Destination().Get(); !ok || to.Bits() == 0 {
				return &breach{"routes", "of " + link.Name() + " has a default route", why, "name the ranges that the route is for"}
			}
		}
	}
	for _, d := range p.Machine().Network().Devices() {
		for _, route := range d.Routes() {
			if to, err := netip.ParsePrefix(route.Network()); err != nil || to.Bits() == 0 {
				return &breach{"machine.network.interfaces", "of " + d.Interface() + " has a default route", why, "name the ranges that the route is for"}
			}
		}
	}
	return nil
}
