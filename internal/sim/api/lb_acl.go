package api

import (
	"net/http"
	"slices"
	"sort"
	"strings"
)

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
