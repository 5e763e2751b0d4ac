package api

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"time"
)

// lbRoute sends what matches at a frontend to another backend.
type lbRoute struct {
	record
	LB       string
	Frontend string
	Backend  string
	Match    map[string]any
}

// certificate is a load balancer's TLS certificate. Nothing is ever signed.
type certificate struct {
	record
	LB         string
	Type       string // letsencrypt or custom
	CommonName string
	Alternates []string
	Status     string
	Print      string
}

const certificateTakes = 20 * time.Second

func (r *Region) lbRouteRoutes(base string) {
	r.route("GET "+base+"/routes", http.StatusOK, listLBRoutes)
	r.route("POST "+base+"/routes", http.StatusOK, createLBRoute)
	r.route("GET "+base+"/routes/{id}", http.StatusOK, getLBRoute)
	r.route("PUT "+base+"/routes/{id}", http.StatusOK, updateLBRoute)
	r.route("DELETE "+base+"/routes/{id}", http.StatusNoContent, deleteLBRoute)
	r.route("GET "+base+"/lbs/{id}/certificates", http.StatusOK, listCertificates)
	r.route("POST "+base+"/lbs/{id}/certificates", http.StatusOK, createCertificate)
	r.route("GET "+base+"/certificates/{id}", http.StatusOK, getCertificate)
	r.route("PUT "+base+"/certificates/{id}", http.StatusOK, updateCertificate)
	r.route("DELETE "+base+"/certificates/{id}", http.StatusNoContent, deleteCertificate)
}

func viewLBRoute(r *lbRoute) doc {
	return doc{"id": r.ID, "frontend_id": r.Frontend, "backend_id": r.Backend, "match": r.Match,
		"created_at": stamp(r.Created), "updated_at": stamp(r.Updated)}
}

func listLBRoutes(c *call) (any, error) {
	items := c.LBRoutes.where(func(r *lbRoute) bool {
		return c.LBs.Items[r.LB].Zone == c.zone() && oneOf(r.Frontend, c.values("frontend_id"))
	})
	return paged(c, "routes", items, viewLBRoute)
}

func createLBRoute(c *call) (any, error) {
	var in struct {
		Frontend string         `json:"frontend_id"`
		Backend  string         `json:"backend_id"`
		Match    map[string]any `json:"match"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	f, err := c.frontend(in.Frontend, true)
	if err != nil {
		return nil, err
	}
	if b, ok := c.Backends.get(in.Backend); !ok || b.LB != f.LB {
		return nil, missingLB("backend")
	}
	return viewLBRoute(add(c.world, c.LBRoutes, &lbRoute{record: newRecord(f.Project, "", nil), LB: f.LB, Frontend: f.ID,
		Backend: in.Backend, Match: in.Match})), nil
}

// lbRouteByID misses as a private network, for reasons of the API's own.
func (c *call) lbRouteByID() (*lbRoute, error) {
	if r, ok := c.LBRoutes.get(c.path("id")); ok {
		return r, nil
	}
	return nil, missingLB("privateNetwork")
}

func getLBRoute(c *call) (any, error) {
	r, err := c.lbRouteByID()
	if err != nil {
		return nil, err
	}
	return viewLBRoute(r), nil
}

func updateLBRoute(c *call) (any, error) {
	r, err := c.lbRouteByID()
	if err != nil {
		return nil, err
	}
	var in struct {
		Backend string         `json:"backend_id"`
		Match   map[string]any `json:"match"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if b, ok := c.Backends.get(in.Backend); !ok || b.LB != r.LB {
		return nil, missingLB("backend")
	}
	r.Backend, r.Match = in.Backend, in.Match
	change(c.world, c.LBRoutes, r)
	return viewLBRoute(r), nil
}

func deleteLBRoute(c *call) (any, error) {
	r, err := c.lbRouteByID()
	if err != nil {
		return nil, err
	}
	remove(c.world, c.LBRoutes, r.ID)
	return nil, nil
}

func (c *call) viewCertificate(k *certificate) doc { return c.viewCertificateOf(k, false) }

func (c *call) viewCertificateOf(k *certificate, machines bool) doc {
	d := doc{"id": k.ID, "name": k.Name, "type": k.Type, "common_name": k.CommonName, "subject_alternative_name": list(k.Alternates),
		"fingerprint": k.Print, "status": k.Status, "status_details": nil, "created_at": stamp(k.Created), "updated_at": stamp(k.Updated),
		"not_valid_before": nil, "not_valid_after": nil}
	if k.Status == "ready" {
		d["not_valid_before"] = k.Created.Format(time.RFC3339)
		d["not_valid_after"] = k.Created.AddDate(0, 0, 90).Format(time.RFC3339)
	}
	d["lb"] = c.viewLBWithin(k.LB, machines)
	return d
}

func listCertificates(c *call) (any, error) {
	l, err := c.lb(c.path("id"))
	if err != nil {
		return nil, err
	}
	return paged(c, "certificates", c.Certs.where(func(k *certificate) bool { return k.LB == l.ID }), c.viewCertificate)
}

func createCertificate(c *call) (any, error) {
	l, err := c.readyLB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Name        string `json:"name"`
		LetsEncrypt *struct {
			CommonName string   `json:"common_name"`
			Alternates []string `json:"subject_alternative_name"`
		} `json:"letsencrypt"`
		Custom *struct {
			Chain string `json:"certificate_chain"`
		} `json:"custom_certificate"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	k := &certificate{record: newRecord(l.Project, in.Name, nil), LB: l.ID, Type: "custom", Status: "ready", Print: randomPrint()}
	if in.LetsEncrypt != nil {
		if !l.Public {
			return nil, untyped(http.StatusBadRequest, "letsencrypt certificates need a public load balancer")
		}
		k.Type, k.CommonName, k.Alternates, k.Status, k.Print = "letsencrypt", in.LetsEncrypt.CommonName, in.LetsEncrypt.Alternates, "pending", ""
		c.after(certificateTakes, func(w *world) {
			if k, ok := w.Certs.get(k.ID); ok {
				k.Status, k.Print = "ready", randomPrint()
				k.touch()
			}
		})
	}
	return c.viewCertificateOf(add(c.world, c.Certs, k), true), nil
}

func randomPrint() string {
	var b [20]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func (c *call) certificate() (*certificate, error) {
	if k, ok := c.Certs.get(c.path("id")); ok {
		return k, nil
	}
	return nil, missingLB("certificate")
}

func getCertificate(c *call) (any, error) {
	k, err := c.certificate()
	if err != nil {
		return nil, err
	}
	return c.viewCertificate(k), nil
}

func updateCertificate(c *call) (any, error) {
	k, err := c.certificate()
	if err != nil {
		return nil, err
	}
	if err := c.rename(&k.record); err != nil {
		return nil, err
	}
	change(c.world, c.Certs, k)
	return c.viewCertificate(k), nil
}

func deleteCertificate(c *call) (any, error) {
	k, err := c.certificate()
	if err != nil {
		return nil, err
	}
	remove(c.world, c.Certs, k.ID)
	return nil, nil
}
