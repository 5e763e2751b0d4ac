package scaleway_test

import (
	"strings"
	"testing"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/sim/api"

	"github.com/scaleway/scaleway-sdk-go/api/domain/v2beta1"
)

// smallServices is a private estate with all of the small services.
func smallServices() *estate.Estate { return withServices(privateEstate(1)) }

func newServicesWorld(t testing.TB, e *estate.Estate) *world {
	t.Helper()
	return scene{nil, func() *estate.Estate { return e }}.fresh(t)
}

// records counts the records of a zone that exists.
func (w *world) records(zone string) int {
	r, err := domain.NewAPI(w.somebody()).ListDNSZoneRecords(&domain.ListDNSZoneRecordsRequest{DNSZone: zone})
	if err != nil {
		w.Fatal(err)
	}
	return int(r.TotalCount)
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

// A product that the file does not use may be closed to the key: a run goes on
// and says so, a teardown does not end as a proof.
func TestProductsThatTheFileDoesNotUse(t *testing.T) {
	t.Parallel()
	for product, what := range map[string]string{"registry": "the project's registry namespaces", "secret-manager": "the project's secrets", "domain": "the project's DNS zones"} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, oneNode())
			w.seed(api.Seed{Permissions: &api.Credential{Deny: []string{product}}})
			w.mustUp()
			inv := w.wantConverged()
			if len(inv.Unread) != 1 || inv.Unread[0] != what || !strings.Contains(strings.Join(inv.Warnings, ""), what) {
				t.Errorf("unread %q, warnings %q", inv.Unread, inv.Warnings)
			}
			wantError(t, inv.Complete(), outcome.Unknown, what, "may not read")
			if err := w.destroy(t.Context(), w.cloud()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A product that the file uses must be readable: nothing is made otherwise, and
// the permission is named.
func TestProductsThatTheFileUses(t *testing.T) {
	t.Parallel()
	for product, set := range map[string]string{"registry": "ContainerRegistryFullAccess", "secret-manager": "SecretManagerFullAccess", "domain": "DomainsDNSFullAccess"} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := scenes["services"].fresh(t)
			w.seed(api.Seed{Permissions: &api.Credential{Deny: []string{product}}})
			wantError(t, w.up(t.Context(), w.cloud()), outcome.Unknown, set)
			if n, which := w.writes(0); n > 0 {
				t.Errorf("%d writes: %s", n, which)
			}
		})
	}
}
