package api

import (
	"net/netip"
	"slices"
)

// checkBastionPort allows what the SDK documents: 1024 to 59999, and the
// default 61000.
func checkBastionPort(port int) error {
	if (port < 1024 || port > 59999) && port != 61000 {
		return invalid("bastion_port", "constraint", "bastion port must be between 1024 and 59999, or 61000")
	}
	return nil
}

func refreshSSHKeys(c *call) (any, error) {
	g, err := c.steadyGateway(c.path("id"))
	if err != nil {
		return nil, err
	}
	d := c.viewGateway(g)
	g.Keys = c.authorizedKeys(g.Project)
	c.configure(g, gatewayConfigures)
	return d, nil
}

func addAllowedIPs(c *call) (any, error) {
	var in struct {
		Range string `json:"ip_range"`
	}
	return c.allow(&in, func(g *gateway) error {
		p, err := allowedRange(in.Range)
		if err == nil && !slices.Contains(g.Allowed, p) {
			g.Allowed = append(slices.Clone(g.Allowed), p)
		}
		return err
	})
}

func setAllowedIPs(c *call) (any, error) {
	var in struct {
		Ranges []string `json:"ip_ranges"`
	}
	return c.allow(&in, func(g *gateway) error {
		var all []netip.Prefix
		for _, r := range in.Ranges {
			p, err := allowedRange(r)
			if err != nil {
				return err
			}
			all = append(all, p)
		}
		g.Allowed = all
		return nil
	})
}

func deleteAllowedIP(c *call) (any, error) {
	text := c.path("ip")
	if b := c.path("bits"); b != "" {
		text += "/" + b
	}
	_, err := c.allow(&struct{}{}, func(g *gateway) error {
		p, err := allowedRange(text)
		if err == nil {
			g.Allowed = slices.DeleteFunc(slices.Clone(g.Allowed), func(a netip.Prefix) bool { return a == p })
		}
		return err
	})
	return nil, err
}

// allow changes the bastion's list of source ranges.
func (c *call) allow(in any, edit func(*gateway) error) (any, error) {
	g, err := c.steadyGateway(c.path("id"))
	if err != nil {
		return nil, err
	}
	if err := c.decode(in); err != nil {
		return nil, err
	}
	if err := edit(g); err != nil {
		return nil, err
	}
	c.configure(g, gatewayConfigures)
	return doc{"ip_ranges": prefixes(g.Allowed)}, nil
}

func allowedRange(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, invalid("ip_range", "format", text+" is not a network in CIDR notation")
	}
	return p.Masked(), nil
}
