package api

import (
	"net/http"
)

// vpc is a regional virtual private cloud. VPCs and private networks have no
// states: they are there at once and gone at once.
type vpc struct {
	record
	Region            string
	Default           bool
	Routing           bool
	RoutesPropagation bool
}

func (r *Region) vpcRoutes() {
	const base = "/vpc/v2/regions/{region}"
	r.route("GET "+base+"/vpcs", http.StatusOK, listVPCs)
	r.route("POST "+base+"/vpcs", http.StatusOK, createVPC)
	r.route("GET "+base+"/vpcs/{id}", http.StatusOK, getVPC)
	r.route("PATCH "+base+"/vpcs/{id}", http.StatusOK, updateVPC)
	r.route("DELETE "+base+"/vpcs/{id}", http.StatusNoContent, deleteVPC)
	r.route("POST "+base+"/vpcs/{id}/enable-routing", http.StatusOK, enableRouting)
	r.route("POST "+base+"/vpcs/{id}/enable-custom-routes-propagation", http.StatusOK, enablePropagation)
	r.route("GET "+base+"/vpcs/{id}/acl-rules", http.StatusOK, getACL)
	r.route("PUT "+base+"/vpcs/{id}/acl-rules", http.StatusOK, setACL)
	r.privateNetworkRoutes(base)
	r.vpcRouteRoutes(base)
	r.connectorRoutes(base)
}

func (c *call) viewVPC(v *vpc) doc {
	n := len(c.PrivateNetworks.where(func(p *privateNetwork) bool { return p.VPC == v.ID }))
	return doc{"id": v.ID, "srn": noSRN, "name": v.Name, "organization_id": c.organization(v.Project), "project_id": v.Project,
		"region": v.Region, "tags": v.Tags, "is_default": v.Default, "created_at": stamp(v.Created), "updated_at": stamp(v.Updated),
		"private_network_count": n, "routing_enabled": v.Routing, "custom_routes_propagation_enabled": v.RoutesPropagation,
		"s3_integration_enabled": false, "object_storage_private_access_enabled": false, "transitivity_enabled": false}
}

// defaultVPC is the one that every project has in every region; it comes into
// being when something first looks for it.
func (w *world) defaultVPC(project, region string) *vpc {
	for _, v := range w.VPCs.all() {
		if v.Default && v.Project == project && v.Region == region {
			return v
		}
	}
	v := &vpc{record: newRecord(project, "default", []string{"default"}), Region: region, Default: true, Routing: true}
	return silently(w, w.VPCs, v)
}

// materialize makes the default VPCs of a region's projects, for listings.
func (c *call) materialize() {
	for _, id := range c.Projects.Order {
		c.defaultVPC(id, c.regionName())
	}
	if p := c.query("project_id"); p != "" && c.knownProject(p) {
		c.defaultVPC(p, c.regionName())
	}
}

func listVPCs(c *call) (any, error) {
	c.materialize()
	items := c.VPCs.where(func(v *vpc) bool {
		return v.Region == c.regionName() && c.matches(&v.record) && c.agrees("is_default", v.Default) &&
			c.agrees("routing_enabled", v.Routing) && c.agrees("object_storage_private_access_enabled", false)
	})
	return paged(c, "vpcs", items, c.viewVPC)
}

func createVPC(c *call) (any, error) {
	var in struct {
		Name    string   `json:"name"`
		Project string   `json:"project_id"`
		Tags    []string `json:"tags"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, "", projectNotFound)
	if err != nil {
		return nil, err
	}
	if in.Name == "" {
		in.Name = "vpc-" + newID()[:8]
	}
	// enable_routing is not read: routing is always on, whatever was asked.
	v := &vpc{record: newRecord(owner, in.Name, in.Tags), Region: c.regionName(), Routing: true, RoutesPropagation: true}
	return c.viewVPC(add(c.world, c.VPCs, v)), nil
}

func (c *call) vpc(id string) (*vpc, error) {
	if v, ok := c.VPCs.get(id); ok && v.Region == c.regionName() {
		return v, nil
	}
	return nil, notFound("vpc", id)
}

func getVPC(c *call) (any, error) {
	v, err := c.vpc(c.path("id"))
	if err != nil {
		return nil, err
	}
	return c.viewVPC(v), nil
}

func updateVPC(c *call) (any, error) {
	v, err := c.vpc(c.path("id"))
	if err != nil {
		return nil, err
	}
	if err := c.rename(&v.record); err != nil {
		return nil, err
	}
	change(c.world, c.VPCs, v)
	return c.viewVPC(v), nil
}

// rename reads the two fields that nearly everything can change: name and tags.
func (c *call) rename(m *record) error {
	var in struct {
		Name opt[string]   `json:"name"`
		Tags opt[[]string] `json:"tags"`
	}
	if err := c.decode(&in); err != nil {
		return err
	}
	if in.Name.given && !in.Name.null {
		m.Name = in.Name.value
	}
	if in.Tags.given && !in.Tags.null {
		m.Tags = list(in.Tags.value)
	}
	return nil
}

func deleteVPC(c *call) (any, error) {
	v, err := c.vpc(c.path("id"))
	if err != nil {
		return nil, err
	}
	if v.Default {
		return nil, precondition("resource_not_usable", "The default VPC cannot be deleted")
	}
	if c.PrivateNetworks.any(func(p *privateNetwork) bool { return p.VPC == v.ID }) {
		return nil, stillInUse("VPC must be empty to be deleted")
	}
	for _, r := range c.Routes.where(func(r *route) bool { return r.VPC == v.ID }) {
		remove(c.world, c.Routes, r.ID)
	}
	for _, k := range c.Connectors.where(func(k *connector) bool { return k.VPC == v.ID }) {
		remove(c.world, c.Connectors, k.ID)
	}
	for _, r := range c.IngressRules.where(func(r *ingressRule) bool { return r.VPC == v.ID }) {
		remove(c.world, c.IngressRules, r.ID)
	}
	delete(c.ACLs, aclKey(v.ID, false))
	delete(c.ACLs, aclKey(v.ID, true))
	remove(c.world, c.VPCs, v.ID)
	return nil, nil
}

func enableRouting(c *call) (any, error) {
	v, err := c.vpc(c.path("id"))
	if err != nil {
		return nil, err
	}
	v.Routing = true
	change(c.world, c.VPCs, v)
	return c.viewVPC(v), nil
}

func enablePropagation(c *call) (any, error) {
	v, err := c.vpc(c.path("id"))
	if err != nil {
		return nil, err
	}
	if !v.RoutesPropagation {
		v.RoutesPropagation = true
		change(c.world, c.VPCs, v)
	}
	return c.viewVPC(v), nil
}

// aclList is a VPC's access list for one address family.
type aclList struct {
	DefaultPolicy string
	Rules         []aclRule
}

type aclRule struct {
	Protocol    string `json:"protocol"`
	Source      string `json:"source"`
	SrcPortLow  int    `json:"src_port_low"`
	SrcPortHigh int    `json:"src_port_high"`
	Destination string `json:"destination"`
	DstPortLow  int    `json:"dst_port_low"`
	DstPortHigh int    `json:"dst_port_high"`
	Action      string `json:"action"`
	Description string `json:"description"`
}

func aclKey(vpc string, ipv6 bool) string {
	if ipv6 {
		return vpc + "/6"
	}
	return vpc + "/4"
}

func viewACL(a aclList) doc {
	return doc{"rules": list(a.Rules), "default_policy": a.DefaultPolicy}
}

func getACL(c *call) (any, error) {
	v, err := c.vpc(c.path("id"))
	if err != nil {
		return nil, err
	}
	ipv6, _ := c.flag("is_ipv6")
	a, ok := c.ACLs[aclKey(v.ID, ipv6)]
	if !ok {
		a.DefaultPolicy = "accept"
	}
	return viewACL(a), nil
}

func setACL(c *call) (any, error) {
	v, err := c.vpc(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Rules         []aclRule `json:"rules"`
		IsIPv6        bool      `json:"is_ipv6"`
		DefaultPolicy string    `json:"default_policy"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	for i := range in.Rules {
		r := &in.Rules[i]
		if r.DstPortHigh < r.DstPortLow {
			return nil, invalid("dst_port_high", "constraint", "must be greater than or equal to dst_port_low")
		}
		if r.SrcPortHigh < r.SrcPortLow {
			return nil, invalid("src_port_high", "constraint", "must be greater than or equal to src_port_low")
		}
		r.Description = scoped(r.Description)
	}
	a := aclList{DefaultPolicy: in.DefaultPolicy, Rules: in.Rules}
	c.ACLs[aclKey(v.ID, in.IsIPv6)] = a
	change(c.world, c.VPCs, v)
	return viewACL(a), nil
}

// scoped puts the scope in front of a rule's description, as the API does.
func scoped(description string) string {
	const prefix = "(Rule scope: client) "
	if len(description) >= len(prefix) && description[:len(prefix)] == prefix {
		return description
	}
	return prefix + description
}
