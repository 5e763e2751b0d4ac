package scaleway

import (
	"fmt"
	"net/netip"

	"bastide/internal/blueprint"

	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
)

// lostMark is a gateway, what attaches it or its public address that is the
// estate's by what it is bound to and does not carry its mark. Nothing is made in
// its place: two gateways in one network would take the traffic from each other.
type lostMark struct {
	kind           blueprint.Kind
	name, id, zone string
	status         string
	why            string // by what it is known, and how it gets its mark back
	fix            string
	spec           blueprint.Spec
}

// lost notes that something is a step's and lacks the mark.
func (r *reader) lost(step string, l lostMark, how string) {
	if r.inv.lost == nil {
		r.inv.lost = map[string]lostMark{}
	}
	if _, twice := r.inv.lost[step]; twice {
		return
	}
	l.fix = fmt.Sprintf("if it is the estate's, give it the tags %s%s and %s%s; otherwise remove it", blueprint.TagEstate, r.estate.Name, blueprint.TagStep, step)
	l.why = fmt.Sprintf("the %s %s (%s) %s and does not carry the estate's mark; %s", l.kind, l.name, l.id, how, l.fix)
	r.inv.lost[step] = l
}

// gatewayStep is the step of the estate's gateway of a kind: itself, its public
// address or its place in the private network.
func (c *Cloud) gatewayStep(kind blueprint.Kind) string {
	return string(kind) + "/" + c.estate.Name + "-gateway"
}

// lostGateways finds the gateway that lost the mark by what it holds: the estate's
// address, a place in the estate's network, or, beside live servers, its name. It
// is asked for after the estate's own addresses and before its own gateways.
func (r *reader) lostGateways() {
	step := r.gatewayStep(blueprint.KindGateway)
	for _, g := range r.f.otherGateways {
		if isLeaving(string(g.Status)) {
			continue
		}
		how := r.heldByGateway(g)
		if how == "" {
			continue
		}
		r.lost(step, lostMark{kind: blueprint.KindGateway, name: g.Name, id: g.ID, zone: string(g.Zone), status: string(g.Status), spec: r.refs.gatewaySpec(g)}, how)
		for _, n := range g.GatewayNetworks {
			if _, ours := r.refs[n.PrivateNetworkID]; !ours {
				continue
			}
			r.stranger(fmt.Sprintf("the gateway %s (%s)", g.Name, g.ID), "it is attached to the estate's private network")
			link := lostMark{kind: blueprint.KindGatewayNetwork, name: g.Name, id: n.ID, zone: string(n.Zone), status: string(n.Status),
				why:  fmt.Sprintf("it is of the gateway %s (%s), which does not carry the estate's mark", g.Name, g.ID),
				spec: blueprint.GatewayNetwork{Gateway: step, Network: r.refs.step(n.PrivateNetworkID), NAT: n.MasqueradeEnabled, DefaultRoute: n.PushDefaultRoute}}
			r.lostLink(link)
		}
	}
}

// lostLink notes what attaches a gateway without the mark: it has none of its own.
func (r *reader) lostLink(l lostMark) {
	step := r.gatewayStep(blueprint.KindGatewayNetwork)
	if _, twice := r.inv.lost[step]; !twice {
		r.inv.lost[step] = l
	}
}

func (r *reader) heldByGateway(g *vpcgw.Gateway) string {
	if g.IPv4 != nil {
		if _, ours := r.refs[g.IPv4.ID]; ours {
			return "has the estate's public address"
		}
	}
	for _, n := range g.GatewayNetworks {
		if _, ours := r.refs[n.PrivateNetworkID]; ours {
			return "is attached to the estate's private network"
		}
	}
	live := false
	for _, s := range r.f.servers {
		live = live || r.marked(s.Tags)
	}
	if live && g.Name == r.estate.Name+"-gateway" && !ofSomeEstate(g.Tags) {
		return "has the name of the estate's gateway"
	}
	return ""
}

// lostGatewayIPs finds the public address that lost the mark: the one that the
// estate's gateway has. The gateway is then shown with the address that it wants.
func (r *reader) lostGatewayIPs() {
	gateways := map[string]bool{}
	for _, g := range r.f.gateways {
		gateways[g.ID] = true
	}
	if l, lost := r.inv.lost[r.gatewayStep(blueprint.KindGateway)]; lost {
		gateways[l.id] = true
	}
	for _, v := range r.f.gatewayIPs {
		if r.marked(v.Tags) || v.GatewayID == nil || !gateways[*v.GatewayID] {
			continue
		}
		step := r.gatewayStep(blueprint.KindGatewayIP)
		addr, _ := netip.AddrFromSlice(v.Address)
		r.lost(step, lostMark{kind: blueprint.KindGatewayIP, name: addr.Unmap().String(), id: v.ID, zone: string(v.Zone), status: present,
			spec: blueprint.GatewayIP{Zone: string(v.Zone), Address: addr.Unmap()}}, "is bound to the estate's gateway")
		r.refs[v.ID] = step
	}
}
