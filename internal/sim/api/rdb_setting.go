package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// rdbSetting is an engine's parameter and what it is set to.
type rdbSetting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// rdbRule lets a range in at the public endpoint; private ones ask nobody.
type rdbRule struct {
	IP          string `json:"ip"`
	Description string `json:"description"`
}

func (r *Region) rdbSettingRoutes(one string) {
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		r.route(method+" "+one+"/settings", http.StatusOK, changeSettings)
	}
}

func (r *Region) rdbACLRoutes(one string) {
	r.route("GET "+one+"/acls", http.StatusOK, listRDBACLs)
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		r.route(method+" "+one+"/acls", http.StatusOK, changeRDBACLs)
	}
}

// defaultSettings are what the provider sets for a node's size.
func defaultSettings(engine, node string) []rdbSetting {
	if strings.HasPrefix(engine, "MySQL") {
		return []rdbSetting{{"max_connections", "100"}}
	}
	t, ok := findNodeType(node)
	if !ok {
		return []rdbSetting{}
	}
	n := func(i int64) string { return strconv.FormatInt(i, 10) }
	gib := t.Memory >> 30
	cache := 675 * gib
	if gib == 2 {
		cache = 1300
	}
	return []rdbSetting{{"effective_cache_size", n(cache)}, {"maintenance_work_mem", n(75 * gib)}, {"max_connections", n(min(50+25*gib, 1000))},
		{"max_parallel_workers", n(int64(t.CPUs) / 2)}, {"max_parallel_workers_per_gather", n(int64(t.CPUs) / 4)}, {"work_mem", n(2 * gib)}}
}

// changeSettings adds settings (POST), replaces them all (PUT) or resets some to
// the engine's default (DELETE). The engine is configured anew for it.
func changeSettings(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Settings []rdbSetting `json:"settings"`
		Names    []string     `json:"setting_names"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if e, ok := c.engine(i.Engine); ok {
		if err := e.check(in.Settings, false); err != nil {
			return nil, err
		}
	}
	switch c.req.Method {
	case "PUT":
		i.Settings = nil
	case "DELETE":
		i.Settings = slices.DeleteFunc(i.Settings, func(s rdbSetting) bool { return slices.Contains(in.Names, s.Name) })
		in.Settings = nil
	}
	for _, s := range in.Settings {
		i.Settings = append(slices.DeleteFunc(i.Settings, func(o rdbSetting) bool { return o.Name == s.Name }), s)
	}
	slices.SortFunc(i.Settings, func(a, b rdbSetting) int { return strings.Compare(a.Name, b.Name) })
	c.rdbBusy(i, "configuring", rdbConfigures, nil)
	change(c.world, c.RDBInstances, i)
	return doc{"settings": list(i.Settings)}, nil
}

// viewRules shows rules with the port that they guard: the public endpoint's,
// or 0 when it is gone or has moved to another instance.
func (i *rdbInstance) viewRules(rules []rdbRule) []doc {
	port := 0
	for _, e := range i.Endpoints {
		if e.Kind == rdbPublic {
			port = e.Port
		}
	}
	return views(rules, func(r rdbRule) doc {
		return doc{"ip": r.IP, "port": port, "protocol": "tcp", "direction": "inbound", "action": "allow", "description": r.Description}
	})
}

func listRDBACLs(c *call) (any, error) {
	i, err := c.rdb(c.path("id"))
	if err != nil {
		return nil, err
	}
	return doc{"rules": i.viewRules(page(c, i.ACLs, "page_size", 20)), "total_count": len(i.ACLs)}, nil
}

// changeRDBACLs adds rules (POST), replaces them all (PUT) or takes some away
// (DELETE); the answer is what there is now or, for DELETE, what was taken away.
func changeRDBACLs(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Rules []rdbRule `json:"rules"`
		IPs   []string  `json:"acl_rule_ips"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	for n, r := range in.Rules {
		p, err := ruleRange(r.IP)
		if err != nil {
			return nil, invalid(fmt.Sprintf("rules.%d.ip", n), "format", r.IP+" is not an address or a range")
		}
		in.Rules[n].IP = p.String()
	}
	gone := []rdbRule{}
	switch c.req.Method {
	case "PUT":
		i.ACLs = []rdbRule{}
	case "DELETE":
		in.Rules = nil
		i.ACLs = slices.DeleteFunc(slices.Clone(i.ACLs), func(r rdbRule) bool {
			hit := slices.Contains(in.IPs, r.IP)
			if hit {
				gone = append(gone, r)
			}
			return hit
		})
	}
	for _, r := range in.Rules {
		i.ACLs = append(slices.DeleteFunc(slices.Clone(i.ACLs), func(o rdbRule) bool { return o.IP == r.IP }), r)
	}
	slices.SortStableFunc(i.ACLs, func(a, b rdbRule) int {
		x, _ := ruleRange(a.IP)
		y, _ := ruleRange(b.IP)
		return x.Addr().Compare(y.Addr())
	})
	c.rdbBusy(i, "configuring", rdbConfigures, nil)
	change(c.world, c.RDBInstances, i)
	if c.req.Method == "DELETE" {
		return doc{"rules": i.viewRules(gone)}, nil
	}
	return doc{"rules": i.viewRules(i.ACLs)}, nil
}

func ruleRange(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}
