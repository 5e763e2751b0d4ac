package scaleway

import (
	"fmt"
	"net/netip"

	"bastide/internal/blueprint"

	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
)

// lostMark is a gateway, what attaches it or its public address that is the
// estate's by what it is bound to and does not carry its mark. Nothing is made in
// its place: two gateways in one network would take the traffic from each other.
type lostMark struct {
	kind           blueprint.Kind
	name, id, zone string
	how            string // by what it is known to be the estate's
	fix            string // how it gets its mark back; empty for what has none of its own
	spec           blueprint.Spec
}

// why is what a plan says of it.
func (l lostMark) why() string {
	why := fmt.Sprintf("the %s %s (%s) %s", l.kind, l.name, l.id, l.how)
	if l.fix != "" {
		why += "; " + l.fix
	}
	return why
}

// gatewayStep is the step of the estate's gateway of a kind: itself, its public
// address or its place in the private network.
func (c *Cloud) gatewayStep(kind blueprint.Kind) string {
	return string(kind) + "/" + blueprint.GatewayName(c.estate.Name)
}

// bonds are what tie a gateway to the estate: the estate's networks, its public
// addresses, and whether it has live nodes, beside which a name is enough.
type bonds struct {
	networks, addresses map[string]bool // IDs
	live                bool
}

func (c *Cloud) bonds(networks []*vpc.PrivateNetwork, addresses []*vpcgw.IP, live bool) bonds {
	b := bonds{map[string]bool{}, map[string]bool{}, live}
	for _, n := range networks {
		b.networks[n.ID] = c.marked(n.Tags)
	}
	for _, ip := range addresses {
		b.addresses[ip.ID] = c.marked(ip.Tags)
	}
	return b
}

// lostMarks finds what of the gateway has lost the mark, by step: the gateway by
// what it holds, and the public address that the estate's gateway has.
func (c *Cloud) lostMarks(gateways []*vpcgw.Gateway, addresses []*vpcgw.IP, b bonds) map[string]lostMark {
	out, claimed := map[string]lostMark{}, map[string]bool{}
	for _, g := range gateways {
		if c.marked(g.Tags) {
			claimed[stepOf(g.Tags)] = true
		}
	}
	for _, v := range addresses {
		if c.marked(v.Tags) {
			claimed[stepOf(v.Tags)] = true
		}
	}
	lost := func(l lostMark) {
		step := c.gatewayStep(l.kind)
		if _, twice := out[step]; twice || claimed[step] {
			return
		}
		if l.kind != blueprint.KindGatewayNetwork {
			l.how += " and does not carry the estate's mark"
			l.fix = fmt.Sprintf("if it is the estate's, give it the tags %s%s and %s%s; otherwise remove it", blueprint.TagEstate, c.estate.Name, blueprint.TagStep, step)
		}
		out[step] = l
	}
	ours := map[string]bool{}
	for _, g := range gateways {
		if ours[g.ID] = c.marked(g.Tags); ours[g.ID] || isLeaving(string(g.Status)) {
			continue
		}
		how := c.boundBy(g, b)
		if how == "" || claimed[c.gatewayStep(blueprint.KindGateway)] {
			continue // nothing of ours, or one that stands beside ours
		}
		ours[g.ID] = true
		lost(lostMark{kind: blueprint.KindGateway, name: g.Name, id: g.ID, zone: string(g.Zone), how: how, spec: refs{}.gatewaySpec(g)})
		for _, n := range g.GatewayNetworks {
			if b.networks[n.PrivateNetworkID] {
				lost(lostMark{kind: blueprint.KindGatewayNetwork, name: g.Name, id: n.ID, zone: string(n.Zone),
					how:  fmt.Sprintf("is of the gateway %s (%s), which does not carry the estate's mark", g.Name, g.ID),
					spec: blueprint.GatewayNetwork{NAT: n.MasqueradeEnabled, DefaultRoute: n.PushDefaultRoute}})
			}
		}
	}
	for _, v := range addresses {
		if v.GatewayID != nil && ours[*v.GatewayID] && !c.marked(v.Tags) {
			addr, _ := netip.AddrFromSlice(v.Address)
			lost(lostMark{kind: blueprint.KindGatewayIP, name: addr.Unmap().String(), id: v.ID, zone: string(v.Zone), how: "is bound to the estate's gateway",
				spec: blueprint.GatewayIP{Zone: string(v.Zone), Address: addr.Unmap()}})
		}
	}
	return out
}

// boundBy is what ties a gateway without the mark to the estate; empty when
// nothing does.
func (c *Cloud) boundBy(g *vpcgw.Gateway, b bonds) string {
	if g.IPv4 != nil && b.addresses[g.IPv4.ID] {
		return "has the estate's public address"
	}
	for _, n := range g.GatewayNetworks {
		if b.networks[n.PrivateNetworkID] {
			return "is attached to the estate's private network"
		}
	}
	if b.live && g.Name == blueprint.GatewayName(c.estate.Name) && !ofSomeEstate(g.Tags) {
		return "has the name of the estate's gateway"
	}
	return ""
}

// lostGateway notes what of the gateway has lost its mark. The gateway is shown
// with the address that it wants where only that one has lost it.
func (r *reader) lostGateway() {
	live := false
	for _, s := range r.f.servers {
		live = live || r.marked(s.Tags)
	}
	r.inv.lost = r.lostMarks(r.f.allGateways, r.f.gatewayIPs, r.bonds(r.f.networks, r.f.gatewayIPs, live))
	if l, there := r.inv.lost[r.gatewayStep(blueprint.KindGateway)]; there {
		if _, attached := r.inv.lost[r.gatewayStep(blueprint.KindGatewayNetwork)]; attached {
			r.stranger(fmt.Sprintf("the gateway %s (%s)", l.name, l.id), "it is attached to the estate's private network")
		}
	}
	step := r.gatewayStep(blueprint.KindGatewayIP)
	if l, there := r.inv.lost[step]; there {
		r.refs[l.id] = step
	}
}
