package api

import (
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// lb is a zonal load balancer. Its errors for missing things carry no type.
type lb struct {
	record
	Zone        string
	Type        string // as given; shown in lower case
	Description string
	SSLLevel    string
	Status      string // to_create, creating, ready, migrating, to_delete
	IPs         []string
	Public      bool // has public addresses; fixed at creation
	Machine     record
	MachineUp   string // status of the machine behind it
}

type lbIP struct {
	record
	Zone    string
	Address netip.Addr
	Reverse string
	LB      string
}

const (
	lbStarts   = 2 * time.Second
	lbReady    = 30 * time.Second
	lbGoes     = 30 * time.Second
	lbMigrates = 30 * time.Second
	lbAttaches = 10 * time.Second
	lbDetaches = 15 * time.Second
)

func (r *Region) lbRoutes() {
	const base = "/lb/v1/zones/{zone}"
	r.route("GET "+base+"/lbs", http.StatusOK, listLBs)
	r.route("POST "+base+"/lbs", http.StatusOK, createLB)
	r.route("GET "+base+"/lbs/{id}", http.StatusOK, getLB)
	r.route("PUT "+base+"/lbs/{id}", http.StatusOK, updateLB)
	r.route("DELETE "+base+"/lbs/{id}", http.StatusNoContent, deleteLB)
	r.route("POST "+base+"/lbs/{id}/migrate", http.StatusOK, migrateLB)
	r.route("GET "+base+"/lb-types", http.StatusOK, listLBTypes)
	r.lbIPRoutes(base)
	r.lbAttachmentRoutes(base)
	r.backendRoutes(base)
	r.frontendRoutes(base)
	r.lbACLRoutes(base)
	r.lbRouteRoutes(base)
}

// missingLB is the load balancer's untyped 404.
func missingLB(what string) error { return untyped(http.StatusNotFound, "%s not Found", what) }

func (c *call) viewLB(l *lb) doc {
	ips := []doc{}
	for _, id := range l.IPs {
		if ip, ok := c.LBIPs.get(id); ok {
			ips = append(ips, c.viewLBIP(ip))
		}
	}
	machines := []doc{}
	if l.Status != "to_create" {
		machines = append(machines, doc{"id": l.Machine.ID, "status": l.MachineUp, "ip_address": "", "region": regionOf(l.Zone),
			"zone": l.Zone, "created_at": stamp(l.Machine.Created), "updated_at": stamp(l.Machine.Updated)})
	}
	return doc{"id": l.ID, "name": l.Name, "description": l.Description, "status": l.Status, "instances": machines,
		"organization_id": c.organization(l.Project), "project_id": l.Project, "ip": ips, "tags": l.Tags,
		"frontend_count":        len(c.Frontends.where(func(f *frontend) bool { return f.LB == l.ID })),
		"backend_count":         len(c.Backends.where(func(b *backend) bool { return b.LB == l.ID })),
		"private_network_count": len(c.Attachments.where(func(a *lbAttachment) bool { return a.LB == l.ID })),
		"route_count":           len(c.LBRoutes.where(func(r *lbRoute) bool { return r.LB == l.ID })),
		"type":                  strings.ToLower(l.Type), "subscriber": nil, "ssl_compatibility_level": l.SSLLevel,
		"created_at": stamp(l.Created), "updated_at": stamp(l.Updated), "region": regionOf(l.Zone), "zone": l.Zone}
}

// viewLBWithin shows a load balancer inside what belongs to it. Some answers
// leave out the machines behind it there.
func (c *call) viewLBWithin(id string, machines bool) any {
	l, ok := c.LBs.get(id)
	if !ok {
		return nil
	}
	d := c.viewLB(l)
	if !machines {
		d["instances"] = []doc{}
	}
	return d
}

func listLBs(c *call) (any, error) {
	ids := c.values("lb_ids")
	items := c.LBs.where(func(l *lb) bool { return l.Zone == c.zone() && c.matches(&l.record) && oneOf(l.ID, ids) })
	return paged(c, "lbs", items, c.viewLB)
}

// freeLBIPs finds the addresses that a request names; none may be in use.
func (c *call) freeLBIPs(ids []string) ([]*lbIP, error) {
	var ips []*lbIP
	for _, id := range ids {
		ip, err := c.lbIP(id)
		if err != nil {
			return nil, err
		}
		if ip.LB != "" {
			return nil, untyped(http.StatusBadRequest, "ip %s is already attached to a load balancer", ip.ID)
		}
		ips = append(ips, ip)
	}
	return ips, nil
}

// wantsPublicIPv4 says whether an LB request wants a public IPv4 of its own:
// always, unless it says no. Naming addresses in ip_ids does not say no.
func wantsPublicIPv4(assign opt[bool], given []*lbIP) bool {
	if assign.given && !assign.null {
		return assign.value
	}
	for _, ip := range given {
		if ip.Address.Is4() {
			return false
		}
	}
	return true
}

func createLB(c *call) (any, error) {
	var in struct {
		Project      string    `json:"project_id"`
		Organization string    `json:"organization_id"`
		Name         string    `json:"name"`
		Description  string    `json:"description"`
		IP           string    `json:"ip_id"`
		IPs          []string  `json:"ip_ids"`
		Assign       opt[bool] `json:"assign_flexible_ip"`
		AssignV6     opt[bool] `json:"assign_flexible_ipv6"`
		Tags         []string  `json:"tags"`
		Type         string    `json:"type"`
		SSLLevel     string    `json:"ssl_compatibility_level"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, in.Organization, projectForbidden("lb"))
	if err != nil {
		return nil, err
	}
	if !knownLBType(in.Type) {
		return nil, invalid("type", "constraint", "load balancer type "+in.Type+" does not exist")
	}
	ips, err := c.freeLBIPs(append(in.IPs, nonEmpty(in.IP)...))
	if err != nil {
		return nil, err
	}
	if in.Name == "" {
		in.Name = "lb-" + newID()[:8]
	}
	if in.SSLLevel == "" || strings.HasSuffix(in.SSLLevel, "_unknown") {
		in.SSLLevel = "ssl_compatibility_level_intermediate"
	}
	if wantsPublicIPv4(in.Assign, ips) {
		ips = append(ips, c.newLBIP(owner, false, nil))
	}
	if in.AssignV6.or(false) {
		ips = append(ips, c.newLBIP(owner, true, nil))
	}
	l := &lb{record: newRecord(owner, in.Name, in.Tags), Zone: c.zone(), Type: in.Type, Description: in.Description,
		SSLLevel: in.SSLLevel, Status: "to_create", Public: len(ips) > 0, Machine: newRecord("", "", nil), MachineUp: "pending"}
	for _, ip := range ips {
		ip.LB = l.ID
		l.IPs = append(l.IPs, ip.ID)
	}
	add(c.world, c.LBs, l)
	c.stages(
		stage{at: lbStarts, do: func(w *world) bool { return w.lbBecomes(l.ID, "to_create", "creating") }},
		stage{at: lbReady, do: func(w *world) bool { return w.lbBecomes(l.ID, "creating", "ready") }})
	return c.viewLB(l), nil
}

func (w *world) lbBecomes(id, from, to string) bool {
	l, ok := w.LBs.get(id)
	if !ok || l.Status != from {
		return false
	}
	l.Status = to
	if to == "ready" {
		l.MachineUp = "ready"
	}
	l.touch()
	w.applyLB(l)
	return true
}

func (c *call) lb(id string) (*lb, error) {
	if l, ok := c.LBs.get(id); ok && l.Zone == c.zone() {
		return l, nil
	}
	return nil, missingLB("lbs")
}

// readyLB finds a load balancer that takes changes.
func (c *call) readyLB(id string) (*lb, error) {
	l, err := c.lb(id)
	if err == nil && l.Status != "ready" {
		return nil, transient("lb", l.ID, l.Status)
	}
	return l, err
}

func getLB(c *call) (any, error) {
	l, err := c.lb(c.path("id"))
	if err != nil {
		return nil, err
	}
	return c.viewLB(l), nil
}

// updateLB replaces: what the request leaves out becomes empty.
func updateLB(c *call) (any, error) {
	l, err := c.readyLB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Tags        []string `json:"tags"`
		SSLLevel    string   `json:"ssl_compatibility_level"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Name == "" {
		return nil, invalid("name", "required", "name is required")
	}
	l.Name, l.Description, l.Tags = in.Name, in.Description, list(in.Tags)
	if in.SSLLevel != "" && !strings.HasSuffix(in.SSLLevel, "_unknown") {
		l.SSLLevel = in.SSLLevel
	}
	change(c.world, c.LBs, l)
	return c.viewLB(l), nil
}

func deleteLB(c *call) (any, error) {
	l, err := c.lb(c.path("id"))
	if err != nil {
		return nil, err
	}
	release, _ := c.flag("release_ip")
	if l.Status == "to_delete" {
		return nil, nil
	}
	l.Status = "to_delete"
	change(c.world, c.LBs, l)
	c.region.effects.unbalance(l.ID)
	c.after(lbGoes, func(w *world) { w.removeLB(l.ID, release) }, l.ID)
	return nil, nil
}

// removeLB takes a load balancer away with all that belongs to it. Its public
// addresses stay unless they are released with it.
func (w *world) removeLB(id string, release bool) {
	l, ok := w.LBs.get(id)
	if !ok {
		return
	}
	for _, f := range w.Frontends.where(func(f *frontend) bool { return f.LB == id }) {
		w.removeFrontend(f.ID)
	}
	for _, b := range w.Backends.where(func(b *backend) bool { return b.LB == id }) {
		remove(w, w.Backends, b.ID)
	}
	for _, k := range w.Certs.where(func(k *certificate) bool { return k.LB == id }) {
		remove(w, w.Certs, k.ID)
	}
	for _, a := range w.Attachments.where(func(a *lbAttachment) bool { return a.LB == id }) {
		w.giveBack(a.IPAM)
		remove(w, w.Attachments, a.ID)
	}
	for _, ipID := range l.IPs {
		if ip, ok := w.LBIPs.get(ipID); ok {
			ip.LB = ""
			if release {
				w.freePublic(ip.Address)
				remove(w, w.LBIPs, ipID)
			}
		}
	}
	remove(w, w.LBs, id)
}
