package api

import (
	"net/netip"
	"slices"
	"strconv"
)

type sgRule struct {
	ID        string
	Protocol  string
	Direction string
	Action    string
	Range     netip.Prefix
	From      *int
	To        *int
}

// mailPorts are blocked outbound unless default security is switched off.
var mailPorts = []int{25, 465, 587}

// mailRules are the rules that block mail. They cannot be changed, and their
// ids are the same in every group.
func mailRules(zone string, position int) []doc {
	var out []doc
	for _, r := range []string{"0.0.0.0/0", "::/0"} {
		for _, port := range mailPorts {
			out = append(out, doc{"id": "11111111-2222-4333-8444-00000000000" + strconv.Itoa(len(out)+1), "protocol": "TCP",
				"direction": "outbound", "ip_range": r, "dest_ip_range": nil, "dest_port_from": port, "dest_port_to": nil,
				"position": position + len(out), "editable": false, "action": "drop", "zone": zone})
		}
	}
	return out
}

func viewRule(r sgRule, position int, zone string) doc {
	return doc{"id": r.ID, "protocol": r.Protocol, "direction": r.Direction, "ip_range": r.Range.String(), "dest_ip_range": nil,
		"dest_port_from": r.From, "dest_port_to": r.To, "position": position, "editable": true, "action": r.Action, "zone": zone}
}

func (g *securityGroup) viewRules() []doc {
	out := []doc{}
	for i, r := range g.Rules {
		out = append(out, viewRule(r, i+1, g.Zone))
	}
	if g.Protected {
		out = append(out, mailRules(g.Zone, len(out)+1)...)
	}
	return out
}

func listRules(c *call) (any, error) {
	g, err := c.securityGroup(c.path("id"))
	if err != nil {
		return nil, err
	}
	rules := g.viewRules()
	c.total(len(rules))
	return doc{"rules": list(page(c, rules, "per_page", 50))}, nil
}

func listDefaultRules(c *call) (any, error) {
	rules := mailRules(c.zone(), 1)
	c.total(len(rules))
	return doc{"rules": rules}, nil
}

// ruleRequest is a rule as requests give it.
type ruleRequest struct {
	ID        opt[string] `json:"id"`
	Protocol  opt[string] `json:"protocol"`
	Direction opt[string] `json:"direction"`
	Action    opt[string] `json:"action"`
	Range     opt[string] `json:"ip_range"`
	From      opt[int]    `json:"dest_port_from"`
	To        opt[int]    `json:"dest_port_to"`
	Position  opt[int]    `json:"position"`
}

// into checks a request and puts it into a rule.
func (in ruleRequest) into(r *sgRule) error {
	for _, f := range []struct {
		name    string
		given   opt[string]
		into    *string
		allowed []string
	}{
		{"protocol", in.Protocol, &r.Protocol, []string{"TCP", "UDP", "ICMP", "ANY"}},
		{"direction", in.Direction, &r.Direction, []string{"inbound", "outbound"}},
		{"action", in.Action, &r.Action, []string{"accept", "drop"}},
	} {
		if v := f.given.or(""); v != "" {
			*f.into = v
		}
		if !slices.Contains(f.allowed, *f.into) {
			return invalid(f.name, "constraint", f.name+" "+*f.into+" is not allowed")
		}
	}
	if v := in.Range.or(""); v != "" {
		p, err := allowedRange(v)
		if err != nil {
			return invalid("ip_range", "format", v+" is not a network in CIDR notation")
		}
		r.Range = p
	}
	if !r.Range.IsValid() {
		r.Range = netip.MustParsePrefix("0.0.0.0/0")
	}
	if in.From.given {
		r.From = portOf(in.From)
	}
	if in.To.given {
		r.To = portOf(in.To)
	}
	if r.From != nil && r.To != nil {
		if *r.To == *r.From {
			r.To = nil // a single port has no end
		} else if *r.To < *r.From {
			return invalid("dest_port_to", "constraint", "must be greater than dest_port_from")
		}
	}
	if r.Protocol == "ICMP" || r.Protocol == "ANY" {
		if portOf(in.From) != nil || portOf(in.To) != nil {
			return invalid("dest_port_from", "constraint", r.Protocol+" rules have no ports")
		}
		r.From, r.To = nil, nil // a rule that turns into one without ports loses them
	}
	return nil
}

func portOf(o opt[int]) *int {
	if o.null || o.value == 0 {
		return nil
	}
	return &o.value
}

func createRule(c *call) (any, error) {
	g, err := c.securityGroup(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in ruleRequest
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	r := sgRule{ID: newID()}
	if err := in.into(&r); err != nil {
		return nil, err
	}
	at := len(g.Rules)
	if p := in.Position.or(0); p > 0 && p <= at {
		at = p - 1
	}
	g.Rules = slices.Insert(slices.Clone(g.Rules), at, r)
	c.syncGroup(g)
	return doc{"rule": viewRule(r, at+1, g.Zone)}, nil
}

// setRules replaces all rules that can be changed.
func setRules(c *call) (any, error) {
	g, err := c.securityGroup(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Rules []struct {
			ruleRequest
			Editable *bool `json:"editable"`
		} `json:"rules"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	fresh := []sgRule{}
	for _, spec := range in.Rules {
		if spec.Editable != nil && !*spec.Editable {
			continue // the mail rules, sent back by a client that listed them
		}
		r := sgRule{ID: newID()}
		if i := slices.IndexFunc(g.Rules, func(o sgRule) bool { return o.ID == spec.ID.or("") }); i >= 0 {
			r.ID = g.Rules[i].ID
		}
		if err := spec.into(&r); err != nil {
			return nil, err
		}
		fresh = append(fresh, r)
	}
	g.Rules = fresh
	c.syncGroup(g)
	return doc{"rules": g.viewRules()}, nil
}

func (c *call) rule() (*securityGroup, int, error) {
	g, err := c.securityGroup(c.path("id"))
	if err != nil {
		return nil, 0, err
	}
	i := slices.IndexFunc(g.Rules, func(r sgRule) bool { return r.ID == c.path("rule") })
	if i < 0 {
		return nil, 0, notFound("instance_security_group_rule", c.path("rule"))
	}
	return g, i, nil
}

func getRule(c *call) (any, error) {
	g, i, err := c.rule()
	if err != nil {
		return nil, err
	}
	return doc{"rule": viewRule(g.Rules[i], i+1, g.Zone)}, nil
}

func updateRule(c *call) (any, error) {
	g, i, err := c.rule()
	if err != nil {
		return nil, err
	}
	var in ruleRequest
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	r := g.Rules[i]
	if err := in.into(&r); err != nil {
		return nil, err
	}
	g.Rules = slices.Clone(g.Rules)
	g.Rules[i] = r
	c.syncGroup(g)
	return doc{"rule": viewRule(r, i+1, g.Zone)}, nil
}

func deleteRule(c *call) (any, error) {
	g, i, err := c.rule()
	if err != nil {
		return nil, err
	}
	g.Rules = slices.Delete(slices.Clone(g.Rules), i, i+1)
	c.syncGroup(g)
	return nil, nil
}
