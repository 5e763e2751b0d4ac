package api_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"bastide/internal/sim/fault"
	"bastide/internal/sim/hardware"
)

const (
	rdbs         = "/rdb/v1/regions/fr-par/instances"
	rdbEndpoints = "/rdb/v1/regions/fr-par/endpoints/"
	goodPassword = "Some-passw0rd"
)

// databases records what the region asks of its databases.
type databases struct{ *hall }

func (d databases) Apply(x hardware.Database) { d.with(func() { d.databases[x.ID] = x }) }
func (d databases) Remove(id string)          { d.with(func() { delete(d.databases, id) }) }

// database makes an instance, in private networks or else public, with an
// administrator "admin", and waits until it is ready.
func (r *region) database(engine string, networks ...string) string {
	r.Helper()
	in := body{"name": "db", "project_id": project, "engine": engine, "node_type": "DB-DEV-S", "user_name": "admin", "password": goodPassword,
		"volume_type": "sbs_5k", "volume_size": 10e9}
	if len(networks) > 0 {
		in["init_endpoints"] = []body{privateIn(networks[0])}
	}
	id := str(r.do("POST", rdbs, in), "id")
	r.untilStatus(rdbs+"/"+id, "ready")
	return id
}

func privateIn(network string) body {
	return body{"private_network": body{"private_network_id": network, "ipam_config": body{}}}
}

// A database in a private network is in that network only: the address is
// IPAM's, the network cannot go before it, and the engine gets what the API was
// told, without a password.
func TestDatabaseInAPrivateNetwork(t *testing.T) {
	r := newRegion(t)
	pn := r.network()
	id := r.database("PostgreSQL-17", pn)
	at := rdbs + "/" + id
	i := r.do("GET", at, nil)
	if n := len(dig(i, "endpoints").([]any)); n != 1 || dig(i, "endpoint") != nil {
		t.Fatalf("endpoints %v and %v: one was asked for, and none in public", dig(i, "endpoints"), dig(i, "endpoint"))
	}
	seen := r.until(ips+"?resource_type=rdb_instance&resource_id="+id, func(_ int, b body) bool { return dig(b, "total_count") == 1.0 })
	if a := str(seen, "ips", 0, "address"); a != str(i, "endpoints", 0, "private_network", "service_ip") || !strings.HasPrefix(a, "172.16.0.2/") {
		t.Errorf("IPAM has %s, the endpoint %v", a, dig(i, "endpoints", 0))
	}
	if status, b := r.refused("DELETE", networks+"/"+pn, nil); status != http.StatusPreconditionFailed || b["precondition"] != "resource_still_in_use" {
		t.Errorf("deleting the network under a database: %d %v", status, b)
	}

	r.do("POST", at+"/users", body{"name": "app", "password": goodPassword})
	r.do("POST", at+"/databases", body{"name": "app"})
	r.do("PUT", at+"/privileges", body{"database_name": "app", "user_name": "app", "permission": "readwrite"})
	r.hall.with(func() {
		d := r.hall.databases[id]
		if len(d.Roles) != 2 || !strings.HasPrefix(d.Roles[1].Verifier, "SCRAM-SHA-256$4096:") || !reflect.DeepEqual(d.Databases, []string{"rdb", "app"}) ||
			!reflect.DeepEqual(d.Grants[1:], []hardware.DatabaseGrant{{Database: "app", Role: "app", Permission: "readwrite"}}) ||
			len(d.Endpoints) != 1 || d.Endpoints[0].NetworkID != pn || d.Endpoints[0].Port != 5432 {
			t.Errorf("the engine got %+v", d)
		}
	})
	if status, b := r.refused("DELETE", at+"/users/app", nil); status != http.StatusPreconditionFailed {
		t.Errorf("deleting a user with privileges: %d %v", status, b)
	}

	r.do("DELETE", rdbEndpoints+str(i, "endpoints", 0, "id"), nil)
	r.untilStatus(at, "ready")
	r.do("DELETE", networks+"/"+pn, nil)
	r.do("DELETE", at, nil)
	r.untilGone(at)
	r.eventually("the engine goes", func() bool { return len(r.hall.databases) == 0 })
	for _, o := range r.State()["products"].(map[string]map[string][]body)["rdb"] {
		t.Errorf("left over: %v", o)
	}
}

// Two changes of privileges at a time: one is refused, without a type, and
// works when it is tried again.
func TestPrivilegesAtTheSameTime(t *testing.T) {
	r := newRegion(t)
	id := r.database("PostgreSQL-17")
	at := rdbs + "/" + id
	for _, name := range []string{"one", "two"} {
		r.do("POST", at+"/users", body{"name": name, "password": goodPassword})
	}
	set := func(user string) (int, string) {
		status, _, b, err := r.call("PUT", at+"/privileges", body{"database_name": "rdb", "user_name": user, "permission": "readonly"})
		if err != nil {
			t.Error(err)
		}
		return status, string(b)
	}
	// Each is sent again and again until it meets the other.
	done := make(chan struct{})
	met := make(chan string, 2)
	var both sync.WaitGroup
	for _, user := range []string{"one", "two"} {
		both.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if status, b := set(user); status == http.StatusConflict {
					select {
					case met <- b:
					default:
					}
				} else if status != http.StatusOK {
					t.Errorf("%d %s", status, b)
					return
				}
			}
		})
	}
	select {
	case b := <-met:
		if b != `{"message":"Tuple concurrently updated"}` {
			t.Errorf("the refusal is %s", b)
		}
	case <-t.Context().Done():
		t.Error("two changes at a time were never refused")
	}
	close(done)
	both.Wait()
	for _, user := range []string{"one", "two"} {
		if status, b := set(user); status != http.StatusOK {
			t.Errorf("alone: %d %s", status, b)
		}
	}
	got := r.do("GET", at+"/privileges?database_name=rdb", nil)
	if dig(got, "total_count") != 3.0 || str(got, "privileges", 1, "permission") != "readonly" || str(got, "privileges", 2, "permission") != "readonly" {
		t.Errorf("privileges %v", got)
	}
}

// A fault script gives a database a public endpoint that nobody asked for: one
// that exists at once, one that does not when it is first ready.
func TestPublicEndpointByItself(t *testing.T) {
	r := newRegion(t)
	script := func(event string) fault.Script {
		s, err := fault.Parse([]byte("events: [{node: db, event: " + event + "}]"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if err := r.LoadFaults(script("database-public-endpoint")); err != nil {
		t.Fatal(err)
	}
	at := rdbs + "/" + r.database("PostgreSQL-17", r.network())
	i := r.do("GET", at, nil)
	if len(dig(i, "endpoints").([]any)) != 2 || dig(i, "endpoint", "load_balancer") == nil {
		t.Fatalf("endpoints %v: the event did not happen", dig(i, "endpoints"))
	}
	rules := r.do("GET", at+"/acls", nil)
	if str(rules, "rules", 0, "ip") != "0.0.0.0/0" || dig(rules, "rules", 0, "port") != dig(i, "endpoint", "port") {
		t.Errorf("rules %v: it is open to everybody", rules)
	}
	r.do("DELETE", rdbEndpoints+str(i, "endpoint", "id"), nil)
	r.until(at, func(_ int, b body) bool { return b["status"] == "ready" && b["endpoint"] == nil })

	s := script("database-public-endpoint, on: {method: PATCH, path: /rdb/**, when: after}")
	if err := r.LoadFaults(s); err != nil {
		t.Fatal(err)
	}
	r.do("PATCH", at, body{"name": "db"})
	if r.do("GET", at, nil)["endpoint"] == nil {
		t.Error("the event at a call did not happen")
	}
	if err := r.LoadFaults(script("database-status, params: {status: disk_full}")); err != nil {
		t.Fatal(err)
	}
	if got := r.do("GET", at, nil)["status"]; got != "disk_full" {
		t.Errorf("status %v", got)
	}
	if err := r.LoadFaults(script("database-status, params: {status: splendid}")); err == nil {
		t.Error("a status that there is not was accepted")
	}
}

// Faults and the log know the new calls, and neither the log nor the state has
// a password in it.
func TestDatabaseFaultsAndLog(t *testing.T) {
	r := newRegion(t)
	at := rdbs + "/" + r.database("PostgreSQL-17")
	load := func(text string) {
		s, err := fault.Parse([]byte(text))
		if err == nil {
			err = r.LoadFaults(s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	load("http: [{method: PATCH, path: '/rdb/**/users/*', nth: 1, status: 500}]")
	r.do("POST", at+"/users", body{"name": "app", "password": goodPassword})
	if status, _ := r.refused("PATCH", at+"/users/app", body{"password": goodPassword + "2"}); status != http.StatusInternalServerError {
		t.Errorf("the rule answered %d", status)
	}
	load("http: [{method: PUT, path: '/rdb/**/privileges', applyThenDrop: true}]")
	if _, _, _, err := r.call("PUT", at+"/privileges", body{"database_name": "rdb", "user_name": "app", "permission": "all"}); err == nil {
		t.Error("the answer was not cut")
	}
	got := r.do("GET", at+"/privileges?user_name=app", nil)
	if str(got, "privileges", 0, "permission") != "all" {
		t.Errorf("%v: the change that was cut did not come", got)
	}
	last := r.Requests(0)
	if e := last[len(last)-2]; e.Path != at+"/privileges" || len(e.Effects) != 1 || e.Effects[0].Kind != "rdb_instance" {
		t.Errorf("the log has %+v", e)
	}
	for what, v := range map[string]any{"log": last, "state": r.State()} {
		text, err := json.Marshal(v)
		if err != nil || strings.Contains(string(text), goodPassword) || strings.Contains(string(text), "SCRAM") {
			t.Errorf("the %s tells a password: %v", what, err)
		}
	}
}
