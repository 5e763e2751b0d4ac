package api_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"
)

// What an instance that is on its way refuses, and what no instance takes.
func TestDatabaseRefusals(t *testing.T) {
	r := newRegion(t, func(o *api.Options) { o.Clock = clock.New(1) })
	in := func(edit body) body {
		b := body{"name": "db", "project_id": project, "engine": "PostgreSQL-17", "node_type": "db-dev-s", "user_name": "app", "password": goodPassword}
		for k, v := range edit {
			b[k] = v
		}
		return b
	}
	at := rdbs + "/" + str(r.do("POST", rdbs, in(nil)), "id")
	for _, c := range []struct {
		method, path string
		in           any
		status       int
		kind, word   string // type, and argument or resource
	}{
		{"POST", rdbs, in(body{"engine": "PostgreSQL-13"}), 400, "invalid_arguments", "engine"},
		{"POST", rdbs, in(body{"engine": "Oracle-23"}), 400, "invalid_arguments", "engine"},
		{"POST", rdbs, in(body{"node_type": "DB-HUGE"}), 400, "invalid_arguments", "node_type"},
		{"POST", rdbs, in(body{"password": "short1A-", "user_name": "pg_app"}), 400, "invalid_arguments", "name"},
		{"POST", rdbs, in(body{"password": "without-digit-A"}), 400, "invalid_arguments", "password"},
		{"POST", rdbs, in(body{"node_type": "DB-PLAY2-PICO"}), 400, "invalid_arguments", "volume_type"},
		{"POST", rdbs, in(body{"volume_type": "sbs_5k"}), 400, "invalid_arguments", "volume_size"},
		{"POST", rdbs, in(body{"init_endpoints": []body{{"private_network": body{"private_network_id": project}}}}), 404, "not_found", "private_network"},
		{"POST", rdbs, in(body{"init_endpoints": []body{{"load_balancer": body{}}, {"load_balancer": body{}}}}), 400, "invalid_arguments", "endpoint_spec"},
		{"POST", at + "/users", body{"name": "x", "password": goodPassword}, 409, "transient_state", "instance"},
		{"GET", at + "/users", nil, 409, "transient_state", "instance"},
		{"GET", at + "/certificate", nil, 409, "transient_state", "instance"},
		{"PUT", at + "/settings", body{"settings": []body{}}, 409, "transient_state", "instance"},
		{"POST", at + "/endpoints", body{"endpoint_spec": body{"load_balancer": body{}}}, 409, "transient_state", "instance"},
		{"DELETE", at, nil, 409, "transient_state", "instance"},
		{"GET", rdbs + "/" + project, nil, 404, "not_found", "instance"},
		{"GET", rdbEndpoints + project, nil, 404, "not_found", "endpoint"},
		{"GET", rdbs + "/nonsense", nil, 400, "invalid_arguments", "instance_id"},
	} {
		status, b := r.refused(c.method, c.path, c.in)
		word := b["resource"]
		if word == nil {
			word = dig(b, "details", 0, "argument_name")
		}
		if status != c.status || b["type"] != c.kind || word != c.word {
			t.Errorf("%s %s %v: %d %v", c.method, c.path, c.in, status, b)
		}
	}
}

// Settings are the engine's own, volumes never shrink, and an upgrade to the
// next major version is a second instance that takes the endpoints over.
func TestDatabaseChanges(t *testing.T) {
	r := newRegion(t)
	id := r.database("PostgreSQL-16", r.network())
	at := rdbs + "/" + id
	for path, in := range map[string]any{
		"/settings": body{"settings": []body{{"name": "no_such_thing", "value": "1"}}},
		"/upgrade":  body{"volume_size": 5e9},
	} {
		if status, b := r.refused("POST", at+path, in); status != http.StatusBadRequest {
			t.Errorf("%s %v: %d %v", path, in, status, b)
		}
	}
	r.do("POST", at+"/settings", body{"settings": []body{{"name": "work_mem", "value": "8"}}})
	if s := r.do("GET", at, nil)["status"]; s != "configuring" && s != "ready" {
		t.Errorf("status %v while settings change", s)
	}
	i := r.untilStatus(at, "ready")
	if n := len(dig(i, "settings").([]any)); n != 6 || str(i, "settings", 5, "value") != "8" {
		t.Errorf("settings %v", dig(i, "settings"))
	}
	r.do("POST", at+"/upgrade", body{"volume_size": 15e9})
	r.untilStatus(at, "ready")
	r.do("POST", at+"/users", body{"name": "app", "password": goodPassword})

	up := r.do("POST", at+"/upgrade", body{"major_upgrade_workflow": body{"upgradable_version_id": str(i, "upgradable_version", 0, "id"), "with_endpoints": true}})
	second := rdbs + "/" + str(up, "id")
	now := r.until(second, func(_ int, b body) bool { return b["status"] == "ready" && len(dig(b, "endpoints").([]any)) == 1 })
	if now["engine"] != "PostgreSQL-17" || str(now, "endpoints", 0, "id") != str(i, "endpoints", 0, "id") || dig(now, "volume", "size") != 15e9 {
		t.Errorf("the second instance is %v", now)
	}
	if first := r.do("GET", at, nil); len(dig(first, "endpoints").([]any)) != 0 || first["engine"] != "PostgreSQL-16" {
		t.Errorf("the first instance is %v", first)
	}
	if users := r.do("GET", second+"/users", nil); dig(users, "total_count") != 2.0 {
		t.Errorf("users %v", users)
	}
	r.until(ips+"?resource_type=rdb_instance&resource_id="+str(up, "id"), func(_ int, b body) bool { return dig(b, "total_count") == 1.0 })
}

// The official SDK reads the answers and tells the refusals apart.
func TestDatabaseThroughTheSDK(t *testing.T) {
	r := newRegion(t)
	client, err := scw.NewClient(scw.WithAPIURL(r.url), scw.WithAuth("SCWXXXXXXXXXXXXXXXXX", token), scw.WithDefaultProjectID(project),
		scw.WithDefaultRegion(scw.RegionFrPar))
	if err != nil {
		t.Fatal(err)
	}
	db, pn := rdb.NewAPI(client), r.network()
	i, err := db.CreateInstance(&rdb.CreateInstanceRequest{Name: "db", Engine: "PostgreSQL-17", NodeType: "DB-DEV-S", UserName: "admin", Password: goodPassword,
		VolumeType: rdb.VolumeTypeSbs15k, VolumeSize: 10 * scw.GB, InitEndpoints: []*rdb.EndpointSpec{{PrivateNetwork: &rdb.EndpointSpecPrivateNetwork{
			PrivateNetworkID: pn, IpamConfig: &rdb.EndpointSpecPrivateNetworkIpamConfig{}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if i.NodeType != "db-dev-s" || len(i.Endpoints) != 1 || i.Endpoints[0].PrivateNetwork.ProvisioningMode != rdb.EndpointPrivateNetworkDetailsProvisioningModeIpam {
		t.Errorf("%+v", i)
	}
	moment := time.Millisecond
	if i, err = db.WaitForInstance(&rdb.WaitForInstanceRequest{InstanceID: i.ID, RetryInterval: &moment}); err != nil || i.Status != rdb.InstanceStatusReady || i.Endpoint != nil {
		t.Fatalf("%+v, %v", i, err)
	}
	if _, err = db.AddInstanceSettings(&rdb.AddInstanceSettingsRequest{InstanceID: i.ID, Settings: []*rdb.InstanceSetting{{Name: "timezone", Value: "UTC"}}}); err != nil {
		t.Error(err)
	}
	var busy *scw.TransientStateError
	for err = errors.New("not tried yet"); err != nil; { // while it is configuring
		if _, err = db.CreateDatabase(&rdb.CreateDatabaseRequest{InstanceID: i.ID, Name: "app"}); err != nil && !errors.As(err, &busy) {
			t.Fatal(err)
		}
	}
	if _, err := db.WaitForInstance(&rdb.WaitForInstanceRequest{InstanceID: i.ID, RetryInterval: &moment}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.CreateUser(&rdb.CreateUserRequest{InstanceID: i.ID, Name: "app", Password: goodPassword}); err != nil {
		t.Error(err)
	}
	if _, err := db.SetPrivilege(&rdb.SetPrivilegeRequest{InstanceID: i.ID, DatabaseName: "app", UserName: "app", Permission: rdb.PermissionReadwrite}); err != nil {
		t.Error(err)
	}
	app := "app"
	rights, err := db.ListPrivileges(&rdb.ListPrivilegesRequest{InstanceID: i.ID, UserName: &app, DatabaseName: &app}, scw.WithAllPages())
	if err != nil || len(rights.Privileges) != 1 || rights.Privileges[0].Permission != rdb.PermissionReadwrite {
		t.Errorf("%+v, %v", rights, err)
	}
	types, err := db.ListNodeTypes(&rdb.ListNodeTypesRequest{}, scw.WithAllPages())
	if err != nil || int(types.TotalCount) != len(types.NodeTypes) || len(types.NodeTypes) != 22 {
		t.Errorf("%+v, %v", types, err)
	}
	engines, err := db.ListDatabaseEngines(&rdb.ListDatabaseEnginesRequest{}, scw.WithAllPages())
	if err != nil || len(engines.Engines) != 2 || engines.Engines[1].Versions[0].Name != "PostgreSQL-17" {
		t.Errorf("%+v, %v", engines, err)
	}
	var missing *scw.ResourceNotFoundError
	if _, err := db.GetInstance(&rdb.GetInstanceRequest{InstanceID: pn}); !errors.As(err, &missing) || missing.Resource != "instance" {
		t.Errorf("a missing instance: %v", err)
	}
	var wrong *scw.InvalidArgumentsError
	if _, err := db.UpdateUser(&rdb.UpdateUserRequest{InstanceID: i.ID, Name: "app", Password: scw.StringPtr("weak")}); !errors.As(err, &wrong) {
		t.Errorf("a weak password: %v", err)
	}
}
