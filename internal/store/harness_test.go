package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/scaleway"
	"bastide/internal/sim"
	"bastide/internal/sim/api"
)

const project = "11111111-1111-4111-8111-111111111111"

// place is a region and what was told to the person who works in it.
type place struct {
	*testing.T
	region *sim.Region

	mu   sync.Mutex
	told []string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	r, err := sim.Start(sim.Options{Listen: "127.0.0.1:0", Dir: t.TempDir(), Speed: 100, Elsewhere: &sim.Elsewhere{Region: "eu-west-1", Buckets: []string{"staging-copies"}}, Access: sim.Access{
		AccessKey: sim.AccessKey, SecretKey: "6a1b1b7e-0000-4000-8000-000000000001", Project: project, Region: "fr-par", Zone: "fr-par-1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return &place{T: t, region: r}
}

func (p *place) notice(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, text)
}

func (p *place) heard() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.told, "\n")
}

// objects reaches the region's object storage as a project.
func (p *place) objects(project string, decorators ...scaleway.Decorator) *scaleway.ObjectStorage {
	p.Helper()
	return p.objectsWithin(600*time.Millisecond, 8*time.Second, project, decorators...)
}

// objectsWithin gives one call so long, and its repetitions.
func (p *place) objectsWithin(attempt, budget time.Duration, project string, decorators ...scaleway.Decorator) *scaleway.ObjectStorage {
	p.Helper()
	env := map[string]string{}
	for _, kv := range p.region.Access.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	o, _, err := scaleway.NewObjectStorage(scaleway.Options{
		Estate:    &estate.Estate{Name: "staging", Scaleway: estate.Scaleway{Project: project, Region: "fr-par", Zones: []string{"fr-par-1"}}},
		UserAgent: "bastide/test", LookupEnv: func(n string) (string, bool) { v, ok := env[n]; return v, ok }, Decorators: decorators, Notice: p.notice,
		Retry: scaleway.Retry{Attempt: attempt, Base: time.Millisecond, Cap: 20 * time.Millisecond, Budget: budget},
	})
	if err != nil {
		p.Fatal(err)
	}
	return o
}

// store is the bucket of the estate staging.
func (p *place) store(terms Terms, decorators ...scaleway.Decorator) *Store {
	p.Helper()
	return New(Options{Objects: p.objects(project, decorators...), Bucket: "bastide-staging", Estate: "staging", Notice: p.notice, Terms: terms,
		Seal: func(plain []byte) ([]byte, error) { return bytes.ToUpper(plain), nil }})
}

func (p *place) faults(script string) {
	p.Helper()
	p.page("DELETE", "/sim/faults", "", nil)
	p.page("POST", "/sim/faults", script, nil)
}

func (p *place) page(method, path, body string, into any) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), method, p.region.Access.URL+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var text bytes.Buffer
	if _, err := text.ReadFrom(resp.Body); err != nil || resp.StatusCode >= 300 {
		p.Fatalf("%s %s: %d, %v: %s", method, path, resp.StatusCode, err, &text)
	}
	if into != nil {
		if err := json.Unmarshal(text.Bytes(), into); err != nil {
			p.Fatal(err)
		}
	}
}

// struck says whether a rule of the fault script acted.
func (p *place) struck() bool {
	p.Helper()
	var state struct {
		HTTP []struct {
			Acted int `json:"acted"`
		} `json:"http"`
	}
	p.page("GET", "/sim/faults", "", &state)
	return state.HTTP[0].Acted > 0
}

// writes are the calls to object storage that changed something, as METHOD PATH.
func (p *place) writes() []string {
	p.Helper()
	var log []api.Request
	p.page("GET", "/sim/requests", "", &log)
	var out []string
	for _, r := range log {
		if r.Host == "s3" && r.Mutating {
			out = append(out, r.Method+" "+r.Path)
		}
	}
	return out
}

// keys are all versions of all objects of a bucket, as KEY, or KEY* for a delete
// marker.
func (p *place) keys(b *Bucket) []string {
	p.Helper()
	things, err := b.everything(p.Context(), nil)
	if err != nil {
		p.Fatal(err)
	}
	out := []string{}
	for _, v := range things {
		name := v.Key
		if v.IsDeleteMarker {
			name += "*"
		}
		out = append(out, name)
	}
	return out
}

func (p *place) acquire(s *Store) *Held {
	p.Helper()
	h, err := s.Acquire(p.Context(), request)
	if err != nil {
		p.Fatal(err)
	}
	return h
}

var request = Request{Command: "bastide up envs/staging", Version: "bastide/test", Unlock: "bastide unlock envs/staging"}

// wantRefused wants an error with a code whose text holds all parts.
func wantError(t testing.TB, err error, code outcome.Code, parts ...string) {
	t.Helper()
	var told *outcome.Error
	if !errors.As(err, &told) || told.Code != code {
		t.Fatalf("want exit code %d, got %v", code, err)
	}
	for _, part := range append(parts, "") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	if told.What == "" || told.Why == "" || told.Do == "" {
		t.Errorf("the error is not whole: %+v", told)
	}
}
