package estate

import (
	"fmt"
	"net/netip"
)

// Facts about Scaleway's Private Networks (their documentation on creating one
// and on VPC limits) and about Kubernetes' ranges.
const (
	widestNetwork   = 20  // prefix length; the console offers /20 to /28
	smallestNetwork = 28  // prefix length
	heldAddresses   = 4   // the first two and last two of a Private Network are never given out
	maxAttached     = 512 // resources that one Private Network holds
	nodePodBits     = 24  // each node gets a /24 of the pod range
	widestServices  = 12  // kube-apiserver takes at most 20 bits of service addresses
	smallestRange   = 24  // the fewest addresses for pods (one node) and services
)

// The offers and modes that bastide builds with.
var (
	gatewayTypes      = []string{"VPC-GW-S", "VPC-GW-M", "VPC-GW-L", "VPC-GW-XL"}
	loadBalancerTypes = []string{"LB-S", "LB-GP-M", "LB-GP-L", "LB-GP-XL"}
	networkModes      = []string{"private"}
)

var privateRanges = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
}

// namedRange is a range with the path that it has in the file.
type namedRange struct {
	path  string
	value Prefix
}

func (s *source) validateNetwork(n *Network) {
	s.oneOf("network.mode", n.Mode, networkModes, "this version of bastide builds private estates only: nodes have no public address")
	s.oneOf("network.gateway.type", n.Gateway.Type, gatewayTypes, "Scaleway offers no such public gateway")

	ranges := []namedRange{{"network.cidr", n.CIDR}, {"network.pods", n.Pods}, {"network.services", n.Services}}
	var sound []namedRange
	for _, r := range ranges {
		if r.value.IsValid() && s.validatePrivateRange(r) {
			sound = append(sound, r)
		}
	}
	s.prefixLength(ranges[0], widestNetwork, smallestNetwork, "that is the size of a Private Network at Scaleway")
	s.prefixLength(ranges[1], 8, smallestRange, "each node takes a /24 of it")
	s.prefixLength(ranges[2], widestServices, smallestRange, "kube-apiserver takes no more than 20 bits, and fewer than 256 services are soon used up")

	for i, a := range sound {
		for _, b := range sound[:i] {
			if a.value.Overlaps(b.value.Prefix) {
				s.refuse(a.path, fmt.Sprintf("%s overlaps %s (%s)", s.written(a), b.path, s.written(b)),
					"an address in both could be reached in one of them only", "choose ranges that are apart")
			}
		}
	}
}

// written is the range, and says when it is a default that nobody wrote.
func (s *source) written(r namedRange) string {
	if _, ok := s.at[r.path]; !ok && len(s.at) > 0 {
		return "the default " + r.value.String()
	}
	return r.value.String()
}

// validatePrivateRange refuses what is not private IPv4: a public range would
// hide the real internet from the nodes. What Scaleway keeps for itself
// (169.254.0.0/16 with the metadata service and DHCP, 100.64.0.0/10 as any
// provider's own space) lies outside of these three as well.
func (s *source) validatePrivateRange(r namedRange) bool {
	if !r.value.Addr().Is4() {
		s.refuse(r.path, r.value.String()+" is not IPv4", "Scaleway gives a Private Network its IPv6 range by itself, and the cluster's ranges follow the network's family", "write an IPv4 range")
		return false
	}
	for _, private := range privateRanges {
		if private.Bits() <= r.value.Bits() && private.Contains(r.value.Addr()) {
			return true
		}
	}
	why := "real hosts that have these addresses could not be reached from the nodes"
	switch reserved := reservedRange(r.value.Prefix); {
	case reserved != "":
		why = reserved
	case r.value.Overlaps(privateRanges[0]), r.value.Overlaps(privateRanges[1]), r.value.Overlaps(privateRanges[2]):
		why = "it reaches beyond the private range that it starts from"
	}
	s.refuse(r.path, r.value.String()+" is not a private range", why, "choose one inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16")
	return false
}

var reservedRanges = []struct {
	prefix netip.Prefix
	why    string
}{
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local addresses are Scaleway's for metadata (169.254.42.42) and DHCP (169.254.169.254), and Talos' own"},
	{netip.MustParsePrefix("100.64.0.0/10"), "100.64.0.0/10 is the provider's own shared space"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback addresses never leave a node"},
	{netip.MustParsePrefix("0.0.0.0/8"), "addresses in 0.0.0.0/8 belong to no host"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast addresses belong to no host"},
	{netip.MustParsePrefix("240.0.0.0/4"), "addresses from 240.0.0.0 on are reserved"},
	{netip.MustParsePrefix("198.18.0.0/15"), "198.18.0.0/15 is kept for benchmarks of network devices"},
}

func reservedRange(p netip.Prefix) string {
	for _, r := range reservedRanges {
		if p.Bits() >= r.prefix.Bits() && r.prefix.Contains(p.Addr()) {
			return r.why
		}
	}
	return ""
}

func (s *source) prefixLength(r namedRange, widest, smallest int, why string) {
	if bits := r.value.Bits(); r.value.IsValid() && (bits < widest || bits > smallest) {
		s.refuse(r.path, fmt.Sprintf("%s is a /%d", r.value, bits),
			fmt.Sprintf("it has to be between /%d and /%d: %s", widest, smallest, why), "choose a range of such a size")
	}
}

// validateRoom compares the ranges with the number of nodes.
func (s *source) validateRoom(e *Estate) {
	if !s.nodesAreKnown(e) {
		return
	}
	nodes := e.nodeCount()
	const shared, spare = 2, 1 // gateway and load balancer; a node's replacement while the old one still stands
	if wanted := nodes + shared; wanted > maxAttached {
		s.refuse("network.cidr", fmt.Sprintf("would hold %d nodes, the gateway and the load balancer", nodes),
			fmt.Sprintf("a Private Network holds at most %d resources", maxAttached), "lower the counts, or split the estate")
		return
	}
	if cidr := e.Network.CIDR; cidr.IsValid() && cidr.Addr().Is4() && cidr.Bits() >= widestNetwork && cidr.Bits() <= smallestNetwork {
		free, wanted := 1<<(32-cidr.Bits())-heldAddresses, nodes+shared+spare
		if free < wanted {
			s.refuse("network.cidr", fmt.Sprintf("%s has %d usable addresses and %d are needed", cidr, free, wanted),
				fmt.Sprintf("%d nodes, the gateway, the load balancer and one spare for a replacement each take one, and Scaleway keeps %d", nodes, heldAddresses),
				fmt.Sprintf("choose a /%d or wider, or lower the counts; a network cannot be resized later", bitsFor(wanted+heldAddresses)))
		}
	}
	if pods := e.Network.Pods; pods.IsValid() && pods.Addr().Is4() && pods.Bits() >= 8 && pods.Bits() <= smallestRange {
		if room := 1 << (nodePodBits - pods.Bits()); room < nodes+spare {
			s.refuse("network.pods", fmt.Sprintf("%s has room for %d nodes and %d are needed", pods, room, nodes+spare),
				fmt.Sprintf("each of %d nodes takes a /%d of it, and so does the replacement of one", nodes, nodePodBits),
				fmt.Sprintf("choose a /%d or wider; it cannot be changed later", nodePodBits-(32-bitsFor(nodes+spare))))
		}
	}
}

// bitsFor is the longest prefix whose range has at least n addresses.
func bitsFor(n int) int {
	bits := 32
	for 1<<(32-bits) < n {
		bits--
	}
	return bits
}
