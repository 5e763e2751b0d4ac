package talos

import (
	"fmt"
	"reflect"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
)

const (
	unfiltered  = "nothing else filters traffic inside the private network: security groups see public traffic alone"
	ownRule     = "add a NetworkRuleConfig under another name for what you want to open"
	actionField = network.DefaultActionConfig + ".ingress"
	rangeField  = network.RuleConfigKind + ".ingress"
)

// firewall: the default stays block, bastide's own rules stay as they are, and
// no rule is for everybody. It refuses instead of warning, since an open port is
// never noticed by anything that works. Further rules are the user's.
func (r rules) firewall(p config.Provider, _ *v1alpha1.Config) *breach {
	if p.NetworkRules().DefaultAction() != nethelpers.DefaultActionBlock {
		return &breach{actionField, "is not block", unfiltered, "remove it, and " + ownRule}
	}
	found := map[string]*network.RuleConfigV1Alpha1{}
	for _, d := range p.Documents() {
		if rule, ok := d.(*network.RuleConfigV1Alpha1); ok {
			found[rule.MetaName] = rule
			if b := everybody(rule); b != nil {
				return b
			}
		}
	}
	for _, d := range r.openings {
		want, ok := d.(*network.RuleConfigV1Alpha1)
		if !ok {
			continue
		}
		have := found[want.MetaName]
		if have == nil || !sameOpening(have, want) {
			return &breach{network.RuleConfigKind + ".name", want.MetaName + " is not as bastide has it", "nodes, tunnel and load balancer reach each other by it", ownRule}
		}
	}
	return nil
}

// The largest blocks of private addresses: 10.0.0.0/8 and fc00::/7.
const (
	widest4 = 8
	widest6 = 7
)

// everybody finds a range that is wider than any private network is.
func everybody(rule *network.RuleConfigV1Alpha1) *breach {
	if len(rule.Ingress) == 0 {
		return &breach{rangeField, "of " + rule.MetaName + " names no range", "who may come in is not said", "name the ranges that may come in"}
	}
	for _, in := range rule.Ingress {
		least := widest4
		if in.Subnet.Addr().Is6() {
			least = widest6
		}
		if in.Subnet.IsValid() && in.Subnet.Bits() < least {
			return &breach{rangeField, fmt.Sprintf("of %s holds %s, which is wider than any private network,", rule.MetaName, in.Subnet), unfiltered, "name the ranges that may come in"}
		}
	}
	return nil
}

func sameOpening(a, b *network.RuleConfigV1Alpha1) bool {
	return a.Protocol() == b.Protocol() && reflect.DeepEqual(a.PortRanges(), b.PortRanges()) &&
		reflect.DeepEqual(a.Subnets(), b.Subnets()) && len(a.ExceptSubnets()) == len(b.ExceptSubnets())
}

// accepts finds a patch's wish to accept by default. Merging would not show it:
// accept is the empty value, and what is empty leaves what it is merged into.
func accepts(patch config.Provider) *breach {
	for _, d := range patch.Documents() {
		if action, ok := d.(*network.DefaultActionConfigV1Alpha1); ok && action.Ingress == nethelpers.DefaultActionAccept {
			return &breach{actionField, "is accept", unfiltered, "remove it, and " + ownRule}
		}
	}
	return nil
}

// strangeNetwork says when pods are connected by something whose ports only the
// user knows.
func strangeNetwork(p config.Provider) string {
	if name := p.Cluster().Network().CNI().Name(); name != constants.FlannelCNI {
		return "cluster.network.cni is " + name + ": the nodes' firewall has flannel's port open alone; open what the other one needs with a NetworkRuleConfig, such as 8472/udp and 4240/tcp for Cilium"
	}
	return ""
}
