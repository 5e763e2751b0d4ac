package api

import (
	"net/http"
	"slices"
	"strings"
)

// backend is a pool of servers behind a load balancer. Durations are whole
// milliseconds but for two, which are written as "0.500s".
type backend struct {
	record
	LB string
	backendSettings
	Servers []string
	Check   healthCheck
}

// backendSettings is what a PUT replaces.
type backendSettings struct {
	ForwardProtocol string  `json:"forward_protocol"`
	ForwardPort     int     `json:"forward_port"`
	Algorithm       string  `json:"forward_port_algorithm"`
	Sticky          string  `json:"sticky_sessions"`
	StickyCookie    string  `json:"sticky_sessions_cookie_name"`
	SendProxyV2     bool    `json:"send_proxy_v2"`
	TimeoutServer   *int64  `json:"timeout_server"`
	TimeoutConnect  *int64  `json:"timeout_connect"`
	TimeoutTunnel   *int64  `json:"timeout_tunnel"`
	OnMarkedDown    string  `json:"on_marked_down_action"`
	ProxyProtocol   string  `json:"proxy_protocol"`
	FailoverHost    *string `json:"failover_host"`
	SSLBridging     bool    `json:"ssl_bridging"`
	IgnoreSSL       *bool   `json:"ignore_ssl_server_verify"`
	Redispatch      *int    `json:"redispatch_attempt_count"`
	MaxRetries      *int    `json:"max_retries"`
	MaxConnections  *int    `json:"max_connections"`
	TimeoutQueue    *string `json:"timeout_queue"`
	Host            string  `json:"host"`
}

func (r *Region) backendRoutes(base string) {
	r.route("GET "+base+"/lbs/{id}/backends", http.StatusOK, listBackends)
	r.route("POST "+base+"/lbs/{id}/backends", http.StatusOK, createBackend)
	r.route("GET "+base+"/backends/{id}", http.StatusOK, getBackend)
	r.route("PUT "+base+"/backends/{id}", http.StatusOK, updateBackend)
	r.route("DELETE "+base+"/backends/{id}", http.StatusNoContent, deleteBackend)
	r.route("POST "+base+"/backends/{id}/servers", http.StatusOK, addBackendServers)
	r.route("PUT "+base+"/backends/{id}/servers", http.StatusOK, setBackendServers)
	r.route("DELETE "+base+"/backends/{id}/servers", http.StatusOK, removeBackendServers)
	r.route("PUT "+base+"/backends/{id}/healthcheck", http.StatusOK, updateHealthCheck)
}

func (c *call) viewBackend(b *backend) doc { return c.viewBackendOf(b, true) }

func (c *call) viewBackendOf(b *backend, machines bool) doc {
	d := doc{"id": b.ID, "name": b.Name, "forward_protocol": b.ForwardProtocol, "forward_port": b.ForwardPort,
		"forward_port_algorithm": b.Algorithm, "sticky_sessions": b.Sticky, "sticky_sessions_cookie_name": b.StickyCookie,
		"health_check": viewCheck(b.Check), "pool": list(b.Servers), "send_proxy_v2": b.SendProxyV2,
		"timeout_server": b.TimeoutServer, "timeout_connect": b.TimeoutConnect, "timeout_tunnel": b.TimeoutTunnel,
		"on_marked_down_action": b.OnMarkedDown, "proxy_protocol": b.ProxyProtocol, "failover_host": b.FailoverHost,
		"ssl_bridging": b.SSLBridging, "ignore_ssl_server_verify": b.IgnoreSSL, "redispatch_attempt_count": b.Redispatch,
		"max_retries": b.MaxRetries, "max_connections": b.MaxConnections, "timeout_queue": seconds(b.TimeoutQueue), "host": b.Host,
		"created_at": stamp(b.Created), "updated_at": stamp(b.Updated)}
	d["lb"] = c.viewLBWithin(b.LB, machines)
	return d
}

func listBackends(c *call) (any, error) {
	l, err := c.lb(c.path("id"))
	if err != nil {
		return nil, err
	}
	items := c.Backends.where(func(b *backend) bool { return b.LB == l.ID && strings.Contains(b.Name, c.query("name")) })
	return paged(c, "backends", items, c.viewBackend)
}

// check fills in what a request may leave out and refuses what is out of range.
func (s *backendSettings) check() error {
	if s.ForwardPort < 1 || s.ForwardPort > 65535 {
		return invalid("forward_port", "constraint", "port must be between 1 and 65535")
	}
	if s.ForwardProtocol != "tcp" && s.ForwardProtocol != "http" {
		return invalid("forward_protocol", "constraint", "protocol must be tcp or http")
	}
	defaults := []struct{ field, value *string }{
		{&s.Algorithm, ptr("roundrobin")}, {&s.Sticky, ptr("none")},
		{&s.OnMarkedDown, ptr("on_marked_down_action_none")}, {&s.ProxyProtocol, ptr("proxy_protocol_none")},
	}
	for _, d := range defaults {
		// The SDK sends proxy_protocol_unknown for a field left empty; this one
		// value is kept and comes back.
		if *d.field == "" || (strings.HasSuffix(*d.field, "_unknown") && d.field != &s.ProxyProtocol) {
			*d.field = *d.value
		}
	}
	return nil
}

func ptr[T any](v T) *T { return &v }

func createBackend(c *call) (any, error) {
	l, err := c.readyLB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Name string `json:"name"`
		backendSettings
		Servers []string     `json:"server_ip"`
		Check   *healthCheck `json:"health_check"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	if in.Check == nil {
		in.Check = &healthCheck{Port: in.ForwardPort, MaxRetries: 5, Kind: "tcp_config", Config: doc{}}
	}
	if in.Name == "" {
		in.Name = "lb-bkd-" + newID()[:8]
	}
	b := &backend{record: newRecord(l.Project, in.Name, nil), LB: l.ID, backendSettings: in.backendSettings,
		Servers: in.Servers, Check: *in.Check}
	add(c.world, c.Backends, b)
	c.applyLB(l)
	return c.viewBackend(b), nil
}

// backend finds a backend whose load balancer takes changes, if changing.
func (c *call) backend(changing bool) (*backend, error) {
	b, ok := c.Backends.get(c.path("id"))
	if !ok {
		return nil, missingLB("backend")
	}
	find := c.lb
	if changing {
		find = c.readyLB
	}
	if _, err := find(b.LB); err != nil {
		return nil, err
	}
	return b, nil
}

func getBackend(c *call) (any, error) {
	b, err := c.backend(false)
	if err != nil {
		return nil, err
	}
	return c.viewBackend(b), nil
}

// changed tells the world and the hardware of a changed backend.
func (c *call) changedBackend(b *backend) {
	change(c.world, c.Backends, b)
	c.applyLBID(b.LB)
}

func updateBackend(c *call) (any, error) {
	b, err := c.backend(true)
	if err != nil {
		return nil, err
	}
	var in struct {
		Name string `json:"name"`
		backendSettings
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	b.Name, b.backendSettings = in.Name, in.backendSettings
	c.changedBackend(b)
	return c.viewBackend(b), nil
}

func deleteBackend(c *call) (any, error) {
	b, err := c.backend(true)
	if err != nil {
		return nil, err
	}
	if c.Frontends.any(func(f *frontend) bool { return f.Backend == b.ID }) {
		return nil, stillInUse("Backend is used by a frontend")
	}
	remove(c.world, c.Backends, b.ID)
	c.applyLBID(b.LB)
	return nil, nil
}

func addBackendServers(c *call) (any, error) {
	return editServers(c, func(have, given []string) []string {
		for _, s := range given {
			if !slices.Contains(have, s) {
				have = append(have, s)
			}
		}
		return have
	})
}

func setBackendServers(c *call) (any, error) {
	return editServers(c, func(_, given []string) []string { return given })
}

func removeBackendServers(c *call) (any, error) {
	return editServers(c, func(have, given []string) []string {
		return slices.DeleteFunc(have, func(s string) bool { return slices.Contains(given, s) })
	})
}

func editServers(c *call, edit func(have, given []string) []string) (any, error) {
	b, err := c.backend(true)
	if err != nil {
		return nil, err
	}
	var in struct {
		Servers []string `json:"server_ip"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	b.Servers = edit(slices.Clone(b.Servers), in.Servers)
	c.changedBackend(b)
	return c.viewBackend(b), nil
}
