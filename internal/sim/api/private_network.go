package api

import (
	"crypto/rand"
	"net/http"
	"net/netip"
	"time"
)

// privateNetwork is a layer 2 network of a VPC with one IPv4 and one IPv6
// subnet, or more. DHCP is always on.
type privateNetwork struct {
	record
	Region       string
	VPC          string
	Subnets      []subnet
	DefaultRoute bool      // default_route_propagation_enabled
	BusyUntil    time.Time // a server that was just deleted still counts as attached
}

type subnet struct {
	ID      string
	Prefix  netip.Prefix
	Created time.Time
	Updated time.Time
}

func (r *Region) privateNetworkRoutes(base string) {
	r.route("GET "+base+"/private-networks", http.StatusOK, listPrivateNetworks)
	r.route("POST "+base+"/private-networks", http.StatusOK, createPrivateNetwork)
	r.route("GET "+base+"/private-networks/{id}", http.StatusOK, getPrivateNetwork)
	r.route("PATCH "+base+"/private-networks/{id}", http.StatusOK, updatePrivateNetwork)
	r.route("DELETE "+base+"/private-networks/{id}", http.StatusNoContent, deletePrivateNetwork)
	r.route("POST "+base+"/private-networks/{id}/enable-dhcp", http.StatusOK, getPrivateNetwork) // it is on already
	r.route("POST "+base+"/private-networks/{id}/subnets", http.StatusOK, addSubnets)
	r.route("DELETE "+base+"/private-networks/{id}/subnets", http.StatusOK, deleteSubnets)
	r.route("GET "+base+"/subnets", http.StatusOK, listSubnets)
}

func (w *world) viewSubnet(p *privateNetwork, s subnet) doc {
	return doc{"id": s.ID, "srn": noSRN, "subnet": s.Prefix.String(), "private_network_id": p.ID, "project_id": p.Project, "vpc_id": p.VPC,
		"region": p.Region, "created_at": stamp(s.Created), "updated_at": stamp(s.Updated)}
}

func (c *call) viewPrivateNetwork(p *privateNetwork) doc {
	return doc{"id": p.ID, "srn": noSRN, "name": p.Name, "organization_id": c.organization(p.Project), "project_id": p.Project,
		"region": p.Region, "tags": p.Tags, "created_at": stamp(p.Created), "updated_at": stamp(p.Updated), "vpc_id": p.VPC,
		"dhcp_enabled": true, "default_route_propagation_enabled": p.DefaultRoute,
		"has_s3_integration": false, "has_object_storage_private_access": false,
		"subnets": views(p.Subnets, func(s subnet) doc { return c.viewSubnet(p, s) })}
}

func listPrivateNetworks(c *call) (any, error) {
	ids := c.values("private_network_ids")
	items := c.PrivateNetworks.where(func(p *privateNetwork) bool {
		return p.Region == c.regionName() && c.matches(&p.record) && oneOf(p.VPC, c.values("vpc_id")) && oneOf(p.ID, ids) &&
			c.agrees("dhcp_enabled", true) && c.agrees("object_storage_private_access_enabled", false)
	})
	return paged(c, "private_networks", items, c.viewPrivateNetwork)
}

func createPrivateNetwork(c *call) (any, error) {
	var in struct {
		Name         string   `json:"name"`
		Project      string   `json:"project_id"`
		Tags         []string `json:"tags"`
		Subnets      []string `json:"subnets"`
		VPC          string   `json:"vpc_id"`
		DefaultRoute bool     `json:"default_route_propagation_enabled"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, "", projectNotFound)
	if err != nil {
		return nil, err
	}
	var v *vpc
	if in.VPC == "" {
		v = c.defaultVPC(owner, c.regionName())
	} else if v, err = c.vpc(in.VPC); err != nil {
		return nil, err
	}
	if in.Name == "" {
		in.Name = "pn-" + newID()[:8]
	}
	p := &privateNetwork{record: newRecord(owner, in.Name, in.Tags), Region: c.regionName(), VPC: v.ID, DefaultRoute: in.DefaultRoute}
	if err := c.fillSubnets(p, in.Subnets); err != nil {
		return nil, err
	}
	return c.viewPrivateNetwork(add(c.world, c.PrivateNetworks, p)), nil
}

// fillSubnets gives a network the subnets asked for and, for each address
// family without one, a free one: a /22 of 172.16.0.0/12, a /64 of fd00::/8.
func (c *call) fillSubnets(p *privateNetwork, asked []string) error {
	var has4, has6 bool
	for _, text := range asked {
		prefix, err := c.checkSubnet(p.VPC, p.Subnets, text)
		if err != nil {
			return err
		}
		has4, has6 = has4 || prefix.Addr().Is4(), has6 || prefix.Addr().Is6()
		p.Subnets = append(p.Subnets, newSubnet(prefix))
	}
	if !has4 {
		free, ok := c.freeSubnet(p.VPC)
		if !ok {
			return quotaExceeded("subnets", 1024)
		}
		p.Subnets = append([]subnet{newSubnet(free)}, p.Subnets...)
	}
	if !has6 {
		p.Subnets = append(p.Subnets, newSubnet(randomULA()))
	}
	return nil
}

func newSubnet(p netip.Prefix) subnet {
	t := now()
	return subnet{ID: newID(), Prefix: p, Created: t, Updated: t}
}

// privateRanges are the only ones that a subnet may lie in.
var privateRanges = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fd00::/8")}

// checkSubnet reads a subnet and refuses one that is not private, has host bits
// or overlaps with another of the VPC.
func (w *world) checkSubnet(vpcID string, more []subnet, text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() {
		return p, invalid("subnets", "format", "subnet "+text+" is not a network in CIDR notation")
	}
	private := false
	for _, r := range privateRanges {
		private = private || (r.Contains(p.Addr()) && p.Bits() >= r.Bits())
	}
	if !private {
		return p, invalid("subnets", "constraint", "subnet "+text+" is not within a private range")
	}
	for _, s := range append(w.subnetsOf(vpcID), more...) {
		if s.Prefix.Overlaps(p) {
			return p, invalid("subnets", "constraint", "subnet "+text+" overlaps with "+s.Prefix.String()+" of the same VPC")
		}
	}
	return p, nil
}

func (w *world) subnetsOf(vpcID string) []subnet {
	var out []subnet
	for _, p := range w.PrivateNetworks.all() {
		if p.VPC == vpcID {
			out = append(out, p.Subnets...)
		}
	}
	return out
}

func (w *world) freeSubnet(vpcID string) (netip.Prefix, bool) {
	taken := w.subnetsOf(vpcID)
next:
	for n := range 1024 {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(16 + n>>6), byte(n << 2), 0}), 22)
		for _, s := range taken {
			if s.Prefix.Overlaps(p) {
				continue next
			}
		}
		return p, true
	}
	return netip.Prefix{}, false
}

func randomULA() netip.Prefix {
	var b [16]byte
	_, _ = rand.Read(b[1:8])
	b[0] = 0xfd
	return netip.PrefixFrom(netip.AddrFrom16(b), 64)
}

func (w *world) privateNetwork(id, region string) (*privateNetwork, error) {
	if p, ok := w.PrivateNetworks.get(id); ok && p.Region == region {
		return p, nil
	}
	return nil, notFound("private_network", id)
}

func getPrivateNetwork(c *call) (any, error) {
	p, err := c.privateNetwork(c.path("id"), c.regionName())
	if err != nil {
		return nil, err
	}
	return c.viewPrivateNetwork(p), nil
}

func updatePrivateNetwork(c *call) (any, error) {
	p, err := c.privateNetwork(c.path("id"), c.regionName())
	if err != nil {
		return nil, err
	}
	if err := c.rename(&p.record); err != nil {
		return nil, err
	}
	var in struct {
		DefaultRoute opt[bool] `json:"default_route_propagation_enabled"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	in.DefaultRoute.set(&p.DefaultRoute)
	change(c.world, c.PrivateNetworks, p)
	return c.viewPrivateNetwork(p), nil
}

func deletePrivateNetwork(c *call) (any, error) {
	p, err := c.privateNetwork(c.path("id"), c.regionName())
	if err != nil {
		return nil, err
	}
	if c.occupied(p) {
		return nil, stillInUse("Private Network must be empty to be deleted")
	}
	for _, r := range c.Routes.where(func(r *route) bool { return r.PrivateNetwork == p.ID }) {
		remove(c.world, c.Routes, r.ID)
	}
	for _, r := range c.IngressRules.where(func(r *ingressRule) bool { return r.PrivateNetwork == p.ID }) {
		remove(c.world, c.IngressRules, r.ID)
	}
	remove(c.world, c.PrivateNetworks, p.ID)
	return nil, nil
}

// occupied says whether anything is attached to a network or an address of it
// is booked.
func (w *world) occupied(p *privateNetwork) bool {
	return w.NICs.any(func(n *nic) bool { return n.PrivateNetwork == p.ID }) ||
		w.GatewayNetworks.any(func(g *gatewayNetwork) bool { return g.PrivateNetwork == p.ID }) ||
		w.Attachments.any(func(a *lbAttachment) bool { return a.PrivateNetwork == p.ID }) ||
		w.RDBInstances.any(func(i *rdbInstance) bool { return anyIn(i.Endpoints, p.ID) }) ||
		w.RDBReplicas.any(func(r *rdbReplica) bool { return anyIn(r.Endpoints, p.ID) }) ||
		w.IPs.any(func(i *ipamIP) bool { return i.PrivateNetwork == p.ID }) ||
		now().Before(p.BusyUntil)
}

func addSubnets(c *call) (any, error) {
	return changeSubnets(c, func(p *privateNetwork, text string) error {
		prefix, err := c.checkSubnet(p.VPC, nil, text)
		if err == nil {
			p.Subnets = append(p.Subnets, newSubnet(prefix))
		}
		return err
	})
}

func deleteSubnets(c *call) (any, error) {
	return changeSubnets(c, func(p *privateNetwork, text string) error {
		for i, s := range p.Subnets {
			if s.Prefix.String() != text {
				continue
			}
			if c.IPs.any(func(ip *ipamIP) bool { return ip.Subnet == s.ID }) {
				return stillInUse("Subnet must be empty to be deleted")
			}
			p.Subnets = append(p.Subnets[:i:i], p.Subnets[i+1:]...)
			return nil
		}
		return invalid("subnets", "constraint", "subnet "+text+" is not one of the private network")
	})
}

func changeSubnets(c *call, each func(*privateNetwork, string) error) (any, error) {
	p, err := c.privateNetwork(c.path("id"), c.regionName())
	if err != nil {
		return nil, err
	}
	var in struct {
		Subnets []string `json:"subnets"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	for _, s := range in.Subnets {
		if err := each(p, s); err != nil {
			return nil, err
		}
	}
	change(c.world, c.PrivateNetworks, p)
	return doc{"subnets": list(in.Subnets)}, nil
}

func listSubnets(c *call) (any, error) {
	ids, out := c.values("subnet_ids"), []doc{}
	for _, p := range c.PrivateNetworks.all() {
		if p.Region != c.regionName() || !oneOf(p.VPC, c.values("vpc_id")) || !oneOf(p.Project, c.values("project_id")) {
			continue
		}
		for _, s := range p.Subnets {
			if oneOf(s.ID, ids) {
				out = append(out, c.viewSubnet(p, s))
			}
		}
	}
	return doc{"subnets": list(page(c, out, "page_size", 20)), "total_count": len(out)}, nil
}
