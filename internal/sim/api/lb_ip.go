package api

import (
	"net/http"
	"net/netip"
	"strings"
)

func (r *Region) lbIPRoutes(base string) {
	r.route("GET "+base+"/ips", http.StatusOK, listLBIPs)
	r.route("POST "+base+"/ips", http.StatusOK, createLBIP)
	r.route("GET "+base+"/ips/{id}", http.StatusOK, getLBIP)
	r.route("PATCH "+base+"/ips/{id}", http.StatusOK, updateLBIP)
	r.route("DELETE "+base+"/ips/{id}", http.StatusNoContent, deleteLBIP)
}

func (c *call) viewLBIP(ip *lbIP) doc {
	return doc{"id": ip.ID, "ip_address": ip.Address.String(), "organization_id": c.organization(ip.Project), "project_id": ip.Project,
		"lb_id": orNull(ip.LB), "reverse": ip.Reverse, "tags": ip.Tags, "region": regionOf(ip.Zone), "zone": ip.Zone}
}

func (c *call) newLBIP(owner string, ipv6 bool, tags []string) *lbIP {
	ip := &lbIP{record: newRecord(owner, "", tags), Zone: c.zone()}
	if ipv6 {
		ip.Address = c.publicIPv6().Addr()
	} else {
		ip.Address = c.publicIPv4()
	}
	ip.Reverse = lbReverse(ip.Address, regionOf(c.zone()))
	return add(c.world, c.LBIPs, ip)
}

// lbReverse is the name that an address has until it is given another.
func lbReverse(a netip.Addr, region string) string {
	domain := ".lb." + region + ".scw.cloud"
	if a.Is4() {
		return strings.ReplaceAll(a.String(), ".", "-") + domain
	}
	digits := strings.ReplaceAll(a.StringExpanded(), ":", "")
	out := make([]string, 0, len(digits))
	for i := len(digits) - 1; i >= 0; i-- {
		out = append(out, digits[i:i+1])
	}
	return strings.Join(out, ".") + domain
}

// publicIPv6 hands out a /64 of the documentation range.
func (w *world) publicIPv6() netip.Prefix {
	w.NextPrefix++
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 0x07, 0x11, byte(w.NextPrefix >> 8), byte(w.NextPrefix)}), 64)
}

func listLBIPs(c *call) (any, error) {
	kind := c.query("ip_type")
	items := c.LBIPs.where(func(ip *lbIP) bool {
		return ip.Zone == c.zone() && c.matches(&ip.record) && oneOf(ip.Address.String(), c.values("ip_address")) &&
			(kind == "" || kind == "all" || (kind == "ipv4") == ip.Address.Is4())
	})
	return paged(c, "ips", items, c.viewLBIP)
}

func createLBIP(c *call) (any, error) {
	var in struct {
		Project      string   `json:"project_id"`
		Organization string   `json:"organization_id"`
		Reverse      string   `json:"reverse"`
		IsIPv6       bool     `json:"is_ipv6"`
		Tags         []string `json:"tags"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, in.Organization, projectForbidden("ip"))
	if err != nil {
		return nil, err
	}
	ip := c.newLBIP(owner, in.IsIPv6, in.Tags)
	if in.Reverse != "" {
		ip.Reverse = in.Reverse
	}
	return c.viewLBIP(ip), nil
}

func (c *call) lbIP(id string) (*lbIP, error) {
	if ip, ok := c.LBIPs.get(id); ok && ip.Zone == c.zone() {
		return ip, nil
	}
	return nil, missingLB("ips")
}

func getLBIP(c *call) (any, error) {
	ip, err := c.lbIP(c.path("id"))
	if err != nil {
		return nil, err
	}
	return c.viewLBIP(ip), nil
}

func updateLBIP(c *call) (any, error) {
	ip, err := c.lbIP(c.path("id"))
	if err != nil {
		return nil, err
	}
	if err := c.rename(&ip.record); err != nil {
		return nil, err
	}
	var in struct {
		Reverse opt[string] `json:"reverse"`
		LB      opt[string] `json:"lb_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Reverse.given {
		ip.Reverse = in.Reverse.or(lbReverse(ip.Address, regionOf(ip.Zone)))
		if ip.Reverse == "" {
			ip.Reverse = lbReverse(ip.Address, regionOf(ip.Zone))
		}
	}
	if id := in.LB.or(""); id != "" && id != ip.LB {
		l, err := c.readyLB(id)
		if err != nil {
			return nil, err
		}
		if !l.Public {
			return nil, untyped(http.StatusBadRequest, "a private load balancer cannot have a public ip")
		}
		ip.LB = l.ID
		l.IPs = append(l.IPs, ip.ID)
		c.applyLB(l)
	}
	change(c.world, c.LBIPs, ip)
	return c.viewLBIP(ip), nil
}

func deleteLBIP(c *call) (any, error) {
	ip, err := c.lbIP(c.path("id"))
	if err != nil {
		return nil, err
	}
	if ip.LB != "" {
		return nil, stillInUse("IP is attached to a load balancer")
	}
	c.freePublic(ip.Address)
	remove(c.world, c.LBIPs, ip.ID)
	return nil, nil
}
