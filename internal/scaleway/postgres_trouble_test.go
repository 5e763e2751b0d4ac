package scaleway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/scaleway"
	"bastide/internal/sim/api"
	"bastide/internal/sim/fault"
	"bastide/internal/sim/hardware"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
)

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

// An instance that is busy with somebody's change is waited for; what is on it
// and cannot be read meanwhile is not taken for absent. A run that died while the
// instance was being made goes on with it.
func TestPostgresThatIsBusy(t *testing.T) {
	t.Parallel()
	w := newPostgresWorldAt(t, postgresEstate(), 100)
	w.mustUp()
	must(w.databases().RestartInstance(&rdb.RestartInstanceRequest{InstanceID: w.instanceID()}))(t)
	if a := w.action("postgres/staging-postgres"); a.Op != plan.Wait {
		t.Errorf("a restarting instance: %s, %s", a.Op, a.Reason)
	}
	busy := fault.HTTPRule{Method: "GET", Path: "/rdb/**/users", Status: 409,
		Body: map[string]any{"type": "transient_state", "message": "m", "resource": "instance", "resource_id": "x", "current_state": "restarting"}}
	if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{busy}}); err != nil {
		t.Fatal(err)
	}
	if a := w.action("postgres-user/app"); a.Op != plan.Wait || !strings.Contains(a.Reason, "not to be read") {
		t.Errorf("a user that cannot be read: %s, %s", a.Op, a.Reason)
	}
	w.region.Faults().Clear()
	w.mustUp()
	w.wantConverged()

	early := newPostgresWorldAt(t, postgresEstate(), 100)
	ctx, cancel := context.WithCancel(t.Context())
	if err := early.up(ctx, early.cloud(afterCall("/instances", cancel))); err == nil {
		t.Fatal("the run was not stopped")
	}
	early.served.drain()
	if a := early.action("postgres/staging-postgres"); a.Op != plan.Update { // its backups are not as in the file yet
		t.Errorf("an instance that is being made: %s, %s", a.Op, a.Reason)
	}
	early.mustUp()
	early.wantConverged()
	early.wantHalvesEqual()
}

// afterCall ends a run with the answer to a POST.
func afterCall(path string, end context.CancelFunc) scaleway.Decorator {
	return func(next http.RoundTripper) http.RoundTripper {
		return transport(func(req *http.Request) (*http.Response, error) {
			res, err := next.RoundTrip(req)
			if req.Method == http.MethodPost && strings.HasPrefix(req.URL.Path, "/rdb/") && strings.HasSuffix(req.URL.Path, path) {
				end()
			}
			return res, err
		})
	}
}
