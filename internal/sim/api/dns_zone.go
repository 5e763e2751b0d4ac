package api

import (
	"net/http"
	"strings"
	"time"
)

// dnsZone is a domain of the account or a part of one that is kept apart. Its id
// is its full name.
type dnsZone struct {
	record
	Domain    string // the root that it lies in
	Subdomain string // empty for the root itself
	Status    string // active, pending
	Records   []*dnsRecord
}

// dnsSettles is how long a zone stays pending after a change.
const dnsSettles = 5 * time.Second

var dnsServers = []string{"ns0.dom.scw.cloud", "ns1.dom.scw.cloud"}

func (r *Region) dnsRoutes() {
	const base = "/domain/v2beta1/dns-zones"
	r.route("GET "+base, http.StatusOK, listDNSZones)
	r.route("POST "+base, http.StatusOK, createDNSZone)
	r.route("PATCH "+base+"/{dns_zone}", http.StatusOK, updateDNSZone)
	r.route("DELETE "+base+"/{dns_zone}", http.StatusOK, deleteDNSZone)
	r.route("GET "+base+"/{dns_zone}/nameservers", http.StatusOK, listNameservers)
	r.route("GET "+base+"/{dns_zone}/records", http.StatusOK, listDNSRecords)
	r.route("PATCH "+base+"/{dns_zone}/records", http.StatusOK, updateDNSRecords)
	r.route("DELETE "+base+"/{dns_zone}/records", http.StatusOK, clearDNSRecords)
}

func viewDNSZone(z *dnsZone) doc {
	return doc{"domain": z.Domain, "subdomain": z.Subdomain, "ns": dnsServers, "ns_default": dnsServers, "ns_master": []string{},
		"status": z.Status, "message": nil, "updated_at": stampDNS(z.Updated), "project_id": z.Project, "linked_products": []string{}}
}

// stampDNS is how this product writes a time: it has no fractions of seconds.
func stampDNS(t time.Time) string { return t.Format(time.RFC3339) }

func (z *dnsZone) orderKey(field string) string {
	switch field {
	case "domain":
		return z.Domain
	case "subdomain":
		return z.Subdomain
	}
	return ""
}

// inDomain splits a name at a domain of the account, the longest that it lies in.
func (w *world) inDomain(name string) (root *dnsZone, sub string, found bool) {
	for _, z := range w.Zones.where(func(z *dnsZone) bool { return z.Subdomain == "" }) {
		part, inside := strings.CutSuffix(name, "."+z.Domain)
		if (inside || name == z.Domain) && (root == nil || len(z.Domain) > len(root.Domain)) {
			root = z
			if sub = ""; inside {
				sub = part
			}
		}
	}
	return root, sub, root != nil
}

// domainOf is the same for a region that was not told which domains there are,
// where every domain is the account's: its root zone exists once it is named.
func (c *call) domainOf(name string) (root *dnsZone, sub string, found bool) {
	labels := strings.Split(name, ".")
	if n := len(labels); n >= 2 && !c.DomainsKnown {
		domain := strings.Join(labels[n-2:], ".")
		if _, exists := c.Zones.get(domain); !exists {
			project := c.query("project_id")
			if project == "" {
				project = c.defaultProject()
			}
			silently(c.world, c.Zones, newDNSZone(project, domain, ""))
		}
	}
	return c.inDomain(name)
}

func newDNSZone(project, domain, sub string) *dnsZone {
	z := &dnsZone{record: newRecord(project, zoneName(domain, sub), nil), Domain: domain, Subdomain: sub, Status: "active"}
	z.ID = z.Name
	for _, s := range dnsServers {
		z.Records = append(z.Records, &dnsRecord{ID: newID(), Type: "NS", Data: s + ".", TTL: 1800, Updated: z.Created})
	}
	return z
}

func zoneName(domain, sub string) string {
	if sub == "" {
		return domain
	}
	return sub + "." + domain
}

// canonical is a zone's name in small letters without a dot at the end.
func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

func listDNSZones(c *call) (any, error) {
	names, domain := c.values("dns_zones", "dns_zone"), c.query("domain")
	for _, n := range append(names, nonEmpty(domain)...) {
		c.domainOf(canonical(n))
	}
	items := c.Zones.where(func(z *dnsZone) bool {
		return oneOf(z.Project, c.values("project_id")) && oneOf(c.organization(z.Project), c.values("organization_id")) &&
			oneOf(z.Name, names) && (domain == "" || z.Domain == domain)
	})
	return pagedFrom(c, "dns_zones", items, viewDNSZone, "domain_asc")
}

func createDNSZone(c *call) (any, error) {
	var in struct {
		Domain    string `json:"domain"`
		Subdomain string `json:"subdomain"`
		Project   string `json:"project_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, "", func(string) error { return forbidden("dns_zone", "write") })
	if err != nil {
		return nil, err
	}
	z, err := c.newZone(owner, canonical(zoneName(in.Domain, in.Subdomain)))
	if err != nil {
		return nil, err
	}
	return viewDNSZone(z), nil
}

// newZone makes a zone of its own within a domain of the account.
func (c *call) newZone(project, name string) (*dnsZone, error) {
	root, sub, ours := c.domainOf(name)
	if !ours {
		return nil, forbidden("dns_zone", "write")
	}
	if _, exists := c.Zones.get(name); exists {
		return nil, untyped(http.StatusConflict, "dns zone %s already exists", name)
	}
	return add(c.world, c.Zones, newDNSZone(project, root.Domain, sub)), nil
}

// dnsZone is the zone that a call names. One in somebody else's domain is not
// for this key to see.
func (c *call) dnsZone() (*dnsZone, error) {
	name := canonical(c.path("dns_zone"))
	if _, _, ours := c.domainOf(name); !ours {
		return nil, forbidden("dns_zone", "read")
	}
	if z, ok := c.Zones.get(name); ok {
		return z, nil
	}
	return nil, noSuchZone(name)
}

func noSuchZone(name string) error {
	return untyped(http.StatusNotFound, "dns zone %s not found", name)
}

// updateDNSZone gives a zone another name in its domain.
func updateDNSZone(c *call) (any, error) {
	z, err := c.dnsZone()
	if err != nil {
		return nil, err
	}
	var in struct {
		Name opt[string] `json:"new_dns_zone"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	name := canonical(in.Name.or(z.Name))
	if name == z.Name {
		return viewDNSZone(z), nil
	}
	if z.Subdomain == "" {
		return nil, untyped(http.StatusForbidden, "root zone can't be renamed")
	}
	moved, err := c.newZone(z.Project, name)
	if err != nil {
		return nil, err
	}
	moved.Records = z.Records
	remove(c.world, c.Zones, z.ID)
	return viewDNSZone(moved), nil
}

func deleteDNSZone(c *call) (any, error) {
	z, err := c.dnsZone()
	if err != nil {
		return nil, err
	}
	if z.Subdomain == "" {
		return nil, untyped(http.StatusForbidden, "root zone can't be deleted")
	}
	remove(c.world, c.Zones, z.ID)
	return doc{}, nil
}

func listNameservers(c *call) (any, error) {
	if _, err := c.dnsZone(); err != nil {
		return nil, err
	}
	servers := []doc{}
	for _, s := range dnsServers {
		servers = append(servers, doc{"name": s, "ip": []string{}})
	}
	return doc{"ns": servers}, nil
}

// unsettle makes a zone pending for a while; a later change makes it longer.
func (c *call) unsettle(z *dnsZone) {
	z.Status = "pending"
	change(c.world, c.Zones, z)
	at := z.Updated
	c.after(dnsSettles, func(w *world) {
		if z, ok := w.Zones.get(z.ID); ok && z.Updated.Equal(at) {
			z.Status = "active"
		}
	})
}
