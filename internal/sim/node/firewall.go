package node

import (
	"net"
	"net/netip"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
)

// lets is the node's ingress firewall, as the active configuration has it now:
// whether a new TCP connection from an address gets to a port. Without documents
// of the firewall everything does.
//
// With block a connection passes that some rule lets in. With accept a rule
// drops what it does not name. What passes without a rule under block (loopback,
// answers, ICMP, pods to pods) never comes this way: nothing of it is carried by
// the simulated network.
func (n *node) lets(from netip.Addr, port int) bool {
	cfg := n.config()
	if cfg == nil {
		return true
	}
	block := cfg.NetworkRules().DefaultAction() == nethelpers.DefaultActionBlock
	for _, rule := range cfg.NetworkRules().Rules() {
		if rule.Protocol() != nethelpers.ProtocolTCP || !about(rule, port) {
			continue
		}
		switch named := covers(rule, from); {
		case block && named:
			return true
		case !block && !named:
			return false
		}
	}
	return !block
}

func about(rule config.NetworkRule, port int) bool {
	return slices.ContainsFunc(rule.PortRanges(), func(r [2]uint16) bool { return int(r[0]) <= port && port <= int(r[1]) })
}

// covers says whether a rule is for an address. One that is not known is in no
// range but the one that holds all, and counts as excepted by every exception.
func covers(rule config.NetworkRule, from netip.Addr) bool {
	if !from.IsValid() {
		everybody := slices.ContainsFunc(rule.Subnets(), func(p netip.Prefix) bool { return p.Bits() == 0 })
		return everybody && len(rule.ExceptSubnets()) == 0
	}
	holds := func(p netip.Prefix) bool { return p.Masked().Contains(from) }
	return slices.ContainsFunc(rule.Subnets(), holds) && !slices.ContainsFunc(rule.ExceptSubnets(), holds)
}

// guarded is a listener on a public address. Who calls there is not known, since
// the call comes over this host's own loopback; and it was taken before it could
// be dropped, so it is closed instead of left without an answer.
type guarded struct {
	net.Listener
	node *node
	port int
}

func (g guarded) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil || g.node.lets(netip.Addr{}, g.port) {
			return c, err
		}
		_ = c.Close()
	}
}
