package scaleway_test

import (
	"slices"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// postgresDrift are changes by hand, and what the plan has to say of each. All of
// them but the last are made right by the next run.
var postgresDrift = []struct {
	step, attribute, says string
	change                func(w *postgresWorld, id string) error
}{
	{"postgres/staging-postgres", "public endpoints", "1 -> 0", func(w *postgresWorld, id string) error {
		_, err := w.databases().CreateEndpoint(&rdb.CreateEndpointRequest{InstanceID: id, EndpointSpec: &rdb.EndpointSpec{LoadBalancer: &rdb.EndpointSpecLoadBalancer{}}})
		return err
	}},
	{"postgres/staging-postgres", "name", "renamed -> staging-postgres", func(w *postgresWorld, id string) error {
		_, err := w.databases().UpdateInstance(&rdb.UpdateInstanceRequest{InstanceID: id, Name: scw.StringPtr("renamed")})
		return err
	}},
	{"postgres/staging-postgres", "network", " -> private-network/staging", func(w *postgresWorld, id string) error {
		return w.databases().DeleteEndpoint(&rdb.DeleteEndpointRequest{EndpointID: w.instance().Endpoints[0].ID})
	}},
	{"postgres/staging-postgres", "type", "DB-DEV-M -> DB-DEV-S", func(w *postgresWorld, id string) error {
		_, err := w.databases().UpgradeInstance(&rdb.UpgradeInstanceRequest{InstanceID: id, NodeType: scw.StringPtr("db-dev-m")})
		return err
	}},
	{"postgres/staging-postgres", "iops", "15000 -> 5000", func(w *postgresWorld, id string) error {
		kind := rdb.VolumeTypeSbs15k
		_, err := w.databases().UpgradeInstance(&rdb.UpgradeInstanceRequest{InstanceID: id, VolumeType: &kind})
		return err
	}},
	{"postgres/staging-postgres", "backup", "every 48 h, kept 3 days -> every 12 h, kept 14 days", func(w *postgresWorld, id string) error {
		_, err := w.databases().UpdateInstance(&rdb.UpdateInstanceRequest{InstanceID: id, BackupScheduleFrequency: scw.Uint32Ptr(48), BackupScheduleRetention: scw.Uint32Ptr(3)})
		return err
	}},
	{"postgres/staging-postgres", "backup", "off -> every 12 h, kept 14 days", func(w *postgresWorld, id string) error {
		_, err := w.databases().UpdateInstance(&rdb.UpdateInstanceRequest{InstanceID: id, IsBackupScheduleDisabled: scw.BoolPtr(true)})
		return err
	}},
	{"postgres/staging-postgres", "settings", "max_connections=90 -> max_connections=200", func(w *postgresWorld, id string) error {
		_, err := w.databases().AddInstanceSettings(&rdb.AddInstanceSettingsRequest{InstanceID: id, Settings: []*rdb.InstanceSetting{{Name: "max_connections", Value: "90"}}})
		return err
	}},
	{"postgres-user/app", "admin", "true -> false", func(w *postgresWorld, id string) error {
		_, err := w.databases().UpdateUser(&rdb.UpdateUserRequest{InstanceID: id, Name: "app", IsAdmin: scw.BoolPtr(true)})
		return err
	}},
	{"postgres-user/app", "privileges", "app=readwrite reports=all -> app=readwrite", func(w *postgresWorld, id string) error {
		_, err := w.databases().SetPrivilege(&rdb.SetPrivilegeRequest{InstanceID: id, DatabaseName: "reports", UserName: "app", Permission: rdb.PermissionAll})
		return err
	}},
	{"postgres-user/app", "privileges", "app=readonly -> app=readwrite", func(w *postgresWorld, id string) error {
		_, err := w.databases().SetPrivilege(&rdb.SetPrivilegeRequest{InstanceID: id, DatabaseName: "app", UserName: "app", Permission: rdb.PermissionReadonly})
		return err
	}},
	{"postgres-user/app", "password in the database", "none -> 1", func(w *postgresWorld, id string) error {
		_, err := w.databases().UpdateInstance(&rdb.UpdateInstanceRequest{InstanceID: id, Tags: tagsWithout(w.instance().Tags, "bastide:password:app")})
		return err
	}},
	{"postgres-secret/app", "name", "other -> app", func(w *postgresWorld, id string) error {
		_, err := w.secretAPI().UpdateSecret(&secret.UpdateSecretRequest{SecretID: w.secretID("app"), Name: scw.StringPtr("other")})
		return err
	}},
	{"postgres-secret/app", "description", "mine -> made by bastide for the estate staging", func(w *postgresWorld, id string) error {
		_, err := w.secretAPI().UpdateSecret(&secret.UpdateSecretRequest{SecretID: w.secretID("app"), Description: scw.StringPtr("mine")})
		return err
	}},
	{"postgres-secret/app", "protected", "true -> false", func(w *postgresWorld, id string) error {
		_, err := w.secretAPI().ProtectSecret(&secret.ProtectSecretRequest{SecretID: w.secretID("app")})
		return err
	}},
	{"postgres-secret/app", "path", "/elsewhere -> /bastide/staging/postgres", func(w *postgresWorld, id string) error {
		_, err := w.secretAPI().UpdateSecret(&secret.UpdateSecretRequest{SecretID: w.secretID("app"), Path: scw.StringPtr("/elsewhere")})
		return err
	}},
}

func tagsWithout(tags []string, prefix string) *[]string {
	out := slices.DeleteFunc(slices.Clone(tags), func(t string) bool { return strings.HasPrefix(t, prefix) })
	return &out
}

// Everything about a database that bastide sets and somebody changes is in the
// plan with both values, and is set back.
func TestPostgresDrift(t *testing.T) {
	t.Parallel()
	for _, d := range postgresDrift {
		t.Run(d.attribute+", "+d.says, func(t *testing.T) {
			t.Parallel()
			w := newPostgresWorld(t, postgresEstate())
			w.mustUp()
			if err := d.change(w, w.instanceID()); err != nil {
				t.Fatal(err)
			}
			w.instance()
			if got := w.change(d.step, d.attribute); got != d.says {
				t.Errorf("the plan says %q, want %q", got, d.says)
			}
			w.mustUp()
			w.wantConverged()
			w.wantHalvesEqual()
		})
	}
}

// Every change that sets a database right fails once, in every way, and is made
// all the same.
func TestEveryPostgresCorrectionFailsOnce(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	for name, rule := range once {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPostgresWorld(t, postgresEstate())
			w.mustUp()
			w.rotate("app", 2)
			w.mustUp()
			id := w.instanceID()
			for _, d := range postgresDrift {
				if err := d.change(w, id); err != nil {
					t.Fatalf("%s: %v", d.attribute, err)
				}
				w.instance()
			}
			p := w.estate.Services.Postgres
			p.HighAvailability, p.Volume.Size = true, 20e9
			w.rotate("app", 3)
			w.afflict(rule)
			mark := len(w.region.Requests(0))
			w.mustUp()
			w.attempt = 5e9
			w.region.Faults().Clear()
			w.wantConverged()
			w.wantHalvesEqual()
			_, calls := w.writes(mark)
			for _, want := range []string{"DELETE /rdb/v1/regions/fr-par/endpoints/", "POST /rdb/v1/regions/fr-par/instances/" + id + "/endpoints", "POST /rdb/v1/regions/fr-par/instances/" + id + "/upgrade",
				"POST /rdb/v1/regions/fr-par/instances/" + id + "/settings", "PATCH /rdb/v1/regions/fr-par/instances/" + id + " ", "PATCH /rdb/v1/regions/fr-par/instances/" + id + "/users/app",
				"PUT /rdb/v1/regions/fr-par/instances/" + id + "/privileges", "PATCH /secret-manager/", "DELETE /secret-manager/"} {
				if !slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, want) }) {
					t.Errorf("nothing was corrected with %s: %s", want, strings.Join(calls, "; "))
				}
			}
		})
	}
}

// Changes of the file: everything that can be changed is, one upgrade at a time,
// and what cannot is refused with the reason.
func TestPostgresChanges(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	p := w.estate.Services.Postgres
	p.Type, p.HighAvailability, p.Volume.Size, p.Volume.IOPS, p.Backup.Disabled = "DB-GP-XS", true, 25e9, 15000, true
	p.Settings = map[string]string{"max_connections": "150", "work_mem": "8"}
	p.Databases = append(p.Databases, "audit")
	p.Users[1].Privileges["audit"] = "readonly"
	p.Users = append(p.Users, p.Users[1])
	p.Users[2].Name = "auditor"
	w.mustUp()
	w.wantConverged()
	w.wantHalvesEqual()
	i := w.instance()
	if i.NodeType != "db-gp-xs" || !i.IsHaCluster || i.Volume.Size != 25e9 || i.Volume.Type != rdb.VolumeTypeSbs15k || !i.BackupSchedule.Disabled {
		t.Errorf("the instance is %+v with %+v", i, i.Volume)
	}

	p.HighAvailability = false
	w.wantRefused("postgres/staging-postgres", "standby")
	p.HighAvailability, p.Volume.Size = true, 20e9
	w.wantRefused("postgres/staging-postgres", "can only grow")
	p.Volume.Size, p.Engine = 25e9, "PostgreSQL-17"
	w.wantRefused("postgres/staging-postgres", "engine is PostgreSQL-16, wanted PostgreSQL-17")

	p.Engine = "PostgreSQL-16"
	p.Users = p.Users[:2]
	_, made, _, err := w.plan(t.Context(), w.cloud())
	if err != nil {
		t.Fatal(err)
	}
	var strays []string
	for _, s := range made.Strays {
		strays = append(strays, s.Step)
	}
	if !slices.Equal(strays, []string{"postgres-secret/auditor", "postgres-user/auditor"}) {
		t.Errorf("strays: %v", strays)
	}
}

// Somebody protects a password: a teardown that names the database is refused
// before anything is deleted, one that does not name it is not, and up takes the
// protection away.
func TestProtectedPasswordStopsTeardownBeforehand(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	must(w.secretAPI().ProtectSecret(&secret.ProtectSecretRequest{SecretID: w.secretID("app")}))(t)
	mark := len(w.region.Requests(0))
	wantError(t, w.destroy(t.Context(), w.cloud(), blueprint.DataPostgres), outcome.Refused, "secret /bastide/staging/postgres/app is protected", "bastide up", "leave postgres out")
	if n, which := w.writes(mark); n > 0 {
		t.Errorf("a refused teardown wrote %v", which)
	}
	if err := w.destroy(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	w.mustUp()
	w.wantConverged()
	w.wantHalvesEqual()
	if err := w.destroy(t.Context(), w.cloud(), blueprint.DataPostgres); err != nil {
		t.Fatal(err)
	}
	w.wantNothingLeft()
}
