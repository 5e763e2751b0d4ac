package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// securityGroup filters the public interfaces of servers.
type securityGroup struct {
	record
	Zone        string
	Description string
	Stateful    bool
	Inbound     string // default policies: accept or drop
	Outbound    string
	Default     bool // project_default
	Protected   bool // enable_default_security: mail ports are blocked
	State       string
	Rules       []sgRule
	Turn        int
}

type sgRule struct {
	ID        string
	Protocol  string
	Direction string
	Action    string
	Range     netip.Prefix
	From      *int
	To        *int
}

const groupSyncs = time.Second

// mailPorts are blocked outbound unless default security is switched off.
var mailPorts = []int{25, 465, 587}

func (r *Region) securityGroupRoutes(base string) {
	r.route("GET "+base+"/security_groups", http.StatusOK, listSecurityGroups)
	r.route("POST "+base+"/security_groups", http.StatusCreated, createSecurityGroup)
	r.route("GET "+base+"/security_groups/default/rules", http.StatusOK, listDefaultRules)
	r.route("GET "+base+"/security_groups/{id}", http.StatusOK, getSecurityGroup)
	r.route("PATCH "+base+"/security_groups/{id}", http.StatusOK, updateSecurityGroup)
	r.route("PUT "+base+"/security_groups/{id}", http.StatusOK, updateSecurityGroup)
	r.route("DELETE "+base+"/security_groups/{id}", http.StatusNoContent, deleteSecurityGroup)
	r.route("GET "+base+"/security_groups/{id}/rules", http.StatusOK, listRules)
	r.route("POST "+base+"/security_groups/{id}/rules", http.StatusCreated, createRule)
	r.route("PUT "+base+"/security_groups/{id}/rules", http.StatusOK, setRules)
	r.route("GET "+base+"/security_groups/{id}/rules/{rule}", http.StatusOK, getRule)
	r.route("PATCH "+base+"/security_groups/{id}/rules/{rule}", http.StatusOK, updateRule)
	r.route("PUT "+base+"/security_groups/{id}/rules/{rule}", http.StatusOK, updateRule)
	r.route("DELETE "+base+"/security_groups/{id}/rules/{rule}", http.StatusNoContent, deleteRule)
}

func (c *call) viewSecurityGroup(g *securityGroup) doc {
	servers := []doc{}
	for _, s := range c.Servers.all() {
		if s.SecurityGroup == g.ID {
			servers = append(servers, doc{"id": s.ID, "name": s.Name})
		}
	}
	return doc{"id": g.ID, "creation_date": stampV1(g.Created), "modification_date": stampV1(g.Updated), "name": g.Name,
		"description": orNull(g.Description), "organization": c.organization(g.Project), "project": g.Project, "servers": servers,
		"stateful": g.Stateful, "inbound_default_policy": g.Inbound, "outbound_default_policy": g.Outbound,
		"organization_default": false, "project_default": g.Default, "enable_default_security": g.Protected, "state": g.State,
		"tags": g.Tags, "zone": g.Zone}
}

// defaultSecurityGroup is the one that every project has in every zone.
func (w *world) defaultSecurityGroup(project, zone string) *securityGroup {
	for _, g := range w.SecurityGroups.all() {
		if g.Default && g.Project == project && g.Zone == zone {
			return g
		}
	}
	g := &securityGroup{record: newRecord(project, "Default security group", nil), Zone: zone, Stateful: true, Inbound: "accept",
		Outbound: "accept", Default: true, Protected: true, State: "available", Description: "Auto generated security group."}
	before := w.touched
	add(w, w.SecurityGroups, g)
	w.touched = before // it exists by itself
	return g
}

func listSecurityGroups(c *call) (any, error) {
	for _, id := range c.Projects.Order {
		c.defaultSecurityGroup(id, c.zone())
	}
	if p := c.query("project"); p != "" && c.knownProject(p) {
		c.defaultSecurityGroup(p, c.zone())
	}
	isDefault, filter := c.flag("project_default")
	items := c.SecurityGroups.where(func(g *securityGroup) bool {
		return g.Zone == c.zone() && c.matchesV1(&g.record) && (!filter || g.Default == isDefault)
	})
	return pagedV1(c, "security_groups", items, c.viewSecurityGroup)
}

// groupRequest is the body of a creation or a change.
type groupRequest struct {
	Project      string        `json:"project"`
	Organization string        `json:"organization"`
	Name         opt[string]   `json:"name"`
	Description  opt[string]   `json:"description"`
	Tags         opt[[]string] `json:"tags"`
	Stateful     opt[bool]     `json:"stateful"`
	Inbound      opt[string]   `json:"inbound_default_policy"`
	Outbound     opt[string]   `json:"outbound_default_policy"`
	Default      opt[bool]     `json:"project_default"`
	Protected    opt[bool]     `json:"enable_default_security"`
}

func (in groupRequest) into(g *securityGroup) error {
	for field, v := range map[string]opt[string]{"inbound_default_policy": in.Inbound, "outbound_default_policy": in.Outbound} {
		if v.given && !v.null && v.value != "" && v.value != "accept" && v.value != "drop" {
			return invalid(field, "constraint", "policy must be accept or drop")
		}
	}
	in.Name.set(&g.Name)
	in.Description.set(&g.Description)
	if in.Tags.given {
		g.Tags = list(in.Tags.value)
	}
	in.Stateful.set(&g.Stateful)
	if v := in.Inbound.or(""); v != "" {
		g.Inbound = v
	}
	if v := in.Outbound.or(""); v != "" {
		g.Outbound = v
	}
	in.Protected.set(&g.Protected)
	return nil
}

func createSecurityGroup(c *call) (any, error) {
	var in groupRequest
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, in.Organization, projectForbidden("security_group"))
	if err != nil {
		return nil, err
	}
	g := &securityGroup{record: newRecord(owner, "sg-"+newID()[:8], nil), Zone: c.zone(), Inbound: "accept", Outbound: "accept",
		Protected: true, State: "available"}
	if err := in.into(g); err != nil {
		return nil, err
	}
	if in.Default.or(false) {
		c.defaultSecurityGroup(owner, c.zone()).Default = false
		g.Default = true
	}
	return doc{"security_group": c.viewSecurityGroup(add(c.world, c.SecurityGroups, g))}, nil
}

func (c *call) securityGroup(id string) (*securityGroup, error) {
	if g, ok := c.SecurityGroups.get(id); ok && g.Zone == c.zone() {
		return g, nil
	}
	return nil, notFound("instance_security_group", id)
}

func getSecurityGroup(c *call) (any, error) {
	g, err := c.securityGroup(c.path("id"))
	if err != nil {
		return nil, err
	}
	return doc{"security_group": c.viewSecurityGroup(g)}, nil
}

func updateSecurityGroup(c *call) (any, error) {
	g, err := c.securityGroup(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in groupRequest
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := in.into(g); err != nil {
		return nil, err
	}
	if in.Default.or(false) && !g.Default {
		c.defaultSecurityGroup(g.Project, g.Zone).Default = false
		g.Default = true
	}
	view := c.viewSecurityGroup(g)
	c.syncGroup(g)
	return doc{"security_group": view}, nil
}

// syncGroup shows a changed group that servers use as syncing for a moment.
func (c *call) syncGroup(g *securityGroup) {
	change(c.world, c.SecurityGroups, g)
	if !c.Servers.any(func(s *server) bool { return s.SecurityGroup == g.ID && s.State != stateStopped }) {
		return
	}
	g.State = "syncing"
	g.Turn++
	turn := g.Turn
	c.after(groupSyncs, func(w *world) {
		if g, ok := w.SecurityGroups.get(g.ID); ok && g.Turn == turn {
			g.State = "available"
		}
	})
}

// deleteSecurityGroup also deletes a default group; a new one comes into being
// when one is needed.
func deleteSecurityGroup(c *call) (any, error) {
	g, err := c.securityGroup(c.path("id"))
	if err != nil {
		return nil, err
	}
	if c.Servers.any(func(s *server) bool { return s.SecurityGroup == g.ID }) {
		return nil, badRequest("group is in use. you cannot delete it.")
	}
	remove(c.world, c.SecurityGroups, g.ID)
	return nil, nil
}

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
		if r.From != nil || r.To != nil {
			return invalid("dest_port_from", "constraint", r.Protocol+" rules have no ports")
		}
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
