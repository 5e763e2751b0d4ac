package scaleway_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/sim/fault"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
)

// A database: made, found as wanted, left alone, taken down.
func TestPostgres(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	w.wantConverged()
	w.wantHalvesEqual()
	if got := w.application("app").Dbname + " " + w.application("owner").Dbname; got != "app app" {
		t.Errorf("the secrets name the databases %s", got)
	}
	mark := len(w.region.Requests(0))
	w.mustUp()
	if n, which := w.writes(mark); n != 0 {
		t.Errorf("a second run wrote %d times: %s", n, strings.Join(which, "; "))
	}
	t.Logf("an inventory takes %d calls", len(w.region.Requests(mark)))
	if n := len(w.region.Requests(mark)); n > 40 {
		t.Errorf("an inventory took %d calls", n)
	}
	before := w.application("app")
	if err := w.destroy(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	if i := w.instance(); i.Status != "ready" || w.application("app") != before {
		t.Errorf("a destroy that names no data leaves the instance %s and another password", i.Status)
	}
	w.mustUp()
	w.wantConverged()
	w.wantHalvesEqual()
	if w.application("app") != before {
		t.Error("the password changed when the estate was raised again")
	}
	if err := w.destroy(t.Context(), w.cloud(), blueprint.DataPostgres); err != nil {
		t.Fatal(err)
	}
	w.wantNothingLeft()
	w.mustUp() // the secrets are scheduled for deletion and keep their names
	w.wantConverged()
	w.wantHalvesEqual()
}

// Field report 49: versions of a secret cannot be changed, and blind writes pile
// up. Three runs make one version, a new password one more, and no password is
// in the log, the plan or anything that is said.
func TestFieldReport49SecretVersionsDoNotPileUp(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	for range 3 {
		w.mustUp()
	}
	for _, user := range []string{"owner", "app"} {
		if got := w.versions(user); !slices.Equal(got, []string{"enabled"}) {
			t.Errorf("after three runs the secret of %s has %v", user, got)
		}
	}
	first := w.application("app").Password
	w.rotate("app", 2)
	if got := w.change("postgres-user/app", "password in the database"); got != "1 -> 2" {
		t.Errorf("the plan says %q", got)
	}
	for range 3 {
		w.mustUp()
	}
	w.wantHalvesEqual()
	w.wantConverged()
	if got := w.versions("app"); !slices.Equal(got, []string{"disabled", "enabled"}) {
		t.Errorf("after a new password the secret of app has %v", got)
	}
	by := []byte(`{"engine":"postgres","username":"app","password":"By-hand-1","host":"h","port":"5432","dbname":"app"}`)
	must(w.secretAPI().CreateSecretVersion(&secret.CreateSecretVersionRequest{SecretID: w.secretID("app"), Data: by}))(t)
	for n := 3; n <= 5; n++ {
		w.rotate("app", n)
		w.mustUp()
	}
	mark := len(w.region.Requests(0))
	w.mustUp()
	if n, which := w.writes(mark); n != 0 {
		t.Errorf("a run without a change wrote %d times: %s", n, strings.Join(which, "; "))
	}
	w.wantHalvesEqual()
	w.wantConverged()
	const leaving = "scheduled_for_deletion"
	// The third is somebody else's and none of bastide's business.
	if got := w.versions("app"); !slices.Equal(got, []string{leaving, leaving, "enabled", leaving, "disabled", "enabled"}) {
		t.Errorf("after four new passwords the secret of app has %v", got)
	}
	if got := w.versions("owner"); !slices.Equal(got, []string{"enabled"}) {
		t.Errorf("the other user's secret has %v", got)
	}
	if w.application("app").Password == first {
		t.Error("the password is the old one")
	}
	w.wantNoPassword()
}

// wantNoPassword searches the region's log and state, and the plan, for every
// password that was ever used.
func (w *postgresWorld) wantNoPassword() {
	w.Helper()
	_, p, live, err := w.plan(w.Context(), w.cloud())
	if err != nil {
		w.Fatal(err)
	}
	places := map[string]any{"log": w.region.Requests(0), "state": w.region.State(), "plan": p, "live": live}
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	if len(w.engine.all) < 2 {
		w.Fatalf("only %d passwords to search for", len(w.engine.all))
	}
	for where, thing := range places {
		text := asText(w, thing)
		for _, password := range w.engine.all {
			if strings.Contains(text, password) {
				w.Errorf("a password is in the %s", where)
			}
		}
	}
}

// A rotation that dies at any of its calls, before or after the call takes
// effect, leaves a password that works in at least one enabled version or a plan
// that says so, and the next run ends it without asking: one new version, and
// both halves the same.
func TestRotationKilledAtEveryCall(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	for _, after := range []bool{false, true} {
		kills := 0
		for n := int64(1); ; n++ {
			w := newPostgresWorld(t, postgresEstate())
			w.mustUp()
			w.rotate("app", 2)
			w.mustUp()
			w.rotate("app", 3)
			ctx, cancel := context.WithCancel(t.Context())
			kill, dead := killAt(n, after, cancel)
			err := w.up(ctx, w.cloud(kill))
			cancel()
			if !dead.Load() {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			kills++
			w.served.drain()
			before := len(w.engine.all)
			done := len(w.action("postgres-user/app").Changes) == 0
			if done && w.versions("app")[1] != "enabled" && !w.same("app") {
				t.Errorf("killed at %d (after: %v): the plan is empty and the halves differ", n, after)
			}
			t.Logf("killed at %d (after: %v): plan %v, versions %v, %d passwords sent", n, after, w.action("postgres-user/app").Changes, w.versions("app"), before)
			w.mustUp()
			w.wantConverged()
			w.wantHalvesEqual()
			// What dies while it deletes the oldest is done; the next rotation deletes it.
			if got := w.versions("app"); !slices.Equal(got, []string{"scheduled_for_deletion", "disabled", "enabled"}) &&
				!(done && slices.Equal(got, []string{"disabled", "disabled", "enabled"})) {
				t.Errorf("killed at %d (after: %v): the secret has %v", n, after, got)
			}
			if t.Failed() {
				t.FailNow()
			}
			w.region.Close()
		}
		t.Logf("killed %d times (after: %v)", kills, after)
		if kills < 4 {
			t.Errorf("only %d calls were killed", kills)
		}
	}
}

// same says whether what an application reads is what the database has.
func (w *postgresWorld) same(user string) bool {
	w.Helper()
	said := w.application(user).Password
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	return said == w.engine.has[user]
}

// A password is not gone back to, neither from one that is in use nor from one
// that a killed run has begun.
func TestPasswordVersionIsNotLowered(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.rotate("app", 3)
	w.mustUp()
	w.rotate("app", 2)
	w.wantRefused("postgres-user/app", "passwordVersion is 2 in the file", "write 3 or more")
	wantError(t, w.up(t.Context(), w.cloud()), outcome.Refused, "passwordVersion")

	w.rotate("app", 4)
	ctx, cancel := context.WithCancel(t.Context())
	kill, _ := killAt(3, true, cancel) // the version is written and disabled, the database has the password
	if err := w.up(ctx, w.cloud(kill)); err == nil {
		t.Fatal("the run was not killed")
	}
	cancel()
	w.served.drain()
	w.rotate("app", 3)
	w.wantRefused("postgres-user/app", "4 was begun already")
	w.rotate("app", 4)
	w.mustUp()
	w.wantHalvesEqual()
	w.wantConverged()
}

// Somebody writes into a secret of bastide's: that is said and not written over.
// Raising passwordVersion replaces it.
func TestSecretChangedByHand(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	data := []byte(`{"engine":"postgres","username":"app","password":"By-hand-1","host":"h","port":"5432","dbname":"app"}`)
	must(w.secretAPI().CreateSecretVersion(&secret.CreateSecretVersionRequest{SecretID: w.secretID("app"), Data: data}))(t)
	w.wantRefused("postgres-user/app", "somebody has written version 2", "passwordVersion")
	w.rotate("app", 2)
	w.mustUp()
	w.wantConverged()
	w.wantHalvesEqual()

	must(w.secretAPI().DisableSecretVersion(&secret.DisableSecretVersionRequest{SecretID: w.secretID("app"), Revision: "latest"}))(t)
	if got := w.change("postgres-user/app", "password in the secret"); got != "2, disabled -> 2" {
		t.Errorf("the plan says %q", got)
	}
	w.mustUp()
	w.wantConverged()
	w.wantHalvesEqual()
}

// A secret that was deleted, whole or its version, is made good: its name is
// taken for a week, so it is brought back, and what cannot be read is made anew.
func TestSecretDeletedByHand(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	first := w.application("app").Password
	if err := w.secretAPI().DeleteSecret(&secret.DeleteSecretRequest{SecretID: w.secretID("app")}); err != nil {
		t.Fatal(err)
	}
	if a := w.action("postgres-secret/app"); a.Op != plan.Create {
		t.Errorf("the plan says %s %+v", a.Op, a.Changes)
	}
	w.mustUp()
	w.wantConverged()
	w.wantHalvesEqual()
	if w.application("app").Password != first {
		t.Error("the secret was brought back with another password")
	}
	if err := w.secretAPI().DeleteSecretVersion(&secret.DeleteSecretVersionRequest{SecretID: w.secretID("app"), Revision: "latest"}); err != nil {
		t.Fatal(err)
	}
	if got := w.change("postgres-user/app", "password in the secret"); got != "none -> 1" {
		t.Errorf("the plan says %q", got)
	}
	w.mustUp()
	w.wantConverged()
	w.wantHalvesEqual()
	if w.application("app").Password == first {
		t.Error("a password that was deleted came back")
	}
}

// A database that was being deleted, with its passwords, when the run died: up
// makes whatever is missing, from secrets on their way out too, and both halves
// are the same.
func TestPostgresUpAfterKilledDeletion(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	kills := 0
	for n := int64(1); ; n++ {
		w := newPostgresWorld(t, postgresEstate())
		w.mustUp()
		ctx, cancel := context.WithCancel(t.Context())
		kill, dead := killAt(n, true, cancel)
		_ = w.raze(ctx, w.cloud(kill))
		cancel()
		if !dead.Load() {
			break
		}
		kills++
		w.served.drain()
		// A deletion that is still under way may take something from under the
		// first run; it then says so, and the next one continues.
		if err := w.up(t.Context(), w.cloud()); err != nil {
			wantError(t, err, outcome.Failed, "run the command again")
			w.settled()
			w.mustUp()
		}
		w.wantConverged()
		if w.wantHalvesEqual(); t.Failed() {
			t.Fatalf("killed at %d", n)
		}
		w.region.Close()
	}
	t.Logf("%d kills survived", kills)
}

// Readings that lag two seconds behind delay a rotation and spoil nothing.
func TestRotationWithStaleReads(t *testing.T) {
	t.Parallel()
	w := newPostgresWorldAt(t, postgresEstate(), 100)
	if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{{Method: "GET", Path: "/**", Stale: fault.Duration(2e9)}}}); err != nil {
		t.Fatal(err)
	}
	w.mustUp()
	w.settled()
	w.rotate("app", 2)
	w.rotate("owner", 5)
	w.mustUp()
	w.settled()
	w.region.Faults().Clear()
	w.wantConverged()
	w.wantHalvesEqual()
	for _, user := range []string{"owner", "app"} {
		if got := w.versions(user); !slices.Equal(got, []string{"disabled", "enabled"}) {
			t.Errorf("the secret of %s has %v", user, got)
		}
	}
}

// One user, who is no administrator: the instance's first user is made one and
// put back in the ranks.
func TestPostgresWithoutAdministrator(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.estate.Services.Postgres.Users = []estate.DatabaseUser{{Name: "app", PasswordVersion: 1}}
	w.mustUp()
	w.wantConverged()
	w.wantHalvesEqual()
	users := must(w.databases().ListUsers(&rdb.ListUsersRequest{InstanceID: w.instanceID()}))(t).Users
	if len(users) != 1 || users[0].IsAdmin {
		t.Errorf("the users are %+v", users)
	}
}
