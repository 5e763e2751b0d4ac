package api

import (
	"fmt"
	"net/http"
	"net/netip"
)

func (r *Region) gatewayIPRoutes(base string) {
	r.route("GET "+base+"/ips", http.StatusOK, listGatewayIPs)
	r.route("POST "+base+"/ips", http.StatusOK, createGatewayIP)
	r.route("GET "+base+"/ips/{id}", http.StatusOK, getGatewayIP)
	r.route("PATCH "+base+"/ips/{id}", http.StatusOK, updateGatewayIP)
	r.route("DELETE "+base+"/ips/{id}", http.StatusNoContent, deleteGatewayIP)
}

func (c *call) viewGatewayIP(ip *gatewayIP) doc {
	d := doc{"id": ip.ID, "srn": noSRN, "address": ip.Address.String(), "organization_id": c.organization(ip.Project), "project_id": ip.Project,
		"reverse": ip.Reverse, "tags": ip.Tags, "zone": ip.Zone, "created_at": stamp(ip.Created), "updated_at": stamp(ip.Updated)}
	if ip.Gateway != "" {
		d["gateway_id"] = ip.Gateway
	}
	return d
}

// reverseName is the name that a public address has until it is given another.
func reverseName(a netip.Addr, domain string) string {
	b := a.As4()
	return fmt.Sprintf("%d-%d-%d-%d.%s", b[3], b[2], b[1], b[0], domain)
}

func (c *call) newGatewayIP(owner string, tags []string) *gatewayIP {
	a := c.publicIPv4()
	return add(c.world, c.GatewayIPs, &gatewayIP{record: newRecord(owner, "", tags), Zone: c.zone(), Address: a,
		Reverse: reverseName(a, "instances.scw.cloud")})
}

func listGatewayIPs(c *call) (any, error) {
	free, filter := c.flag("is_free")
	items := c.GatewayIPs.where(func(ip *gatewayIP) bool {
		return ip.Zone == c.zone() && c.matches(&ip.record) && oneOf(ip.Reverse, c.values("reverse")) &&
			(!filter || free == (ip.Gateway == ""))
	})
	return paged(c, "ips", items, c.viewGatewayIP)
}

func createGatewayIP(c *call) (any, error) {
	var in struct {
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
	return c.viewGatewayIP(c.newGatewayIP(owner, in.Tags)), nil
}

func (c *call) gatewayIP(id string) (*gatewayIP, error) {
	if ip, ok := c.GatewayIPs.get(id); ok && ip.Zone == c.zone() {
		return ip, nil
	}
	return nil, notFound("ip", id)
}

func getGatewayIP(c *call) (any, error) {
	ip, err := c.gatewayIP(c.path("id"))
	if err != nil {
		return nil, err
	}
	return c.viewGatewayIP(ip), nil
}

func updateGatewayIP(c *call) (any, error) {
	ip, err := c.gatewayIP(c.path("id"))
	if err != nil {
		return nil, err
	}
	if err := c.rename(&ip.record); err != nil {
		return nil, err
	}
	var in struct {
		Gateway opt[string] `json:"gateway_id"`
		Reverse opt[string] `json:"reverse"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Reverse.given {
		if name := in.Reverse.or(""); name != "" && !c.resolves(name, ip.Address) {
			// The refusal comes wrapped in another one's words.
			return nil, invalid("reverse", "unknown", "must_resolve: "+mustResolve(name, ip.Address))
		}
		ip.Reverse = in.Reverse.or("")
		if ip.Reverse == "" {
			ip.Reverse = reverseName(ip.Address, "instances.scw.cloud")
		}
	}
	if in.Gateway.given {
		if err := c.moveGatewayIP(ip, in.Gateway.or("")); err != nil {
			return nil, err
		}
	}
	change(c.world, c.GatewayIPs, ip)
	return c.viewGatewayIP(ip), nil
}

// moveGatewayIP gives an address to a gateway, or takes it away for "".
func (c *call) moveGatewayIP(ip *gatewayIP, to string) error {
	if to == ip.Gateway {
		return nil
	}
	if ip.Gateway != "" {
		old, err := c.steadyGateway(ip.Gateway)
		if err != nil {
			return err
		}
		old.IP = ""
		c.configure(old, gatewayConfigures)
	}
	ip.Gateway = to
	if to == "" {
		return nil
	}
	g, err := c.steadyGateway(to)
	if err != nil {
		return err
	}
	if before, ok := c.GatewayIPs.get(g.IP); ok {
		before.Gateway = ""
	}
	g.IP = ip.ID
	c.configure(g, gatewayConfigures)
	return nil
}

func deleteGatewayIP(c *call) (any, error) {
	ip, err := c.gatewayIP(c.path("id"))
	if err != nil {
		return nil, err
	}
	if ip.Gateway != "" {
		return nil, stillInUse("IP must be detached from its gateway to be deleted")
	}
	c.freePublic(ip.Address)
	remove(c.world, c.GatewayIPs, ip.ID)
	return nil, nil
}
