package api

import (
	"net/http"
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

const groupSyncs = time.Second

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
	return silently(w, w.SecurityGroups, g)
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
