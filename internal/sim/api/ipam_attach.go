package api

import (
	"net/netip"
	"strings"
)

type customResource struct {
	MAC  string `json:"mac_address"`
	Name string `json:"name"`
}

// of is a custom resource as IPAM shows it: it has no id but the address's own.
func (r customResource) of(i *ipamIP) *ipamResource {
	return &ipamResource{Type: "custom", ID: i.ID, MAC: r.MAC, Name: r.Name}
}

// attachIP and its two neighbours are for custom resources only; products
// attach addresses by their own calls.
func attachIP(c *call) (any, error) {
	var in struct {
		Resource customResource `json:"resource"`
	}
	i, err := c.custom(&in)
	if err != nil {
		return nil, err
	}
	if i.Resource != nil {
		return nil, stillInUse("IP is already attached to a resource")
	}
	i.Resource = in.Resource.of(i)
	change(c.world, c.IPs, i)
	return c.viewIP(i), nil
}

func detachIP(c *call) (any, error) {
	var in struct {
		Resource customResource `json:"resource"`
	}
	i, err := c.custom(&in)
	if err != nil {
		return nil, err
	}
	if i.Resource == nil || !strings.EqualFold(i.Resource.MAC, in.Resource.MAC) {
		return nil, invalid("resource", "constraint", "IP is not attached to this resource")
	}
	i.Resource = nil
	change(c.world, c.IPs, i)
	return c.viewIP(i), nil
}

func moveIP(c *call) (any, error) {
	var in struct {
		From customResource  `json:"from_resource"`
		To   *customResource `json:"to_resource"`
	}
	i, err := c.custom(&in)
	if err != nil {
		return nil, err
	}
	if i.Resource == nil || !strings.EqualFold(i.Resource.MAC, in.From.MAC) {
		return nil, invalid("from_resource", "constraint", "IP is not attached to this resource")
	}
	i.Resource = nil
	if in.To != nil {
		i.Resource = in.To.of(i)
	}
	change(c.world, c.IPs, i)
	return c.viewIP(i), nil
}

func (c *call) custom(into any) (*ipamIP, error) {
	i, err := c.ip(c.path("id"))
	if err != nil {
		return nil, err
	}
	if i.Resource != nil && i.Resource.Type != "custom" {
		return nil, invalid("resource", "constraint", "IP belongs to a product's resource")
	}
	return i, c.decode(into)
}

// lend attaches addresses to what a product made: the booked ones given, or one
// automatic address for each subnet in families ("4", "46").
func (w *world) lend(p *privateNetwork, booked []string, families string, r ipamResource) ([]string, error) {
	var ips []*ipamIP
	for _, id := range booked {
		i, ok := w.IPs.get(id)
		if !ok {
			return nil, notFound("ip", id)
		}
		if i.PrivateNetwork != p.ID {
			return nil, invalid("ipam_ip_id", "constraint", "IP "+id+" is not of this private network")
		}
		if i.Resource != nil {
			return nil, stillInUse("IP " + id + " is already attached to a resource")
		}
		ips = append(ips, i)
	}
	if len(booked) == 0 {
		done := map[bool]bool{}
		for _, s := range p.Subnets {
			v6 := s.Prefix.Addr().Is6()
			if done[v6] || (v6 && families == "4") {
				continue
			}
			done[v6] = true
			i, err := w.takeIP(p, s, "")
			if err != nil {
				return nil, err
			}
			i.Auto = true
			ips = append(ips, i)
		}
	}
	var ids []string
	for _, i := range ips {
		res := r
		i.Resource, i.VisibleAt = &res, now().Add(w.clock.Scale(w.opts.Lag))
		change(w, w.IPs, i)
		ids = append(ids, i.ID)
	}
	return ids, nil
}

// giveBack ends what lend began: automatic addresses go, booked ones stay.
func (w *world) giveBack(ids []string) {
	for _, id := range ids {
		i, ok := w.IPs.get(id)
		if !ok {
			continue
		}
		if i.Auto {
			remove(w, w.IPs, id)
			continue
		}
		i.Resource = nil
		change(w, w.IPs, i)
	}
}

// address4 is the IPv4 address among IPAM ids.
func (w *world) address4(ids []string) netip.Prefix {
	for _, id := range ids {
		if i, ok := w.IPs.get(id); ok && i.Address.Addr().Is4() {
			return i.Address
		}
	}
	return netip.Prefix{}
}
