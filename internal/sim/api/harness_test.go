package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"
	"bastide/internal/sim/hardware"
)

const (
	project = "11111111-1111-4111-8111-111111111111"
	token   = "22222222-2222-4222-8222-222222222222"
	zone    = "fr-par-1"
	sshKey  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIm0ZVYxQyGBqs8iPtY5XJzVqVYhzvHqMBNYnMDXQTvL somebody@example.org"
)

// body is a JSON object of a request or an answer.
type body = map[string]any

// hall records what the region asks of its hardware.
type hall struct {
	mu        sync.Mutex
	machines  map[string]hardware.Machine // powered on, by name
	off       []string
	removed   []string // servers that are no more
	forgotten []string
	balancers map[string]hardware.Balancer
	gateways  map[string]hardware.Gateway
	databases map[string]hardware.Database
	events    []hardware.NodeEvent
	slow      chan struct{} // PowerOff waits for it, if not nil
}

func newHall() *hall {
	return &hall{machines: map[string]hardware.Machine{}, balancers: map[string]hardware.Balancer{}, gateways: map[string]hardware.Gateway{},
		databases: map[string]hardware.Database{}}
}

func (h *hall) with(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

type machines struct{ *hall }

func (m machines) PowerOn(x hardware.Machine) { m.with(func() { m.machines[x.Name] = x }) }
func (m machines) Reboot(x hardware.Machine)  { m.with(func() { m.machines[x.Name] = x }) }
func (m machines) PowerOff(id string) {
	if m.slow != nil {
		<-m.slow
	}
	m.with(func() {
		for name, x := range m.machines {
			if x.ServerID == id {
				delete(m.machines, name)
			}
		}
		m.off = append(m.off, id)
	})
}
func (m machines) Remove(id string)       { m.with(func() { m.removed = append(m.removed, id) }) }
func (m machines) DeleteVolume(id string) { m.with(func() { m.forgotten = append(m.forgotten, id) }) }
func (m machines) Check(e hardware.NodeEvent) error {
	if e.Event == "meteor" {
		return errors.New("no node event \"meteor\"")
	}
	return nil
}

func (m machines) Event(_ context.Context, e hardware.NodeEvent) error {
	m.with(func() { m.events = append(m.events, e) })
	return nil
}

type balancers struct{ *hall }

func (b balancers) Apply(x hardware.Balancer) { b.with(func() { b.balancers[x.ID] = x }) }
func (b balancers) Remove(id string)          { b.with(func() { delete(b.balancers, id) }) }

type gateways struct{ *hall }

func (g gateways) Apply(x hardware.Gateway) { g.with(func() { g.gateways[x.ID] = x }) }
func (g gateways) Remove(id string)         { g.with(func() { delete(g.gateways, id) }) }

// region is a region under test with a client.
type region struct {
	*testing.T
	*api.Region
	hall   *hall
	url    string
	client *http.Client
}

func newRegion(t *testing.T, edit ...func(*api.Options)) *region {
	t.Helper()
	h := newHall()
	o := api.Options{Clock: clock.New(1000), Projects: []string{project}, Machines: machines{h}, Trouble: machines{h},
		Balancers: balancers{h}, Gateways: gateways{h}, Databases: databases{h}}
	for _, e := range edit {
		e(&o)
	}
	r := api.New(o)
	t.Cleanup(r.Close)
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	return &region{t, r, h, s.URL, s.Client()}
}

// call sends a request and returns status, header and body.
func (r *region) call(method, path string, in any, header ...string) (int, http.Header, []byte, error) {
	r.Helper()
	var payload io.Reader
	switch v := in.(type) {
	case nil:
	case string:
		payload = strings.NewReader(v)
	default:
		b, err := json.Marshal(v)
		if err != nil {
			r.Fatal(err)
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(r.Context(), method, r.url+path, payload)
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", token)
	req.Header.Set("User-Agent", "story/1")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := r.client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header, b, err
}

// do sends a request that must succeed and returns the object in the answer.
func (r *region) do(method, path string, in any) body {
	r.Helper()
	status, _, b, err := r.call(method, path, in)
	if err != nil || status >= 300 {
		r.Fatalf("%s %s: %d %s %v", method, path, status, b, err)
	}
	out := body{}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &out); err != nil {
			r.Fatalf("%s %s: %s: %v", method, path, b, err)
		}
	}
	return out
}

// refused sends a request that must fail and returns status and body.
func (r *region) refused(method, path string, in any) (int, body) {
	r.Helper()
	status, _, b, err := r.call(method, path, in)
	if err != nil || status < 400 {
		r.Fatalf("%s %s: %d %s %v, want a refusal", method, path, status, b, err)
	}
	out := body{}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &out); err != nil {
			r.Fatalf("%s %s: %s: %v", method, path, b, err)
		}
	}
	return status, out
}

// until reads something again and again until it is as wanted; the test's own
// deadline bounds it.
func (r *region) until(path string, wanted func(status int, b body) bool) body {
	r.Helper()
	for {
		status, _, text, err := r.call("GET", path, nil)
		if err != nil {
			r.Fatal(err)
		}
		b := body{}
		_ = json.Unmarshal(text, &b)
		if wanted(status, b) {
			return b
		}
		select {
		case <-r.Context().Done():
			r.Fatalf("GET %s: still %d %s", path, status, text)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (r *region) untilStatus(path, status string) body {
	r.Helper()
	return r.until(path, func(_ int, b body) bool {
		if s, ok := b["server"].(map[string]any); ok {
			return s["state"] == status
		}
		return b["status"] == status
	})
}

func (r *region) untilGone(path string) {
	r.Helper()
	r.until(path, func(status int, _ body) bool { return status == http.StatusNotFound })
}

// eventually waits for something that the hardware was told.
func (r *region) eventually(what string, seen func() bool) {
	r.Helper()
	for {
		ok := false
		r.hall.with(func() { ok = seen() })
		if ok {
			return
		}
		select {
		case <-r.Context().Done():
			r.Fatalf("never happened: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// dig walks into an answer: keys and list indexes.
func dig(v any, path ...any) any {
	for _, p := range path {
		switch k := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return nil
			}
			v = l[k]
		}
	}
	return v
}

func str(v any, path ...any) string { return fmt.Sprint(dig(v, path...)) }

// The paths of a zone's and a region's products.
const (
	vpcs       = "/vpc/v2/regions/fr-par/vpcs"
	networks   = "/vpc/v2/regions/fr-par/private-networks"
	ips        = "/ipam/v1/regions/fr-par/ips"
	gws        = "/vpc-gw/v2/zones/" + zone + "/gateways"
	gwNets     = "/vpc-gw/v2/zones/" + zone + "/gateway-networks"
	gwIPs      = "/vpc-gw/v2/zones/" + zone + "/ips"
	volumes    = "/block/v1/zones/" + zone + "/volumes"
	snapshots  = "/block/v1/zones/" + zone + "/snapshots"
	flexibles  = "/instance/v1/zones/" + zone + "/ips"
	placements = "/instance/v1/zones/" + zone + "/placement_groups"
	lbs        = "/lb/v1/zones/" + zone + "/lbs"
	servers    = "/instance/v1/zones/" + zone + "/servers"
	groups     = "/instance/v1/zones/" + zone + "/security_groups"
	keys       = "/iam/v1alpha1/ssh-keys"
)

// network makes a private network.
func (r *region) network() string {
	r.Helper()
	return str(r.do("POST", networks, body{"name": "inside", "project_id": project, "subnets": []string{"172.16.0.0/22"}}), "id")
}
