package api

import (
	"net/http"
	"net/netip"
)

func (r *Region) patRoutes(base string) {
	r.route("GET "+base+"/pat-rules", http.StatusOK, listPATRules)
	r.route("POST "+base+"/pat-rules", http.StatusOK, createPATRule)
	r.route("PUT "+base+"/pat-rules", http.StatusOK, setPATRules)
	r.route("GET "+base+"/pat-rules/{id}", http.StatusOK, getPATRule)
	r.route("PATCH "+base+"/pat-rules/{id}", http.StatusOK, updatePATRule)
	r.route("DELETE "+base+"/pat-rules/{id}", http.StatusNoContent, deletePATRule)
}

func (w *world) viewPATRule(p *patRule) doc {
	return doc{"id": p.ID, "srn": noSRN, "gateway_id": p.Gateway, "public_port": p.PublicPort, "private_ip": p.PrivateIP.String(),
		"private_port": p.PrivatePort, "protocol": p.Protocol, "zone": p.Zone,
		"created_at": stamp(p.Created), "updated_at": stamp(p.Updated)}
}

func listPATRules(c *call) (any, error) {
	gateways, ips, protocol := c.values("gateway_ids", "gateway_id"), c.values("private_ips", "private_ip"), c.known("protocol")
	items := c.PATRules.where(func(p *patRule) bool {
		return p.Zone == c.zone() && oneOf(p.Gateway, gateways) && oneOf(p.PrivateIP.String(), ips) && oneOf(p.Protocol, protocol)
	})
	return paged(c, "pat_rules", items, c.viewPATRule)
}

// patSpec is a rule as requests give it.
type patSpec struct {
	PublicPort  int    `json:"public_port"`
	PrivateIP   string `json:"private_ip"`
	PrivatePort int    `json:"private_port"`
	Protocol    string `json:"protocol"`
}

// newPATRule checks a rule: the ports, an address in a network of the gateway,
// and a public port that neither another rule nor the bastion uses.
func (c *call) newPATRule(g *gateway, in patSpec, existing []*patRule) (*patRule, error) {
	if in.Protocol == "" || in.Protocol == "unknown_protocol" {
		in.Protocol = "both"
	}
	if in.PublicPort < 1 || in.PublicPort > 65535 {
		return nil, invalid("public_port", "constraint", "port must be between 1 and 65535")
	}
	if in.PrivatePort < 1 || in.PrivatePort > 65535 {
		return nil, invalid("private_port", "constraint", "port must be between 1 and 65535")
	}
	if g.Bastion && in.PublicPort == g.BastionPort && in.Protocol != "udp" {
		return nil, invalid("public_port", "constraint", "port is used by the SSH bastion")
	}
	ip, err := netip.ParseAddr(in.PrivateIP)
	if err != nil {
		return nil, invalid("private_ip", "format", in.PrivateIP+" is not an IP address")
	}
	if !c.reaches(g, ip) {
		return nil, invalid("private_ip", "constraint", "private IP is not in a private network attached to the gateway")
	}
	for _, p := range existing {
		if p.PublicPort == in.PublicPort && (p.Protocol == in.Protocol || p.Protocol == "both" || in.Protocol == "both") {
			return nil, conflict("public port is already mapped")
		}
	}
	return &patRule{record: newRecord(g.Project, "", nil), Zone: g.Zone, Gateway: g.ID, PublicPort: in.PublicPort,
		PrivateIP: ip, PrivatePort: in.PrivatePort, Protocol: in.Protocol}, nil
}

func (w *world) reaches(g *gateway, ip netip.Addr) bool {
	return w.GatewayNetworks.any(func(n *gatewayNetwork) bool {
		p, ok := w.PrivateNetworks.get(n.PrivateNetwork)
		if !ok || n.Gateway != g.ID {
			return false
		}
		for _, s := range p.Subnets {
			if s.Prefix.Contains(ip) {
				return true
			}
		}
		return false
	})
}

func createPATRule(c *call) (any, error) {
	var in struct {
		Gateway string `json:"gateway_id"`
		patSpec
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	g, err := c.steadyGateway(in.Gateway)
	if err != nil {
		return nil, err
	}
	p, err := c.newPATRule(g, in.patSpec, c.rulesOf(g))
	if err != nil {
		return nil, err
	}
	return c.viewPATRule(add(c.world, c.PATRules, p)), nil
}

func (w *world) rulesOf(g *gateway) []*patRule {
	return w.PATRules.where(func(p *patRule) bool { return p.Gateway == g.ID })
}

func setPATRules(c *call) (any, error) {
	var in struct {
		Gateway string    `json:"gateway_id"`
		Rules   []patSpec `json:"pat_rules"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	g, err := c.steadyGateway(in.Gateway)
	if err != nil {
		return nil, err
	}
	var fresh []*patRule
	for _, spec := range in.Rules {
		p, err := c.newPATRule(g, spec, fresh)
		if err != nil {
			return nil, err
		}
		fresh = append(fresh, p)
	}
	for _, old := range c.rulesOf(g) {
		remove(c.world, c.PATRules, old.ID)
	}
	for _, p := range fresh {
		add(c.world, c.PATRules, p)
	}
	return doc{"pat_rules": views(fresh, c.viewPATRule)}, nil
}

func (c *call) patRule() (*patRule, error) {
	if p, ok := c.PATRules.get(c.path("id")); ok && p.Zone == c.zone() {
		return p, nil
	}
	return nil, notFound("pat_rule", c.path("id"))
}

func getPATRule(c *call) (any, error) {
	p, err := c.patRule()
	if err != nil {
		return nil, err
	}
	return c.viewPATRule(p), nil
}

func updatePATRule(c *call) (any, error) {
	p, err := c.patRule()
	if err != nil {
		return nil, err
	}
	g, err := c.steadyGateway(p.Gateway)
	if err != nil {
		return nil, err
	}
	spec := patSpec{p.PublicPort, p.PrivateIP.String(), p.PrivatePort, p.Protocol}
	if err := c.decode(&spec); err != nil {
		return nil, err
	}
	var others []*patRule
	for _, o := range c.rulesOf(g) {
		if o.ID != p.ID {
			others = append(others, o)
		}
	}
	fresh, err := c.newPATRule(g, spec, others)
	if err != nil {
		return nil, err
	}
	p.PublicPort, p.PrivateIP, p.PrivatePort, p.Protocol = fresh.PublicPort, fresh.PrivateIP, fresh.PrivatePort, fresh.Protocol
	change(c.world, c.PATRules, p)
	return c.viewPATRule(p), nil
}

func deletePATRule(c *call) (any, error) {
	p, err := c.patRule()
	if err != nil {
		return nil, err
	}
	if _, err := c.steadyGateway(p.Gateway); err != nil {
		return nil, err
	}
	remove(c.world, c.PATRules, p.ID)
	return nil, nil
}
