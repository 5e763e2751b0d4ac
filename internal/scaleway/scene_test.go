package scaleway_test

import (
	"testing"

	"bastide/internal/estate"
	"bastide/internal/sim/api"
)

// scene is an estate, and what of it runs already, for tests that go through
// every call of a run.
type scene struct {
	before func() *estate.Estate // nil: nothing runs yet
	estate func() *estate.Estate
}

// scenes are the private estate from nothing, and the services beside one that
// runs: so that going through their calls does not mean going through all others
// again.
var scenes = map[string]scene{
	"private estate": {nil, func() *estate.Estate { return privateEstate(2) }},
	"services":       {oneNode, func() *estate.Estate { return withServices(oneNode()) }},
	"database":       {oneNode, func() *estate.Estate { return withPostgres(oneNode()) }},
	"image":          {nil, func() *estate.Estate { return withImage(oneNode()) }},
}

// oneNode is the smallest estate.
func oneNode() *estate.Estate {
	e := privateEstate(0)
	e.ControlPlane.Count, e.ControlPlane.Ephemeral, e.Pools = 1, nil, nil
	return e
}

// withImage lets an estate have its image made.
func withImage(e *estate.Estate) *estate.Estate {
	e.Talos.Snapshot, e.Talos.Image.Source = "", "raw.zst"
	return e
}

// withServices gives an estate all of the small services.
func withServices(e *estate.Estate) *estate.Estate {
	e.Network.EdgeAddress = "reserved"
	e.Services.Buckets = []estate.Bucket{{Name: "staging-app", Versioning: "enabled", Tags: map[string]string{"team": "platform"},
		Lifecycle: []estate.LifecycleRule{{Name: "old-logs", Prefix: "logs/", ExpireDays: 30, OldVersionDays: 7}, {Name: "uploads", AbortDays: 1}},
		CORS:      []estate.CORSRule{{Origins: []string{"https://app.example.org"}, Methods: []string{"PUT", "GET"}, Headers: []string{"*"}, ExposeHeaders: []string{"ETag"}, MaxAgeSeconds: 600}}}}
	e.Services.Registry = &estate.Registry{Name: "staging-images", Description: "images of the platform"}
	e.Services.Secrets = []estate.SecretContainer{{Name: "app/session-key", Type: "opaque", Tags: []string{"team-platform"}}, {Name: "smtp", Type: "key_value"}}
	e.DNS = &estate.DNS{Zone: "example.org", API: "k8s.staging", Edge: "edge", TTL: 300}
	return e
}

// fresh is a region in which nothing of the scene is.
func (s scene) fresh(t testing.TB) *world {
	t.Helper()
	w := newWorld(t, s.estate())
	w.seed(exampleDomain)
	return w
}

// ready is a region with what runs already.
func (s scene) ready(t testing.TB) *world {
	t.Helper()
	w := s.fresh(t)
	if s.before != nil {
		wanted := w.estate
		w.estate = s.before()
		w.mustUp()
		w.estate = wanted
	}
	return w
}

// exampleDomain is the DNS zone that a person has.
var exampleDomain = api.Seed{Domains: []api.SeedDomain{{Domain: "example.org", Project: project}}}
