package api

import (
	"crypto/rand"
	"net/netip"
	"strings"
)

// ipamSource says where an address is to come from.
type ipamSource struct {
	Zonal          string `json:"zonal"`
	PrivateNetwork string `json:"private_network_id"`
	Subnet         string `json:"subnet_id"`
	VPC            string `json:"vpc_id"`
	Regional       bool   `json:"regional"`
}

func bookIP(c *call) (any, error) {
	var in struct {
		Project  string          `json:"project_id"`
		Source   ipamSource      `json:"source"`
		IsIPv6   bool            `json:"is_ipv6"`
		Address  string          `json:"address"`
		Tags     []string        `json:"tags"`
		Resource *customResource `json:"resource"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, "", projectNotFound)
	if err != nil {
		return nil, err
	}
	p, s, err := c.sourceSubnet(in.Source, in.IsIPv6)
	if err != nil {
		return nil, err
	}
	if p.Project != owner {
		return nil, notFound("private_network", p.ID)
	}
	i, err := c.takeIP(p, s, in.Address)
	if err != nil {
		return nil, err
	}
	i.Tags = list(in.Tags)
	if in.Resource != nil {
		i.Resource = in.Resource.of(i)
	}
	return c.viewIP(i), nil
}

// sourceSubnet finds the network and subnet that an address is booked from.
func (c *call) sourceSubnet(src ipamSource, ipv6 bool) (*privateNetwork, subnet, error) {
	for _, p := range c.PrivateNetworks.all() {
		if p.Region != c.regionName() || (src.PrivateNetwork != "" && src.PrivateNetwork != p.ID) {
			continue
		}
		for _, s := range p.Subnets {
			if (src.Subnet != "" && s.ID == src.Subnet) || (src.Subnet == "" && src.PrivateNetwork != "" && s.Prefix.Addr().Is6() == ipv6) {
				return p, s, nil
			}
		}
	}
	switch {
	case src.PrivateNetwork != "":
		return nil, subnet{}, notFound("private_network", src.PrivateNetwork)
	case src.Subnet != "":
		return nil, subnet{}, notFound("subnet", src.Subnet)
	}
	return nil, subnet{}, invalid("source", "constraint", "booking is only possible from a private network or a subnet")
}

// takeIP takes an address of a subnet: the one asked for, or the first free one
// from the third on, since the first is the network and the second reserved.
// IPv6 addresses are drawn at random.
func (w *world) takeIP(p *privateNetwork, s subnet, asked string) (*ipamIP, error) {
	taken := map[netip.Addr]bool{}
	for _, i := range w.IPs.all() {
		if i.Subnet == s.ID {
			taken[i.Address.Addr()] = true
		}
	}
	var a netip.Addr
	switch {
	case asked != "":
		var err error
		if a, err = netip.ParseAddr(strings.SplitN(asked, "/", 2)[0]); err != nil {
			return nil, invalid("address", "format", asked+" is not an IP address")
		}
		if !s.Prefix.Contains(a) || reserved(s.Prefix, a) {
			return nil, invalid("address", "constraint", asked+" cannot be booked in "+s.Prefix.String())
		}
		if taken[a] {
			return nil, conflict("address " + a.String() + " is already in use")
		}
	case s.Prefix.Addr().Is6():
		a = randomIn(s.Prefix)
	default:
		for a = s.Prefix.Addr().Next().Next(); taken[a]; a = a.Next() {
		}
		if !s.Prefix.Contains(a) || reserved(s.Prefix, a) {
			return nil, quotaExceeded("ips", len(taken))
		}
	}
	i := &ipamIP{record: newRecord(p.Project, "", nil), Region: p.Region, Address: netip.PrefixFrom(a, s.Prefix.Bits()),
		PrivateNetwork: p.ID, Subnet: s.ID}
	return add(w, w.IPs, i), nil
}

// reserved addresses of an IPv4 subnet are the first two and the last.
func reserved(p netip.Prefix, a netip.Addr) bool {
	return p.Addr().Is4() && (a == p.Addr() || a == p.Addr().Next() || !p.Contains(a.Next()))
}

func randomIn(p netip.Prefix) netip.Addr {
	b := p.Addr().As16()
	_, _ = rand.Read(b[8:])
	return netip.AddrFrom16(b)
}
