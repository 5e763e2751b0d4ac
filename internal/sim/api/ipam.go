package api

import (
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// ipamIP is an address of a private network, booked by a person or taken by a
// product, or a public one, which IPAM shows under its zone.
type ipamIP struct {
	record
	Region         string
	Zone           string // of a public address
	Address        netip.Prefix
	PrivateNetwork string
	Subnet         string
	Resource       *ipamResource
	// VisibleAt is when IPAM shows the resource; until then a booked address
	// looks free and an automatic one is not listed.
	VisibleAt time.Time
	// Auto addresses were taken by a product and go with what uses them.
	Auto     bool
	Reverses []ipamReverse
	// ReversesUnseen says that they were just set: IPAM looks them up behind the
	// scenes, and the first read still goes without them.
	ReversesUnseen bool
}

type ipamResource struct {
	Type string
	ID   string
	MAC  string
	Name string
}

type ipamReverse struct {
	Hostname string  `json:"hostname"`
	Address  *string `json:"address"`
}

func (r *Region) ipamRoutes() {
	const base = "/ipam/v1/regions/{region}"
	r.route("GET "+base+"/ips", http.StatusOK, listIPs)
	r.route("POST "+base+"/ips", http.StatusOK, bookIP)
	r.route("GET "+base+"/ips/{id}", http.StatusOK, getIP)
	r.route("PATCH "+base+"/ips/{id}", http.StatusOK, updateIP)
	r.route("DELETE "+base+"/ips/{id}", http.StatusNoContent, releaseIP)
	r.route("POST "+base+"/ip-sets/release", http.StatusNoContent, releaseIPs)
	r.route("POST "+base+"/ips/{id}/attach", http.StatusOK, attachIP)
	r.route("POST "+base+"/ips/{id}/detach", http.StatusOK, detachIP)
	r.route("POST "+base+"/ips/{id}/move", http.StatusOK, moveIP)
}

// seen is the resource as far as IPAM shows it by now.
func (i *ipamIP) seen() *ipamResource {
	if now().Before(i.VisibleAt) {
		return nil
	}
	return i.Resource
}

func (w *world) viewIP(i *ipamIP) doc {
	source := doc{"subnet_id": i.Subnet}
	if i.Zone != "" {
		source = doc{"zonal": i.Zone}
	}
	d := doc{"id": i.ID, "srn": noSRN, "address": i.Address.String(), "project_id": i.Project, "is_ipv6": i.Address.Addr().Is6(),
		"created_at": stamp(i.Created), "updated_at": stamp(i.Updated), "source": source, "resource": nil,
		"tags": i.Tags, "reverses": w.reverses(i), "region": i.Region, "zone": orNull(i.Zone)}
	if r := i.seen(); r != nil {
		d["resource"] = doc{"type": r.Type, "id": r.ID, "name": orNull(r.Name), "mac_address": orNull(strings.ToUpper(r.MAC))}
	}
	return d
}

// reverses are the names of an address: those that it has by itself, and those
// that were set, from the second read on.
func (w *world) reverses(i *ipamIP) []ipamReverse {
	out := w.defaultReverses(i)
	if !i.ReversesUnseen {
		out = append(out, i.Reverses...)
	}
	return list(out)
}

// readIP shows an address to a client; from then on its new names show too.
func (c *call) readIP(i *ipamIP) doc {
	d := c.viewIP(i)
	i.ReversesUnseen = false
	return d
}

func listIPs(c *call) (any, error) {
	ids, wantPN := c.values("ip_ids"), c.query("private_network_id")
	vpcs, subnets := c.values("vpc_id", "source_vpc_id"), c.values("subnet_id")
	types := c.known("resource_types", "resource_type")
	attached, byAttached := c.flag("attached")
	ipv6, byFamily := c.flag("is_ipv6")
	regional, byScope := c.flag("regional")
	items := c.IPs.where(func(i *ipamIP) bool {
		r := i.seen()
		if r == nil {
			if i.Auto && i.Resource != nil {
				return false
			}
			r = &ipamResource{}
		}
		return i.Region == c.regionName() && c.matches(&i.record) && oneOf(i.ID, ids) &&
			(wantPN == "" || i.PrivateNetwork == wantPN) && oneOf(i.Subnet, subnets) && oneOf(c.vpcOf(i), vpcs) &&
			oneOf(r.Type, types) && oneOf(r.ID, c.values("resource_id", "resource_ids")) &&
			strings.Contains(r.Name, c.query("resource_name")) && oneOf(i.Zone, c.values("zonal")) &&
			(!byScope || regional == (i.Zone == "" && i.PrivateNetwork == "")) &&
			(c.query("mac_address") == "" || strings.EqualFold(r.MAC, c.query("mac_address"))) &&
			(!byAttached || attached == (r.Type != "")) && (!byFamily || ipv6 == i.Address.Addr().Is6())
	})
	return pagedFrom(c, "ips", items, c.readIP, "created_at_desc")
}

func (w *world) vpcOf(i *ipamIP) string {
	if p, ok := w.PrivateNetworks.get(i.PrivateNetwork); ok {
		return p.VPC
	}
	return ""
}

func (c *call) ip(id string) (*ipamIP, error) {
	if i, ok := c.IPs.get(id); ok && i.Region == c.regionName() {
		return i, nil
	}
	return nil, notFound("ip", id)
}

func getIP(c *call) (any, error) {
	i, err := c.ip(c.path("id"))
	if err != nil {
		return nil, err
	}
	return c.readIP(i), nil
}

func updateIP(c *call) (any, error) {
	i, err := c.ip(c.path("id"))
	if err != nil {
		return nil, err
	}
	if err := c.rename(&i.record); err != nil {
		return nil, err
	}
	var in struct {
		Reverses opt[[]ipamReverse] `json:"reverses"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Reverses.given && !in.Reverses.null {
		i.Reverses = nil
		for _, r := range in.Reverses.value {
			r.Hostname = strings.TrimSuffix(r.Hostname, ".") + "."
			i.Reverses = append(i.Reverses, r)
		}
	}
	change(c.world, c.IPs, i)
	d := c.viewIP(i)
	if in.Reverses.given {
		d["reverses"], i.ReversesUnseen = []ipamReverse{}, true
	}
	return d, nil
}

func releaseIP(c *call) (any, error) {
	i, err := c.ip(c.path("id"))
	if err != nil {
		return nil, err
	}
	return nil, c.release(i)
}

func (c *call) release(i *ipamIP) error {
	if i.Resource != nil || i.Zone != "" {
		return stillInUse("IP must be detached from its resource to be released")
	}
	remove(c.world, c.IPs, i.ID)
	return nil
}

func releaseIPs(c *call) (any, error) {
	var in struct {
		IDs []string `json:"ip_ids"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	for _, id := range in.IDs {
		i, err := c.ip(id)
		if err == nil {
			err = c.release(i)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}
