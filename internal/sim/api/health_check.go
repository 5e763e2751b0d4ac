package api

import (
	"encoding/json"
	"strconv"
	"time"
)

// healthCheck is a backend's check. Exactly one of the kinds is set.
type healthCheck struct {
	Port       int
	Delay      *int64 // ms
	Timeout    *int64 // ms
	MaxRetries int
	SendProxy  bool
	Transient  *string
	Kind       string         // tcp_config, http_config, …
	Config     map[string]any // of that kind
	HTTPS      map[string]any // the same, for https_config
}

var checkKinds = []string{"tcp_config", "mysql_config", "pgsql_config", "ldap_config", "redis_config", "http_config", "https_config"}

// UnmarshalJSON reads a check; without a kind it is a plain TCP check.
func (h *healthCheck) UnmarshalJSON(b []byte) error {
	var in struct {
		Port       int     `json:"port"`
		Delay      *int64  `json:"check_delay"`
		Timeout    *int64  `json:"check_timeout"`
		MaxRetries int     `json:"check_max_retries"`
		SendProxy  bool    `json:"check_send_proxy"`
		Transient  *string `json:"transient_check_delay"`
	}
	var kinds map[string]json.RawMessage
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	if err := json.Unmarshal(b, &kinds); err != nil {
		return err
	}
	*h = healthCheck{Port: in.Port, Delay: in.Delay, Timeout: in.Timeout, MaxRetries: in.MaxRetries, SendProxy: in.SendProxy,
		Transient: in.Transient, Kind: "tcp_config", Config: doc{}}
	for _, k := range checkKinds {
		if v, ok := kinds[k]; ok && string(v) != "null" {
			h.Kind, h.Config = k, doc{}
			if err := json.Unmarshal(v, &h.Config); err != nil {
				return err
			}
		}
	}
	if h.Kind == "https_config" {
		h.HTTPS = h.Config
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads, so that copies of the world keep it.
func (h healthCheck) MarshalJSON() ([]byte, error) { return json.Marshal(viewCheck(h)) }

func viewCheck(h healthCheck) doc {
	d := doc{"port": h.Port, "check_delay": h.Delay, "check_timeout": h.Timeout, "check_max_retries": h.MaxRetries,
		"check_send_proxy": h.SendProxy, "transient_check_delay": seconds(h.Transient)}
	config := doc{}
	for k, v := range h.Config {
		config[k] = v
	}
	d[h.Kind] = config
	return d
}

// seconds writes a duration as the API does: "0.500000000s" becomes "0.500s".
func seconds(s *string) any {
	if s == nil {
		return nil
	}
	d, err := time.ParseDuration(*s)
	if err != nil {
		return *s
	}
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + "s"
}

func updateHealthCheck(c *call) (any, error) {
	b, err := c.backend(true)
	if err != nil {
		return nil, err
	}
	var in healthCheck
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	b.Check = in
	c.changedBackend(b)
	return viewCheck(in), nil
}
