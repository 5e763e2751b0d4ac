package talos

import (
	"maps"
	"net/netip"
	"slices"

	documents "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
)

// Ports that machinery has no constant for.
const (
	etcdClientPort = 2379
	etcdPeerPort   = 2380
	kubeletPort    = 10250
	vxlanPort      = 4789 // of the flannel that Talos deploys; flannel's own default is another
)

// firewall is the node's own ingress firewall. Security groups see public
// traffic alone, so inside the private network nothing else filters.
//
// Under block Talos itself still lets through what comes in on lo, what belongs
// to a connection that the node opened, ICMP at a low rate, traffic from pods
// and services to pods and services, and pods' questions to the host's DNS
// (nftables_chain_config.go of Talos). The rest is said here.
//
// A pod that speaks to the node it runs on keeps its own address: masquerading
// is for what leaves the node. Without the pods' range a controller that happens
// to run beside an API server would not reach it.
//
// The etcd rule names every control plane node of the file, also those that are
// still to come, so that a node may join as soon as it is there.
func (r *Renderer) firewall(n estate.Node, a Addresses) []documents.Document {
	private, pods := r.estate.Network.CIDR.Prefix, r.estate.Network.Pods.Prefix
	action := network.NewDefaultActionConfigV1Alpha1()
	action.Ingress = nethelpers.DefaultActionBlock
	docs := []documents.Document{
		action,
		// The bastion and the load balancer come from inside the network too.
		opening("bastide-apid", nethelpers.ProtocolTCP, constants.ApidPort, constants.ApidPort, private),
		opening("bastide-kubelet", nethelpers.ProtocolTCP, kubeletPort, kubeletPort, private, pods),
		opening("bastide-vxlan", nethelpers.ProtocolUDP, vxlanPort, vxlanPort, private),
	}
	if n.Role != estate.RoleControlPlane {
		return docs
	}
	return append(docs,
		opening("bastide-trustd", nethelpers.ProtocolTCP, constants.TrustdPort, constants.TrustdPort, private),
		opening("bastide-kube-apiserver", nethelpers.ProtocolTCP, blueprint.APIPort, blueprint.APIPort, private, pods),
		opening("bastide-etcd", nethelpers.ProtocolTCP, etcdClientPort, etcdPeerPort, r.voters(a)...),
	)
}

// voters are the control plane nodes' addresses, each alone.
func (r *Renderer) voters(a Addresses) []netip.Prefix {
	set := map[netip.Prefix]bool{}
	for _, n := range r.estate.Nodes() {
		if address := a.Nodes[n.Name]; n.Role == estate.RoleControlPlane && address.IsValid() {
			set[netip.PrefixFrom(address, address.BitLen())] = true
		}
	}
	return slices.SortedFunc(maps.Keys(set), netip.Prefix.Compare)
}

func opening(name string, protocol nethelpers.Protocol, lo, hi uint16, from ...netip.Prefix) *network.RuleConfigV1Alpha1 {
	rule := network.NewRuleConfigV1Alpha1()
	rule.MetaName = name
	rule.PortSelector.Protocol = protocol
	rule.PortSelector.Ports = network.PortRanges{{Lo: lo, Hi: hi}}
	for _, p := range from {
		rule.Ingress = append(rule.Ingress, network.IngressRule{Subnet: p.Masked()})
	}
	return rule
}
