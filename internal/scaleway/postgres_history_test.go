package scaleway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/scaleway"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
	"pgregory.net/rapid"
)

// meddling is what may happen between two runs.
var meddling = map[string]func(rt *rapid.T, w *postgresWorld) error{
	"the address changes": func(rt *rapid.T, w *postgresWorld) error {
		return w.moveTo(rapid.SampledFrom([]string{"", "172.16.0.200", "172.16.0.201"}).Draw(rt, "address"))
	},
	"a version is enabled": func(rt *rapid.T, w *postgresWorld) error {
		return w.onVersion(rt, func(id, n string) error {
			_, err := w.secretAPI().EnableSecretVersion(&secret.EnableSecretVersionRequest{SecretID: id, Revision: n})
			return err
		})
	},
	"a version is disabled": func(rt *rapid.T, w *postgresWorld) error {
		return w.onVersion(rt, func(id, n string) error {
			_, err := w.secretAPI().DisableSecretVersion(&secret.DisableSecretVersionRequest{SecretID: id, Revision: n})
			return err
		})
	},
	"a version is deleted": func(rt *rapid.T, w *postgresWorld) error {
		return w.onVersion(rt, func(id, n string) error {
			return w.secretAPI().DeleteSecretVersion(&secret.DeleteSecretVersionRequest{SecretID: id, Revision: n})
		})
	},
	"a version is added": func(_ *rapid.T, w *postgresWorld) error {
		_, err := w.secretAPI().CreateSecretVersion(&secret.CreateSecretVersionRequest{SecretID: w.secretID("app"), Data: byHand})
		return err
	},
	"the secret is deleted": func(_ *rapid.T, w *postgresWorld) error {
		return w.secretAPI().DeleteSecret(&secret.DeleteSecretRequest{SecretID: w.secretID("app")})
	},
	"the tag is lost": func(_ *rapid.T, w *postgresWorld) error {
		_, err := w.databases().UpdateInstance(&rdb.UpdateInstanceRequest{InstanceID: w.instanceID(), Tags: tagsWithout(w.instance().Tags, "bastide:password:app")})
		return err
	},
	"passwordVersion is raised": func(_ *rapid.T, w *postgresWorld) error {
		w.rotate("app", w.estate.Services.Postgres.Users[1].PasswordVersion+1)
		return nil
	},
	"up is killed": func(rt *rapid.T, w *postgresWorld) error {
		return w.killed(rt, func(ctx context.Context, kill scaleway.Decorator) error { return w.up(ctx, w.cloud(kill)) })
	},
	"a destroy with its data is killed": func(rt *rapid.T, w *postgresWorld) error {
		return w.killed(rt, func(ctx context.Context, kill scaleway.Decorator) error {
			return w.destroy(ctx, w.cloud(kill), blueprint.DataPostgres)
		})
	},
}

// onVersion does something to one of the versions of app's secret that there are.
func (w *postgresWorld) onVersion(rt *rapid.T, do func(id, revision string) error) error {
	id := w.secretID("app")
	r, err := w.secretAPI().ListSecretVersions(&secret.ListSecretVersionsRequest{SecretID: id, Status: []secret.SecretVersionStatus{"enabled", "disabled"}}, scw.WithAllPages())
	if err != nil || len(r.Versions) == 0 {
		return err
	}
	n := rapid.IntRange(0, min(2, len(r.Versions)-1)).Draw(rt, "of the newest")
	return do(id, fmt.Sprint(r.Versions[n].Revision))
}

// killed lets a run die at one of its first calls.
func (w *postgresWorld) killed(rt *rapid.T, do func(context.Context, scaleway.Decorator) error) error {
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	kill, _ := killAt(int64(rapid.IntRange(1, 9).Draw(rt, "at call")), rapid.Bool().Draw(rt, "after it"), cancel)
	_ = do(ctx, kill) // how it ends is nobody's business: the next run has to cope
	w.served.drain()
	return nil
}

// stands says whether there is something to meddle with.
func (w *postgresWorld) stands() bool {
	w.Helper()
	inv, err := w.cloud().Inventory(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	there := 0
	for _, it := range inv.Items {
		if (it.Step == "postgres/staging-postgres" || it.Step == "postgres-secret/app") && it.Status != "deleting" {
			there++
		}
	}
	return there == 2
}

// made brings the estate up after whatever happened: what somebody wrote into the
// secret is replaced, as the plan advises, and what a killed teardown still takes
// down is waited for.
func (w *postgresWorld) made() (err error) {
	for range 4 {
		switch err = w.up(w.Context(), w.cloud()); {
		case err == nil:
			return nil
		case outcome.CodeOf(err) == outcome.Refused && strings.Contains(err.Error(), "somebody has written"):
			w.rotate("app", w.estate.Services.Postgres.Users[1].PasswordVersion+1)
		case outcome.CodeOf(err) == outcome.Failed:
			w.settled()
		default:
			return err
		}
	}
	return err
}

// Whatever happened before, in whatever order: after up the newest version that is
// enabled logs in where the database is, and the plan is empty.
func TestAnyHistoryOfAPasswordEndsInOneThatLogsIn(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	fewChecks(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := newPostgresWorld(t, postgresEstate())
		defer w.region.Close()
		if err := w.made(); err != nil {
			rt.Fatal(err)
		}
		for n := range rapid.IntRange(2, 9).Draw(rt, "steps") {
			what := rapid.SampledFrom(append(sortedKeys(meddling), "up", "up", "up")).Draw(rt, fmt.Sprint("step ", n))
			if what != "up" {
				if !strings.HasSuffix(what, "killed") && !w.stands() {
					continue
				}
				if err := meddling[what](rt, w); err != nil {
					rt.Fatalf("%s: %v", what, err)
				}
				continue
			}
			if err := w.made(); err != nil {
				rt.Fatal(err)
			}
			if why := w.wrong(); why != "" {
				rt.Fatal(why)
			}
		}
		if err := w.made(); err != nil {
			rt.Fatal(err)
		}
		if why := w.wrong(); why != "" {
			rt.Fatal(why)
		}
	})
}
