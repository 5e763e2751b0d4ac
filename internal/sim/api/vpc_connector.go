package api

import (
	"net/http"
	"net/netip"
)

// connector joins two VPCs once each has one towards the other; until then it
// is an orphan.
type connector struct {
	record
	Region string
	VPC    string
	Target string
}

// ingressRule leads traffic that comes from another VPC.
type ingressRule struct {
	record
	Region         string
	VPC            string
	Description    string
	Source         netip.Prefix
	NexthopIP      string
	PrivateNetwork string
}

func (r *Region) connectorRoutes(base string) {
	r.route("GET "+base+"/vpc-connectors", http.StatusOK, listConnectors)
	r.route("POST "+base+"/vpc-connectors", http.StatusOK, createConnector)
	r.route("GET "+base+"/vpc-connectors/{id}", http.StatusOK, getConnector)
	r.route("PATCH "+base+"/vpc-connectors/{id}", http.StatusOK, updateConnector)
	r.route("DELETE "+base+"/vpc-connectors/{id}", http.StatusNoContent, deleteConnector)
	r.route("GET "+base+"/ingress-rules", http.StatusOK, listIngressRules)
	r.route("POST "+base+"/ingress-rules", http.StatusOK, createIngressRule)
	r.route("GET "+base+"/ingress-rules/{id}", http.StatusOK, getIngressRule)
	r.route("PATCH "+base+"/ingress-rules/{id}", http.StatusOK, updateIngressRule)
	r.route("DELETE "+base+"/ingress-rules/{id}", http.StatusNoContent, deleteIngressRule)
}

// connectorStatus says whether a connector works: only once there is one for the way back.
func (w *world) connectorStatus(k *connector) string {
	if w.Connectors.any(func(o *connector) bool { return o.VPC == k.Target && o.Target == k.VPC }) {
		return "peered"
	}
	return "orphan"
}

func (c *call) viewConnector(k *connector) doc {
	return doc{"id": k.ID, "srn": noSRN, "name": k.Name, "tags": k.Tags, "organization_id": c.organization(k.Project), "project_id": k.Project,
		"region": k.Region, "status": c.connectorStatus(k), "vpc_id": k.VPC, "target_vpc_id": k.Target,
		"created_at": stamp(k.Created), "updated_at": stamp(k.Updated)}
}

func listConnectors(c *call) (any, error) {
	items := c.Connectors.where(func(k *connector) bool {
		return k.Region == c.regionName() && c.matches(&k.record) && oneOf(k.VPC, c.values("vpc_id")) &&
			oneOf(k.Target, c.values("target_vpc_id")) && oneOf(c.connectorStatus(k), c.known("status"))
	})
	return paged(c, "vpc_connectors", items, c.viewConnector)
}

func createConnector(c *call) (any, error) {
	var in struct {
		Name   string   `json:"name"`
		Tags   []string `json:"tags"`
		VPC    string   `json:"vpc_id"`
		Target string   `json:"target_vpc_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	v, err := c.vpc(in.VPC)
	if err != nil {
		return nil, err
	}
	if _, err := c.vpc(in.Target); err != nil {
		return nil, err
	}
	k := &connector{record: newRecord(v.Project, in.Name, in.Tags), Region: c.regionName(), VPC: v.ID, Target: in.Target}
	return c.viewConnector(add(c.world, c.Connectors, k)), nil
}

func (c *call) connector() (*connector, error) {
	if k, ok := c.Connectors.get(c.path("id")); ok {
		return k, nil
	}
	return nil, notFound("vpc_connector", c.path("id"))
}

func getConnector(c *call) (any, error) {
	k, err := c.connector()
	if err != nil {
		return nil, err
	}
	return c.viewConnector(k), nil
}

func updateConnector(c *call) (any, error) {
	k, err := c.connector()
	if err != nil {
		return nil, err
	}
	if err := c.rename(&k.record); err != nil {
		return nil, err
	}
	change(c.world, c.Connectors, k)
	return c.viewConnector(k), nil
}

func deleteConnector(c *call) (any, error) {
	k, err := c.connector()
	if err != nil {
		return nil, err
	}
	remove(c.world, c.Connectors, k.ID)
	return nil, nil
}

func (c *call) viewIngressRule(r *ingressRule) doc {
	return doc{"id": r.ID, "srn": noSRN, "description": r.Description, "tags": r.Tags, "organization_id": c.organization(r.Project),
		"project_id": r.Project, "region": r.Region, "vpc_id": r.VPC, "source": r.Source.String(), "is_ipv6": r.Source.Addr().Is6(),
		"nexthop_resource_ip": r.NexthopIP, "nexthop_private_network_id": r.PrivateNetwork,
		"created_at": stamp(r.Created), "updated_at": stamp(r.Updated)}
}

func listIngressRules(c *call) (any, error) {
	items := c.IngressRules.where(func(r *ingressRule) bool {
		return r.Region == c.regionName() && c.matches(&r.record) && oneOf(r.VPC, c.values("vpc_id")) &&
			oneOf(r.PrivateNetwork, c.values("nexthop_private_network_id")) &&
			oneOf(r.NexthopIP, c.values("nexthop_resource_ip")) && c.agrees("is_ipv6", r.Source.Addr().Is6())
	})
	return paged(c, "rules", items, c.viewIngressRule)
}

func createIngressRule(c *call) (any, error) {
	var in struct {
		VPC            string   `json:"vpc_id"`
		Source         string   `json:"source"`
		NexthopIP      string   `json:"nexthop_resource_ip"`
		PrivateNetwork string   `json:"nexthop_private_network_id"`
		Description    string   `json:"description"`
		Tags           []string `json:"tags"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	v, err := c.vpc(in.VPC)
	if err != nil {
		return nil, err
	}
	source, err := netip.ParsePrefix(in.Source)
	if err != nil {
		return nil, invalid("source", "format", "source is not a network in CIDR notation")
	}
	r := &ingressRule{record: newRecord(v.Project, "", in.Tags), Region: c.regionName(), VPC: v.ID, Description: in.Description,
		Source: source.Masked(), NexthopIP: in.NexthopIP, PrivateNetwork: in.PrivateNetwork}
	return c.viewIngressRule(add(c.world, c.IngressRules, r)), nil
}

func (c *call) ingressRule() (*ingressRule, error) {
	if r, ok := c.IngressRules.get(c.path("id")); ok {
		return r, nil
	}
	return nil, notFound("unknown", "")
}

func getIngressRule(c *call) (any, error) {
	r, err := c.ingressRule()
	if err != nil {
		return nil, err
	}
	return c.viewIngressRule(r), nil
}

func updateIngressRule(c *call) (any, error) {
	r, err := c.ingressRule()
	if err != nil {
		return nil, err
	}
	if err := c.rename(&r.record); err != nil {
		return nil, err
	}
	var in struct {
		Description opt[string] `json:"description"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	in.Description.set(&r.Description)
	change(c.world, c.IngressRules, r)
	return c.viewIngressRule(r), nil
}

func deleteIngressRule(c *call) (any, error) {
	r, err := c.ingressRule()
	if err != nil {
		return nil, err
	}
	remove(c.world, c.IngressRules, r.ID)
	return nil, nil
}
