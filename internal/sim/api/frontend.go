package api

import (
	"net/http"
	"slices"
	"sort"
	"strings"
)

// frontend is a listening port of a load balancer.
type frontend struct {
	record
	LB            string
	Port          int
	Backend       string
	TimeoutClient *int64 // ms
	Certificates  []string
	HTTP3         bool
	RateLimit     *int
	AccessLogs    bool
}

// lbACL allows, denies or redirects what comes in at a frontend; the lowest
// index is asked first.
type lbACL struct {
	record
	Frontend    string
	Action      map[string]any
	Match       map[string]any
	Index       int
	Description string
}

func (r *Region) frontendRoutes(base string) {
	r.route("GET "+base+"/lbs/{id}/frontends", http.StatusOK, listFrontends)
	r.route("POST "+base+"/lbs/{id}/frontends", http.StatusOK, createFrontend)
	r.route("GET "+base+"/frontends/{id}", http.StatusOK, getFrontend)
	r.route("PUT "+base+"/frontends/{id}", http.StatusOK, updateFrontend)
	r.route("DELETE "+base+"/frontends/{id}", http.StatusNoContent, deleteFrontend)
}

// shown says which of the load balancers inside an answer show their machines.
type shown struct{ lb, backend, certificate bool }

func (c *call) viewFrontend(f *frontend, m shown) doc {
	var limit any
	if f.RateLimit != nil && *f.RateLimit != 0 {
		limit = *f.RateLimit
	}
	d := doc{"id": f.ID, "name": f.Name, "inbound_port": f.Port, "timeout_client": f.TimeoutClient, "certificate": nil,
		"certificate_ids": list(f.Certificates), "enable_http3": f.HTTP3, "connection_rate_limit": limit,
		"enable_access_logs": f.AccessLogs, "created_at": stamp(f.Created), "updated_at": stamp(f.Updated)}
	if len(f.Certificates) > 0 {
		if k, ok := c.Certs.get(f.Certificates[0]); ok {
			d["certificate"] = c.viewCertificateOf(k, m.certificate)
		}
	}
	if b, ok := c.Backends.get(f.Backend); ok {
		d["backend"] = c.viewBackendOf(b, m.backend)
	}
	d["lb"] = c.viewLBWithin(f.LB, m.lb)
	return d
}

func listFrontends(c *call) (any, error) {
	l, err := c.lb(c.path("id"))
	if err != nil {
		return nil, err
	}
	items := c.Frontends.where(func(f *frontend) bool { return f.LB == l.ID && strings.Contains(f.Name, c.query("name")) })
	return paged(c, "frontends", items, func(f *frontend) doc { return c.viewFrontend(f, shown{true, true, true}) })
}

// frontendSpec is a frontend as requests give it; a PUT resets what it leaves out.
type frontendSpec struct {
	Name          string    `json:"name"`
	Port          int       `json:"inbound_port"`
	Backend       string    `json:"backend_id"`
	TimeoutClient *int64    `json:"timeout_client"`
	Certificate   string    `json:"certificate_id"`
	Certificates  []string  `json:"certificate_ids"`
	HTTP3         bool      `json:"enable_http3"`
	RateLimit     *int      `json:"connection_rate_limit"`
	AccessLogs    opt[bool] `json:"enable_access_logs"`
}

// fill checks a request and puts it into a frontend.
func (c *call) fillFrontend(f *frontend) error {
	var in frontendSpec
	if err := c.decode(&in); err != nil {
		return err
	}
	if in.Port < 1 || in.Port > 65535 {
		return invalid("inbound_port", "constraint", "port must be between 1 and 65535")
	}
	if b, ok := c.Backends.get(in.Backend); !ok || b.LB != f.LB {
		return missingLB("backend")
	}
	if c.Frontends.any(func(o *frontend) bool { return o.LB == f.LB && o.Port == in.Port && o.ID != f.ID }) {
		return untyped(http.StatusConflict, "port %d is already used by another frontend", in.Port)
	}
	if in.Certificate != "" && len(in.Certificates) == 0 {
		in.Certificates = []string{in.Certificate}
	}
	for _, id := range in.Certificates {
		if k, ok := c.Certs.get(id); !ok || k.LB != f.LB {
			return missingLB("certificate")
		}
	}
	if in.Name == "" {
		in.Name = "lb-frt-" + newID()[:8]
	}
	f.Name, f.Port, f.Backend, f.TimeoutClient, f.Certificates = in.Name, in.Port, in.Backend, in.TimeoutClient, in.Certificates
	f.HTTP3, f.RateLimit = in.HTTP3, in.RateLimit
	in.AccessLogs.set(&f.AccessLogs)
	return nil
}

func createFrontend(c *call) (any, error) {
	l, err := c.readyLB(c.path("id"))
	if err != nil {
		return nil, err
	}
	f := &frontend{record: newRecord(l.Project, "", nil), LB: l.ID}
	if err := c.fillFrontend(f); err != nil {
		return nil, err
	}
	add(c.world, c.Frontends, f)
	c.applyLB(l)
	return c.viewFrontend(f, shown{lb: true, certificate: true}), nil
}

func (c *call) frontend(id string, changing bool) (*frontend, error) {
	f, ok := c.Frontends.get(id)
	if !ok {
		return nil, missingLB("frontend")
	}
	if changing {
		if _, err := c.readyLB(f.LB); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func getFrontend(c *call) (any, error) {
	f, err := c.frontend(c.path("id"), false)
	if err != nil {
		return nil, err
	}
	return c.viewFrontend(f, shown{}), nil
}

func updateFrontend(c *call) (any, error) {
	f, err := c.frontend(c.path("id"), true)
	if err != nil {
		return nil, err
	}
	if err := c.fillFrontend(f); err != nil {
		return nil, err
	}
	change(c.world, c.Frontends, f)
	c.applyLBID(f.LB)
	return c.viewFrontend(f, shown{lb: true, certificate: true}), nil
}

func deleteFrontend(c *call) (any, error) {
	f, err := c.frontend(c.path("id"), true)
	if err != nil {
		return nil, err
	}
	c.removeFrontend(f.ID)
	c.applyLBID(f.LB)
	return nil, nil
}

func (w *world) removeFrontend(id string) {
	for _, a := range w.aclsOf(id) {
		remove(w, w.LBACLs, a.ID)
	}
	for _, r := range w.LBRoutes.where(func(r *lbRoute) bool { return r.Frontend == id }) {
		remove(w, w.LBRoutes, r.ID)
	}
	remove(w, w.Frontends, id)
}

// aclsOf are a frontend's rules in the order in which they are asked.
func (w *world) aclsOf(frontendID string) []*lbACL {
	acls := w.LBACLs.where(func(a *lbACL) bool { return a.Frontend == frontendID })
	sort.SliceStable(acls, func(i, j int) bool { return acls[i].Index < acls[j].Index })
	return acls
}

func (r *Region) lbACLRoutes(base string) {
	r.route("GET "+base+"/frontends/{id}/acls", http.StatusOK, listACLs)
	r.route("POST "+base+"/frontends/{id}/acls", http.StatusOK, createACL)
	r.route("PUT "+base+"/frontends/{id}/acls", http.StatusOK, setACLs)
	r.route("GET "+base+"/acls/{id}", http.StatusOK, getLBACL)
	r.route("PUT "+base+"/acls/{id}", http.StatusOK, updateLBACL)
	r.route("DELETE "+base+"/acls/{id}", http.StatusNoContent, deleteLBACL)
}

func (c *call) viewLBACL(a *lbACL) doc { return c.viewLBACLOf(a, shown{}) }

func (c *call) viewLBACLOf(a *lbACL, m shown) doc {
	d := doc{"id": a.ID, "name": a.Name, "action": a.Action, "match": a.Match, "index": a.Index, "description": a.Description,
		"created_at": stamp(a.Created), "updated_at": stamp(a.Updated)}
	if f, ok := c.Frontends.get(a.Frontend); ok {
		d["frontend"] = c.viewFrontend(f, m)
	}
	return d
}

func listACLs(c *call) (any, error) {
	f, err := c.frontend(c.path("id"), false)
	if err != nil {
		return nil, err
	}
	items := c.LBACLs.where(func(a *lbACL) bool { return a.Frontend == f.ID && strings.Contains(a.Name, c.query("name")) })
	return paged(c, "acls", items, c.viewLBACL)
}

type aclSpec struct {
	Name        string         `json:"name"`
	Action      map[string]any `json:"action"`
	Match       map[string]any `json:"match"`
	Index       int            `json:"index"`
	Description string         `json:"description"`
}

// fill checks a rule as requests give it and completes it as answers show it.
func (s aclSpec) fill(a *lbACL) error {
	kind, _ := s.Action["type"].(string)
	if !slices.Contains([]string{"allow", "deny", "redirect"}, kind) {
		return invalid("action", "constraint", "action type must be allow, deny or redirect")
	}
	if s.Index < 0 {
		return invalid("index", "constraint", "index must not be negative")
	}
	match := doc{"ip_subnet": []any{}, "ips_edge_services": false, "http_filter": "acl_http_filter_none", "http_filter_value": []any{},
		"http_filter_option": nil, "invert": false}
	for k, v := range s.Match {
		if v != nil {
			match[k] = v
		}
	}
	if subnets, _ := match["ip_subnet"].([]any); len(subnets) == 0 {
		match["ip_subnet"] = []any{"0.0.0.0/0"}
	}
	action := doc{"type": kind, "redirect": s.Action["redirect"]}
	a.Name, a.Action, a.Match, a.Index, a.Description = s.Name, action, match, s.Index, s.Description
	return nil
}

func createACL(c *call) (any, error) {
	f, err := c.frontend(c.path("id"), true)
	if err != nil {
		return nil, err
	}
	var in aclSpec
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	a := &lbACL{record: newRecord(f.Project, "", nil), Frontend: f.ID}
	if err := in.fill(a); err != nil {
		return nil, err
	}
	add(c.world, c.LBACLs, a)
	c.applyLBID(f.LB)
	return c.viewLBACL(a), nil
}

func setACLs(c *call) (any, error) {
	f, err := c.frontend(c.path("id"), true)
	if err != nil {
		return nil, err
	}
	var in struct {
		ACLs []aclSpec `json:"acls"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	var fresh []*lbACL
	for _, s := range in.ACLs {
		a := &lbACL{record: newRecord(f.Project, "", nil), Frontend: f.ID}
		if err := s.fill(a); err != nil {
			return nil, err
		}
		fresh = append(fresh, a)
	}
	for _, old := range c.aclsOf(f.ID) {
		remove(c.world, c.LBACLs, old.ID)
	}
	for _, a := range fresh {
		add(c.world, c.LBACLs, a)
	}
	c.applyLBID(f.LB)
	return doc{"acls": views(fresh, c.viewLBACL), "total_count": len(fresh)}, nil
}

func (c *call) lbACL(changing bool) (*lbACL, error) {
	a, ok := c.LBACLs.get(c.path("id"))
	if !ok {
		return nil, missingLB("acl")
	}
	if _, err := c.frontend(a.Frontend, changing); err != nil {
		return nil, err
	}
	return a, nil
}

func getLBACL(c *call) (any, error) {
	a, err := c.lbACL(false)
	if err != nil {
		return nil, err
	}
	return c.viewLBACL(a), nil
}

func updateLBACL(c *call) (any, error) {
	a, err := c.lbACL(true)
	if err != nil {
		return nil, err
	}
	var in aclSpec
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := in.fill(a); err != nil {
		return nil, err
	}
	change(c.world, c.LBACLs, a)
	c.applyLBID(c.Frontends.Items[a.Frontend].LB)
	return c.viewLBACLOf(a, shown{lb: true}), nil
}

func deleteLBACL(c *call) (any, error) {
	a, err := c.lbACL(true)
	if err != nil {
		return nil, err
	}
	remove(c.world, c.LBACLs, a.ID)
	c.applyLBID(c.Frontends.Items[a.Frontend].LB)
	return nil, nil
}
