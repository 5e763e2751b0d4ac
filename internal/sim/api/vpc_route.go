package api

import (
	"net/http"
	"net/netip"
)

// route is a custom route of a VPC.
type route struct {
	record
	Region         string
	VPC            string
	Description    string
	Destination    netip.Prefix
	Resource       string // nexthop_resource_id
	PrivateNetwork string
	Connector      string
}

func (r *Region) vpcRouteRoutes(base string) {
	r.route("GET "+base+"/routes-with-nexthop", http.StatusOK, listRoutesWithNexthop)
	r.route("GET "+base+"/routes", http.StatusOK, listRoutes)
	r.route("POST "+base+"/routes", http.StatusOK, createRoute)
	r.route("GET "+base+"/routes/{id}", http.StatusOK, getRoute)
	r.route("PATCH "+base+"/routes/{id}", http.StatusOK, updateRoute)
	r.route("DELETE "+base+"/routes/{id}", http.StatusNoContent, deleteRoute)
}

func (w *world) viewRoute(r *route) doc {
	return doc{"id": r.ID, "srn": noSRN, "description": r.Description, "tags": r.Tags, "vpc_id": r.VPC, "destination": r.Destination.String(),
		"nexthop_resource_id": orNull(r.Resource), "nexthop_private_network_id": orNull(r.PrivateNetwork),
		"nexthop_vpc_connector_id": orNull(r.Connector), "region": r.Region, "is_read_only": false, "type": "custom",
		"created_at": stamp(r.Created), "updated_at": stamp(r.Updated)}
}

// managedRoute is a route that the VPC has by itself.
func managedRoute(p *privateNetwork, destination netip.Prefix, kind, description string) doc {
	return doc{"id": "", "srn": noSRN, "description": description, "tags": []string{"MANAGED"}, "vpc_id": p.VPC, "destination": destination.String(),
		"nexthop_resource_id": nil, "nexthop_private_network_id": p.ID, "nexthop_vpc_connector_id": nil, "region": p.Region,
		"is_read_only": true, "type": kind, "created_at": stamp(p.Created), "updated_at": stamp(p.Updated)}
}

func listRoutes(c *call) (any, error) {
	items := c.Routes.where(func(r *route) bool {
		return r.Region == c.regionName() && c.matches(&r.record) && oneOf(r.VPC, c.values("vpc_id"))
	})
	return paged(c, "routes", items, c.viewRoute)
}

// listRoutesWithNexthop also shows the routes that the VPC has by itself: one
// for each subnet and the default route of a gateway. Tags do not filter them.
func listRoutesWithNexthop(c *call) (any, error) {
	out, types := []doc{}, c.known("nexthop_resource_type")
	show := func(d, r doc) {
		dest, _ := netip.ParsePrefix(r["destination"].(string))
		if oneOf(r["vpc_id"].(string), c.values("vpc_id")) && oneOf(d["nexthop_resource_type"].(string), types) &&
			wants(c, "nexthop_private_network_id", r["nexthop_private_network_id"]) &&
			wants(c, "nexthop_resource_id", r["nexthop_resource_id"]) && covers(dest, c.query("contains")) &&
			wants(c, "nexthop_vpc_connector_id", r["nexthop_vpc_connector_id"]) &&
			oneOf(dest.String(), c.values("destination")) && oneOf(r["type"].(string), routeTypes(c)) &&
			c.agrees("is_ipv6", dest.Addr().Is6()) {
			d["route"] = r
			out = append(out, d)
		}
	}
	for _, p := range c.PrivateNetworks.all() {
		if p.Region != c.regionName() {
			continue
		}
		for _, s := range p.Subnets {
			show(doc{"nexthop_ip": nil, "nexthop_name": nil, "nexthop_resource_type": "unknown_type"},
				managedRoute(p, s.Prefix, "subnet", "Local Private Network route"))
		}
		if g, n := c.defaultGateway(p.ID); g != nil {
			r := managedRoute(p, netip.MustParsePrefix("0.0.0.0/0"), "default", "Default route")
			r["nexthop_resource_id"] = n.ID
			show(doc{"nexthop_ip": c.address4([]string{n.IPAM}).Addr().String(), "nexthop_name": g.Name,
				"nexthop_resource_type": "vpc_gateway_network"}, r)
		}
	}
	for _, r := range c.Routes.all() {
		if r.Region == c.regionName() && anyTag(r.Tags, c.tags()) {
			show(c.nexthop(r), c.viewRoute(r))
		}
	}
	return doc{"routes": list(page(c, out, "page_size", 20)), "total_count": len(out)}, nil
}

// covers says whether a route's destination contains a network, if one is asked
// for.
func covers(dest netip.Prefix, text string) bool {
	if text == "" {
		return true
	}
	p, err := netip.ParsePrefix(text)
	return err == nil && dest.Bits() <= p.Bits() && dest.Contains(p.Addr())
}

func routeTypes(c *call) []string {
	return c.known("types", "type")
}

func wants(c *call, name string, have any) bool {
	s, _ := have.(string)
	return oneOf(s, c.values(name))
}

// nexthop tells what a custom route leads to.
func (w *world) nexthop(r *route) doc {
	d := doc{"nexthop_ip": nil, "nexthop_name": nil, "nexthop_resource_type": "unknown_type"}
	if n, ok := w.NICs.get(r.Resource); ok {
		d["nexthop_resource_type"] = "instance_private_nic"
		if s, ok := w.Servers.get(n.Server); ok {
			d["nexthop_name"] = s.Name
		}
		if a := w.address4(n.IPAM); a.IsValid() {
			d["nexthop_ip"] = a.Addr().String()
		}
	}
	if g, ok := w.GatewayNetworks.get(r.Resource); ok {
		d["nexthop_resource_type"] = "vpc_gateway_network"
		if a := w.address4([]string{g.IPAM}); a.IsValid() {
			d["nexthop_ip"] = a.Addr().String()
		}
	}
	return d
}

func createRoute(c *call) (any, error) {
	var in struct {
		Description    string   `json:"description"`
		Tags           []string `json:"tags"`
		VPC            string   `json:"vpc_id"`
		Destination    string   `json:"destination"`
		Resource       string   `json:"nexthop_resource_id"`
		PrivateNetwork string   `json:"nexthop_private_network_id"`
		Connector      string   `json:"nexthop_vpc_connector_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	v, err := c.vpc(in.VPC)
	if err != nil {
		return nil, err
	}
	dest, err := netip.ParsePrefix(in.Destination)
	if err != nil {
		return nil, invalid("destination", "format", "destination is not a network in CIDR notation")
	}
	if in.PrivateNetwork != "" {
		if _, err := c.privateNetwork(in.PrivateNetwork, c.regionName()); err != nil {
			return nil, err
		}
	}
	r := &route{record: newRecord(v.Project, "", in.Tags), Region: c.regionName(), VPC: v.ID, Description: in.Description,
		Destination: dest.Masked(), Resource: in.Resource, PrivateNetwork: in.PrivateNetwork, Connector: in.Connector}
	return c.viewRoute(add(c.world, c.Routes, r)), nil
}

// routeByID misses with resource "unknown" and no id, unlike its neighbours.
func (c *call) routeByID() (*route, error) {
	if r, ok := c.Routes.get(c.path("id")); ok && r.Region == c.regionName() {
		return r, nil
	}
	return nil, notFound("unknown", "")
}

func getRoute(c *call) (any, error) {
	r, err := c.routeByID()
	if err != nil {
		return nil, err
	}
	return c.viewRoute(r), nil
}

func updateRoute(c *call) (any, error) {
	r, err := c.routeByID()
	if err != nil {
		return nil, err
	}
	if err := c.rename(&r.record); err != nil {
		return nil, err
	}
	var in struct {
		Description    opt[string] `json:"description"`
		Destination    opt[string] `json:"destination"`
		Resource       opt[string] `json:"nexthop_resource_id"`
		PrivateNetwork opt[string] `json:"nexthop_private_network_id"`
		Connector      opt[string] `json:"nexthop_vpc_connector_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Destination.given && !in.Destination.null {
		dest, err := netip.ParsePrefix(in.Destination.value)
		if err != nil {
			return nil, invalid("destination", "format", "destination is not a network in CIDR notation")
		}
		r.Destination = dest.Masked()
	}
	in.Description.set(&r.Description)
	in.Resource.set(&r.Resource)
	in.PrivateNetwork.set(&r.PrivateNetwork)
	in.Connector.set(&r.Connector)
	change(c.world, c.Routes, r)
	return c.viewRoute(r), nil
}

func deleteRoute(c *call) (any, error) {
	r, err := c.routeByID()
	if err != nil {
		return nil, err
	}
	remove(c.world, c.Routes, r.ID)
	return nil, nil
}
