package scaleway_test

import (
	"strings"
	"testing"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/sim/api"
)

// smallServices is a private estate with all of the small services.
func smallServices() *estate.Estate {
	e := privateEstate(1)
	e.Network.EdgeAddress = "reserved"
	e.Services = estate.Services{
		Registry: &estate.Registry{Name: "staging-images", Description: "images of the platform"},
		Secrets: []estate.SecretContainer{{Name: "app/session-key", Type: "opaque", Tags: []string{"team-platform"}, Protected: false},
			{Name: "smtp", Type: "key_value"}},
	}
	e.DNS = &estate.DNS{Zone: "example.org", API: "k8s.staging", Edge: "edge", TTL: 300}
	return e
}

func newServicesWorld(t testing.TB, e *estate.Estate) *world {
	t.Helper()
	w := newWorld(t, e)
	w.seed(api.Seed{Domains: []api.SeedDomain{{Domain: "example.org", Project: project}}})
	return w
}

func (w *world) seed(s api.Seed) {
	w.Helper()
	if err := w.region.Seed(s); err != nil {
		w.Fatal(err)
	}
}

// The small services: made, found as wanted, left alone, taken down.
func TestSmallServices(t *testing.T) {
	t.Parallel()
	w := newServicesWorld(t, smallServices())
	w.mustUp()
	w.wantConverged()
	mark := len(w.region.Requests(0))
	w.mustUp()
	if n, which := w.writes(mark); n != 0 {
		t.Errorf("a second run wrote %d times: %s", n, strings.Join(which, "; "))
	}
	if n := len(w.region.Requests(mark)); n > 40 {
		t.Errorf("an inventory took %d calls", n)
	}
	if err := w.destroy(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	inv, err := w.cloud().Inventory(t.Context())
	if err != nil || !inv.Empty() {
		t.Errorf("inventory after destroy: %+v, %v", inv, err)
	}
}

// wantRefused checks that the plan refuses a step with a reason.
func (w *world) wantRefused(step string, parts ...string) {
	w.Helper()
	_, p, _, err := w.plan(w.Context(), w.cloud())
	if err != nil {
		w.Fatal(err)
	}
	for _, a := range p.Actions {
		if a.Step.ID != step {
			continue
		}
		if a.Op != plan.Refuse {
			w.Errorf("%s: %s, want it refused", step, a.Op)
		}
		for _, part := range parts {
			if !strings.Contains(a.Reason, part) {
				w.Errorf("%s is refused because %q, want %q in it", step, a.Reason, part)
			}
		}
		return
	}
	w.Errorf("%s is not in the plan", step)
}

// A registry name that another customer has is refused with the owner unknown.
func TestRegistryNameTaken(t *testing.T) {
	t.Parallel()
	w := newServicesWorld(t, smallServices())
	w.seed(api.Seed{RegistryTaken: []api.SeedTaken{{Region: "fr-par", Name: "staging-images"}}})
	wantError(t, w.up(t.Context(), w.cloud()), outcome.Failed, "the owner is unknown")
}
