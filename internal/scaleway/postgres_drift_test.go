package scaleway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/sim/api"
	"bastide/internal/sim/fault"
	"bastide/internal/sim/hardware"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
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
	t.Parallel()
	for name, rule := range once {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPostgresWorld(t, postgresEstate())
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
			w.rotate("app", 2)
			w.attempt = 150e6
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
				"PUT /rdb/v1/regions/fr-par/instances/" + id + "/privileges", "PATCH /secret-manager/"} {
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

// An instance in a state from which nothing good comes is said to be, and one
// whose volume is full is cured by a larger one.
func TestPostgresInTrouble(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	status := func(s string) {
		t.Helper()
		w.trouble("database-status", map[string]any{"status": s})
	}
	for s, words := range map[string]string{"error": "in error", "locked": "locked it", "disk_full": "services.postgres.volume.size"} {
		status(s)
		w.wantRefused("postgres/staging-postgres", words)
	}
	status("disk_full")
	w.estate.Services.Postgres.Volume.Size = 20e9
	if a := w.action("postgres/staging-postgres"); a.Op != plan.Update {
		t.Fatalf("a full volume that is to grow: %s, %s", a.Op, a.Reason)
	}
	w.mustUp()
	w.wantConverged()
}

// trouble makes something happen to the instance that no call asked for.
func (w *postgresWorld) trouble(event string, params map[string]any) {
	w.Helper()
	if err := w.region.LoadFaults(fault.Script{Events: []fault.EventRule{{NodeEvent: hardware.NodeEvent{Node: "staging-postgres", Event: event, Params: params}}}}); err != nil {
		w.Fatal(err)
	}
	w.region.Faults().Clear()
}

// A public endpoint that appears by itself, on a new instance or later, is closed
// in the same run or by the next one; it is never kept.
func TestPublicEndpointAppears(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.trouble("database-public-endpoint", nil) // with the instance's first breath
	w.mustUp()
	w.wantConverged()
	if i := w.instance(); len(i.Endpoints) != 1 || i.Endpoints[0].PrivateNetwork == nil {
		t.Fatalf("the new instance has the endpoints %+v", i.Endpoints)
	}
	w.trouble("database-public-endpoint", nil)
	if got := w.change("postgres/staging-postgres", "public endpoints"); got != "1 -> 0" {
		t.Errorf("the plan says %q", got)
	}
	w.mustUp()
	w.wantConverged()
	if i := w.instance(); len(i.Endpoints) != 1 || i.Endpoints[0].PrivateNetwork == nil {
		t.Errorf("the instance has the endpoints %+v", i.Endpoints)
	}
}

// The endpoint gets another address: the secret says so afterwards, with the same
// password.
func TestSecretFollowsTheAddress(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	before := w.application("app")
	if err := w.databases().DeleteEndpoint(&rdb.DeleteEndpointRequest{EndpointID: w.instance().Endpoints[0].ID}); err != nil {
		t.Fatal(err)
	}
	w.instance()
	network := w.find("private-network/staging").CloudID
	if _, err := w.databases().CreateEndpoint(&rdb.CreateEndpointRequest{InstanceID: w.instanceID(), EndpointSpec: &rdb.EndpointSpec{PrivateNetwork: &rdb.EndpointSpecPrivateNetwork{
		PrivateNetworkID: network, IpamConfig: &rdb.EndpointSpecPrivateNetworkIpamConfig{}}}}); err != nil {
		t.Fatal(err)
	}
	w.mustUp()
	w.wantConverged()
	w.wantHalvesEqual()
	after := w.application("app")
	if after.Password != before.Password {
		t.Error("the password changed with the address")
	}
	t.Logf("%s, then %s", before.Host, after.Host)
}

// Scaleway says in PostgreSQL's words that it is busy with another change: that is
// waited out, and no two changes of bastide's own ever meet.
func TestTupleConcurrentlyUpdated(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	rule := fault.HTTPRule{Method: "PUT", Path: "/rdb/**/privileges", Status: 409, Body: map[string]any{"message": "Tuple concurrently updated"}, When: fault.When{Count: 2}, Per: "request"}
	if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{rule}}); err != nil {
		t.Fatal(err)
	}
	mark := len(w.region.Requests(0))
	w.mustUp()
	w.region.Faults().Clear()
	w.wantConverged()
	refused := 0
	for _, r := range w.region.Requests(mark) {
		if r.Method == "PUT" && strings.HasSuffix(r.Path, "/privileges") && r.Status == 409 {
			refused++
		}
	}
	if refused != 6 {
		t.Errorf("%d changes of privileges were refused, want 2 for each of 3", refused)
	}
	p := w.estate.Services.Postgres
	for n := range 4 {
		u := p.Users[1]
		u.Name = fmt.Sprintf("user%d", n)
		p.Users = append(p.Users, u)
	}
	mark = len(w.region.Requests(0))
	w.mustUp()
	w.wantConverged()
	for _, r := range w.region.Requests(mark) {
		if r.Status == 409 {
			t.Errorf("%s %s met another change", r.Method, r.Path)
		}
	}
}

// Without the rights for databases or for secrets a file that uses them cannot be
// judged; one that does not is none the worse.
func TestPostgresForbidden(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	for _, deny := range []string{"rdb", "secret-manager"} {
		if err := w.region.Seed(api.Seed{Permissions: &api.Credential{Deny: []string{deny}}}); err != nil {
			t.Fatal(err)
		}
		_, err := w.cloud().Inventory(t.Context())
		wantError(t, err, outcome.Unknown, map[string]string{"rdb": "RelationalDatabasesFullAccess", "secret-manager": "SecretManagerFullAccess"}[deny])
		used := w.estate.Services.Postgres
		w.estate.Services.Postgres = nil
		inv, err := w.cloud().Inventory(t.Context())
		if err != nil || len(inv.Unread) != 1 || inv.Complete() == nil {
			t.Errorf("without %s in a file without it: %v, unread %v", deny, err, inv)
		}
		w.estate.Services.Postgres = used
	}
}

// Only the values of the passwords are out of reach: a plan can be made and says
// what is so, and a run that needs no value does its work.
func TestPasswordsThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{{Path: "/secret-manager/**/access", Method: "GET", Status: 403,
		Body: map[string]any{"type": "permissions_denied", "message": "m", "details": []map[string]any{{"action": "access", "resource": "secret"}}}}}}); err != nil {
		t.Fatal(err)
	}
	w.wantConverged()
	w.rotate("app", 2)
	w.mustUp()
	w.wantConverged()
	if err := w.databases().DeleteUser(&rdb.DeleteUserRequest{InstanceID: w.instanceID(), Name: "app"}); err == nil {
		t.Fatal("a user with rights was deleted")
	}
	must(w.databases().UpdateInstance(&rdb.UpdateInstanceRequest{InstanceID: w.instanceID(), Tags: tagsWithout(w.instance().Tags, "bastide:password:app")}))(t)
	err := w.up(context.Background(), w.cloud())
	wantError(t, err, outcome.Failed, "access on secret")
}

// A database somebody made in the estate's network without the mark is in the
// way, and a network that is not the estate's counts as outside.
func TestForeignNetworkIsOutside(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	other := must(vpc.NewAPI(w.somebody()).CreatePrivateNetwork(&vpc.CreatePrivateNetworkRequest{Name: "theirs"}))(t)
	if err := w.databases().DeleteEndpoint(&rdb.DeleteEndpointRequest{EndpointID: w.instance().Endpoints[0].ID}); err != nil {
		t.Fatal(err)
	}
	w.instance()
	must(w.databases().CreateEndpoint(&rdb.CreateEndpointRequest{InstanceID: w.instanceID(), EndpointSpec: &rdb.EndpointSpec{PrivateNetwork: &rdb.EndpointSpecPrivateNetwork{
		PrivateNetworkID: other.ID, IpamConfig: &rdb.EndpointSpecPrivateNetworkIpamConfig{}}}}))(t)
	w.instance()
	if got := w.change("postgres/staging-postgres", "public endpoints") + ", " + w.change("postgres/staging-postgres", "network"); got != "1 -> 0,  -> private-network/staging" {
		t.Errorf("the plan says %q", got)
	}
	w.mustUp()
	w.wantConverged()
	w.wantHalvesEqual()
}

// The database takes an address of IPAM's choice. No node's is booked over it:
// on a new estate all of the file's are booked first, later ones go around it.
func TestFieldReport40TheDatabaseTakesAnAddress(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	taken := w.application("app").Host
	w.estate.Pools = []estate.Pool{{Name: "system", Count: 6, Type: "PLAY2-MICRO", Disk: estate.Disk{Size: 20e9, IOPS: 5000}}}
	w.mustUp()
	inv := w.wantConverged()
	booked := 0
	for _, it := range inv.Items {
		if spec, ok := it.Spec.(blueprint.Address); ok {
			booked++
			if spec.Address.String() == taken {
				t.Errorf("%s has the database's address %s", it.Step, taken)
			}
		}
	}
	if booked != 9 {
		t.Errorf("%d addresses are booked", booked)
	}
	w.wantHalvesEqual()
}
