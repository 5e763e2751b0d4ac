package api

import (
	"net/http"
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
