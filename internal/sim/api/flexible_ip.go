package api

import (
	"net"
	"net/http"
	"net/netip"
)

// flexibleIP is an Instance's public address; IPAM knows it by the same id.
type flexibleIP struct {
	record
	Zone    string
	Address netip.Prefix // /32, or a /64 of IPv6
	Reverse string
	Server  string
}

func (r *Region) flexibleIPRoutes(base string) {
	r.route("GET "+base+"/ips", http.StatusOK, listFlexibleIPs)
	r.route("POST "+base+"/ips", http.StatusCreated, createFlexibleIP)
	r.route("GET "+base+"/ips/{id}", http.StatusOK, getFlexibleIP)
	r.route("PATCH "+base+"/ips/{id}", http.StatusOK, updateFlexibleIP)
	r.route("DELETE "+base+"/ips/{id}", http.StatusNoContent, deleteFlexibleIP)
}

func (ip *flexibleIP) kind() string {
	if ip.Address.Addr().Is6() {
		return "routed_ipv6"
	}
	return "routed_ipv4"
}

func (c *call) viewFlexibleIP(ip *flexibleIP) doc {
	d := doc{"id": ip.ID, "address": nil, "prefix": nil, "reverse": orNull(ip.Reverse), "server": nil,
		"organization": c.organization(ip.Project), "project": ip.Project, "zone": ip.Zone, "type": ip.kind(), "state": "detached",
		"tags": ip.Tags, "ipam_id": ip.ID}
	if ip.Address.Addr().Is6() {
		d["prefix"] = ip.Address.String()
	} else {
		d["address"] = ip.Address.Addr().String()
	}
	if s, ok := c.Servers.get(ip.Server); ok {
		d["server"] = doc{"id": s.ID, "name": s.Name}
		d["state"] = "attached"
	}
	return d
}

func listFlexibleIPs(c *call) (any, error) {
	kind := c.query("type")
	items := c.FlexibleIPs.where(func(ip *flexibleIP) bool {
		return ip.Zone == c.zone() && c.matchesV1(&ip.record) && (kind == "" || ip.kind() == kind)
	})
	return pagedV1(c, "ips", items, c.viewFlexibleIP)
}

func createFlexibleIP(c *call) (any, error) {
	var in struct {
		Project      string   `json:"project"`
		Organization string   `json:"organization"`
		Tags         []string `json:"tags"`
		Server       string   `json:"server"`
		Type         string   `json:"type"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, in.Organization, projectForbidden("ip"))
	if err != nil {
		return nil, err
	}
	ip := &flexibleIP{record: newRecord(owner, "", in.Tags), Zone: c.zone()}
	switch in.Type {
	case "", "unknown_iptype", "routed_ipv4":
		ip.Address = netip.PrefixFrom(c.publicIPv4(), 32)
	case "routed_ipv6":
		ip.Address = c.publicIPv6()
	default:
		return nil, invalid("type", "constraint", "ip type "+in.Type+" does not exist")
	}
	if in.Server != "" {
		s, err := c.server(in.Server)
		if err != nil {
			return nil, err
		}
		ip.Server = s.ID
	}
	add(c.world, c.FlexibleIPs, ip)
	c.linkIP(ip)
	return doc{"ip": c.viewFlexibleIP(ip)}, nil
}

// linkIP keeps IPAM's entry for a public address in step.
func (w *world) linkIP(ip *flexibleIP) {
	i, ok := w.IPs.get(ip.ID)
	if !ok {
		i = &ipamIP{record: ip.record, Region: regionOf(ip.Zone), Zone: ip.Zone, Address: ip.Address}
		if ip.Address.Addr().Is4() {
			i.Address = netip.PrefixFrom(ip.Address.Addr(), 32)
		}
		add(w, w.IPs, i)
	}
	i.Tags, i.Resource = ip.Tags, nil
	if s, ok := w.Servers.get(ip.Server); ok {
		i.Resource = &ipamResource{Type: "instance_server", ID: s.ID}
	} else if ip.Server != "" {
		i.Resource = &ipamResource{Type: "instance_server", ID: ip.Server}
	}
	i.touch()
}

// flexibleIP finds an address by its id or by itself.
func (c *call) flexibleIP(idOrAddress string) (*flexibleIP, error) {
	if ip, ok := c.FlexibleIPs.get(idOrAddress); ok && ip.Zone == c.zone() {
		return ip, nil
	}
	for _, ip := range c.FlexibleIPs.all() {
		if ip.Zone == c.zone() && ip.Address.Addr().String() == idOrAddress {
			return ip, nil
		}
	}
	return nil, notFound("instance_ip", idOrAddress)
}

func getFlexibleIP(c *call) (any, error) {
	ip, err := c.flexibleIP(c.path("id"))
	if err != nil {
		return nil, err
	}
	return doc{"ip": c.viewFlexibleIP(ip)}, nil
}

func updateFlexibleIP(c *call) (any, error) {
	ip, err := c.flexibleIP(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Reverse opt[string] `json:"reverse"`
		Server  opt[string] `json:"server"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Server.given {
		if err := c.moveIP(ip, in.Server.or("")); err != nil {
			return nil, err
		}
	}
	if in.Reverse.given {
		if name := in.Reverse.or(""); name != "" {
			if err := c.checkReverse(name, ip.Address.Addr()); err != nil {
				return nil, err
			}
		}
		ip.Reverse = in.Reverse.or("")
	}
	if err := c.rename(&ip.record); err != nil {
		return nil, err
	}
	change(c.world, c.FlexibleIPs, ip)
	c.linkIP(ip)
	return doc{"ip": c.viewFlexibleIP(ip)}, nil
}

// moveIP gives an address to a server, or to nobody. An address that another
// server has must be detached first.
func (c *call) moveIP(ip *flexibleIP, to string) error {
	before := ip.Server
	if to != "" {
		s, err := c.server(to)
		if err != nil {
			return err
		}
		if before != "" && before != to {
			return badRequest("ip is already attached to server " + before)
		}
		ip.Server = s.ID
		c.dynamicIP(s)
		return nil
	}
	ip.Server = ""
	if s, ok := c.Servers.get(before); ok {
		c.dynamicIP(s)
	}
	return nil
}

func deleteFlexibleIP(c *call) (any, error) {
	ip, err := c.flexibleIP(c.path("id"))
	if err != nil {
		return nil, err
	}
	before := ip.Server
	c.freePublic(ip.Address.Addr())
	remove(c.world, c.FlexibleIPs, ip.ID)
	remove(c.world, c.IPs, ip.ID)
	if s, ok := c.Servers.get(before); ok {
		c.dynamicIP(s)
	}
	return nil, nil
}

// publicIPs shows a server's addresses: IPv4 before IPv6, flexible ones and the
// dynamic one.
func (w *world) publicIPs(s *server) []doc {
	v4, v6 := []doc{}, []doc{}
	for _, ip := range w.FlexibleIPs.all() {
		switch {
		case ip.Server != s.ID:
		case ip.Address.Addr().Is6():
			v6 = append(v6, attachedIPv6(ip, s.MAC))
		default:
			v4 = append(v4, attachedIPv4(ip.ID, ip.Address.Addr(), false, ip.Tags))
		}
	}
	if s.Dynamic.IsValid() {
		v4 = append(v4, attachedIPv4(s.DynamicID, s.Dynamic, true, []string{}))
	}
	return append(v4, v6...)
}

func attachedIPv4(id string, a netip.Addr, dynamic bool, tags []string) doc {
	return doc{"id": id, "address": a.String(), "dynamic": dynamic, "gateway": "62.210.0.1", "netmask": "32", "family": "inet",
		"provisioning_mode": "dhcp", "tags": tags, "state": "attached", "ipam_id": id}
}

// attachedIPv6 shows the address that a server gives itself in its prefix; the
// router's is the next one on the link.
func attachedIPv6(ip *flexibleIP, mac string) doc {
	linkLocal := netip.MustParsePrefix("fe80::/64")
	return doc{"id": ip.ID, "address": slaac(ip.Address, mac).String(), "dynamic": false, "gateway": slaac(linkLocal, mac).Next().String(),
		"netmask": "64", "family": "inet6", "provisioning_mode": "slaac", "tags": ip.Tags, "state": "attached", "ipam_id": ip.ID}
}

// slaac is the address in a prefix that a MAC address leads to (RFC 4291,
// appendix A).
func slaac(prefix netip.Prefix, mac string) netip.Addr {
	b := prefix.Addr().As16()
	if m, err := net.ParseMAC(mac); err == nil && len(m) == 6 {
		copy(b[8:], []byte{m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
	}
	return netip.AddrFrom16(b)
}

// dynamicIP keeps a server's dynamic address in step: a running server that
// asks for one and has no flexible IPv4 address gets one.
func (w *world) dynamicIP(s *server) {
	flexible := w.FlexibleIPs.any(func(ip *flexibleIP) bool { return ip.Server == s.ID && ip.Address.Addr().Is4() })
	wants := s.DynamicIP && !flexible && (s.State == stateRunning || s.State == stateStarting)
	switch {
	case wants && !s.Dynamic.IsValid():
		s.Dynamic, s.DynamicID = w.publicIPv4(), newID()
	case !wants:
		w.dropDynamicIP(s)
	}
}

func (w *world) dropDynamicIP(s *server) {
	if s.Dynamic.IsValid() {
		w.freePublic(s.Dynamic)
		s.Dynamic, s.DynamicID = netip.Addr{}, ""
	}
}

// claimIPs finds the flexible addresses that a request names for a server.
func (c *call) claimIPs(s *server, ids []string) ([]*flexibleIP, error) {
	var ips []*flexibleIP
	for _, id := range ids {
		ip, err := c.flexibleIP(id)
		if err != nil {
			return nil, err
		}
		if ip.Server != "" && ip.Server != s.ID {
			return nil, badRequest("ip " + ip.ID + " is already attached to a server")
		}
		ips = append(ips, ip)
	}
	return ips, nil
}

// replaceIPs gives a server exactly the addresses named.
func (c *call) replaceIPs(s *server, ids []string) error {
	ips, err := c.claimIPs(s, ids)
	if err != nil {
		return err
	}
	for _, ip := range c.FlexibleIPs.all() {
		if ip.Server == s.ID {
			ip.Server = ""
			c.linkIP(ip)
		}
	}
	for _, ip := range ips {
		ip.Server = s.ID
		c.linkIP(ip)
	}
	return nil
}
