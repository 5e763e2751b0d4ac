package scaleway_test

import (
	"strings"
	"testing"

	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

func (w *postgresWorld) retag(user string, tags ...string) {
	w.Helper()
	id := w.at(user).ID
	must(w.secretAPI().UpdateSecret(&secret.UpdateSecretRequest{SecretID: id, Tags: &tags}))(w)
}

// at is the secret in the place of a user's password, whosever it is.
func (w *postgresWorld) at(user string) *secret.Secret {
	w.Helper()
	all := must(w.secretAPI().ListSecrets(&secret.ListSecretsRequest{Path: scw.StringPtr("/bastide/staging/postgres"), Name: &user, ProjectID: scw.StringPtr(project)}))(w).Secrets
	if len(all) != 1 {
		w.Fatalf("%d secrets in the place of the password of %s", len(all), user)
	}
	return all[0]
}

func (w *postgresWorld) squat(user string) *secret.Secret {
	w.Helper()
	return must(w.secretAPI().CreateSecret(&secret.CreateSecretRequest{Name: user, Path: scw.StringPtr("/bastide/staging/postgres"), Type: secret.SecretTypeDatabaseCredentials}))(w)
}

// A secret without the mark in the place of a password is refused in the plan, not
// by Scaleway in the middle of a run; handed over, it is the password's.
func TestSomethingElseInThePlaceOfAPassword(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	s := w.squat("app")
	const handOver = "bastide:estate=staging and bastide:step=postgres-secret/app"
	w.wantRefused("postgres-secret/app", "("+s.ID+") without the estate's mark", handOver)
	wantError(t, w.up(t.Context(), w.cloud()), outcome.Refused, handOver)
	if n, which := w.writes(1); n > 0 {
		t.Errorf("a refused run wrote %v", which)
	}
	w.retag("app", "bastide:estate=staging", "bastide:step=postgres-secret/app")
	w.mustUp()
	w.wantConverged()
	w.wantHalvesEqual()
	if got := w.secretID("app"); got != s.ID {
		t.Errorf("the secret is %s, want %s", got, s.ID)
	}

	for _, lost := range []struct {
		tags []string
		says string
	}{
		{[]string{"x"}, handOver},
		{[]string{"bastide:estate=staging"}, "has lost the tag bastide:step=postgres-secret/app"},
		{[]string{"bastide:estate=staging", "bastide:step=postgres-secret/other"}, "wanted bastide:step=postgres-secret/app"},
		{[]string{"bastide:estate=staging", "bastide:step=secret/other"}, "has the tag bastide:step=secret/other, wanted bastide:step=postgres-secret/app"},
	} {
		w.retag("app", lost.tags...)
		w.wantRefused("postgres-secret/app", lost.says)
	}
	w.retag("app", "bastide:estate=staging", "bastide:step=postgres-secret/app")
	w.wantConverged()

	// Moved away by hand, and another one is where it belongs.
	must(w.secretAPI().UpdateSecret(&secret.UpdateSecretRequest{SecretID: s.ID, Path: scw.StringPtr("/elsewhere")}))(t)
	w.squat("app")
	w.wantRefused("postgres-secret/app", handOver)
}

// A deleted secret of somebody else keeps its name for a week.
func TestADeletedSecretKeepsThePlaceOfAPassword(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	s := w.squat("app")
	if err := w.secretAPI().DeleteSecret(&secret.DeleteSecretRequest{SecretID: s.ID}); err != nil {
		t.Fatal(err)
	}
	w.wantRefused("postgres-secret/app", s.ID, "keeps the name for seven days", "services.postgres.users")
}

// A database without its mark is not given an empty one beside it.
func TestADatabaseThatLostItsMark(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	i := w.instance()
	for _, tags := range [][]string{{}, {"x"}, {"bastide:estate=other", "bastide:step=postgres/staging-postgres"}} {
		must(w.databases().UpdateInstance(&rdb.UpdateInstanceRequest{InstanceID: i.ID, Tags: &tags}))(t)
		w.wantRefused("postgres/staging-postgres", i.ID, "without the estate's mark", "bastide:estate=staging and bastide:step=postgres/staging-postgres", "rename it")
		wantError(t, w.up(t.Context(), w.cloud()), outcome.Refused, i.ID)
	}
	if got := strings.Join(w.examine()["taken-names"], "; "); !strings.Contains(got, i.ID) || strings.Contains(got, "remove") {
		t.Errorf("doctor says %q", got)
	}
	must(w.databases().UpdateInstance(&rdb.UpdateInstanceRequest{InstanceID: i.ID, Tags: &i.Tags}))(t)
	w.wantConverged()
	if all := must(w.databases().ListInstances(&rdb.ListInstancesRequest{}))(t).Instances; len(all) != 1 {
		t.Errorf("there are %d instances", len(all))
	}
	must(w.databases().CreateInstance(&rdb.CreateInstanceRequest{Name: "staging-postgres", Engine: "PostgreSQL-16", NodeType: "DB-DEV-S", UserName: "a", Password: "By-hand-1",
		VolumeType: rdb.VolumeTypeSbs5k, VolumeSize: 10e9}))(t)
	w.wantConverged() // the estate has its own, and this one is nobody's business
}

// A password that is lost is replaced by another one: whoever still has it is shut
// out, and the plan says so. One that is only disabled, or comes back with its
// secret, disrupts nobody.
func TestAPlanSaysThatALostPasswordDisrupts(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	id := w.secretID("app")
	said := func(why string, want plan.Disruption) {
		t.Helper()
		if a := w.action("postgres-user/app"); a.Op != plan.Update || a.Disruption != want {
			t.Errorf("%s: %s, disruption %s, want %s", why, a.Op, a.Disruption, want)
		}
		w.mustUp()
		w.wantConverged()
		w.wantHalvesEqual()
	}
	must(w.secretAPI().DisableSecretVersion(&secret.DisableSecretVersionRequest{SecretID: id, Revision: "latest"}))(t)
	said("disabled", plan.None)
	if err := w.secretAPI().DeleteSecret(&secret.DeleteSecretRequest{SecretID: id}); err != nil {
		t.Fatal(err)
	}
	said("the secret is deleted", plan.None)
	if err := w.secretAPI().DeleteSecretVersion(&secret.DeleteSecretVersionRequest{SecretID: id, Revision: "latest"}); err != nil {
		t.Fatal(err)
	}
	said("its only version is deleted", plan.Brief)
	w.rotate("app", 2)
	w.mustUp()
	if err := w.secretAPI().DeleteSecretVersion(&secret.DeleteSecretVersionRequest{SecretID: id, Revision: "latest"}); err != nil {
		t.Fatal(err)
	}
	said("its newest version is deleted", plan.Brief)
	if err := w.moveTo("172.16.0.200"); err != nil {
		t.Fatal(err)
	}
	said("the address changed", plan.None)
}
