package api_test

import (
	"net/http"
	"testing"
)

const rdbRegion = "/rdb/v1/regions/fr-par"

// A backup is of one database, can be downloaded and restored, and outlives the
// instance, as a snapshot does.
func TestDatabaseBackups(t *testing.T) {
	r := newRegion(t)
	id := r.database("PostgreSQL-17", r.network())
	at := rdbs + "/" + id
	if status, b := r.refused("POST", rdbRegion+"/backups", body{"instance_id": id, "database_name": "none"}); status != http.StatusNotFound || b["resource"] != "database" {
		t.Errorf("a backup of nothing: %d %v", status, b)
	}
	made := r.do("POST", rdbRegion+"/backups", body{"instance_id": id, "database_name": "rdb", "name": "b", "expires_at": "2032-01-02T22:04:05Z"})
	backup := rdbRegion + "/backups/" + str(made, "id")
	if made["size"] != nil || made["expires_at"] != "2032-01-02T22:04:05Z" {
		t.Errorf("a backup that is being made: %v", made)
	}
	r.untilStatus(backup, "ready")
	r.do("POST", backup+"/export", body{})
	r.until(backup, func(_ int, b body) bool { return b["status"] == "ready" && b["download_url"] != nil })
	r.untilStatus(at, "ready")
	r.do("POST", backup+"/restore", body{"instance_id": id})
	r.untilStatus(backup, "ready")

	snap := rdbRegion + "/snapshots/" + str(r.do("POST", at+"/snapshots", body{"name": "s"}), "id")
	r.untilStatus(snap, "ready")
	r.untilStatus(at, "ready")
	r.do("POST", at+"/users", body{"name": "late", "password": goodPassword})
	r.do("DELETE", at, nil)
	r.untilGone(at)
	r.do("GET", backup, nil)

	// The instance of a snapshot is in public, whatever the first one was, and
	// has the users of that time.
	second := rdbs + "/" + str(r.do("POST", snap+"/create-instance", body{"instance_name": "again"}), "id")
	if i := r.untilStatus(second, "ready"); dig(i, "endpoint", "load_balancer") == nil || i["engine"] != "PostgreSQL-17" {
		t.Errorf("the instance of a snapshot: %v", i)
	}
	if users := r.do("GET", second+"/users", nil); dig(users, "total_count") != 1.0 || str(users, "users", 0, "name") != "admin" {
		t.Errorf("its users: %v", users)
	}
	r.do("DELETE", snap, nil)
	r.untilGone(snap)
	r.do("DELETE", backup, nil)
	r.untilGone(backup)
}

// A replica's endpoints are its own and keep a network from being deleted; when
// it is promoted there is one more instance and no replica.
func TestDatabaseReplicas(t *testing.T) {
	r := newRegion(t)
	id, pn := r.database("PostgreSQL-17"), r.network()
	made := r.do("POST", rdbRegion+"/read-replicas", body{"instance_id": id, "endpoint_spec": []body{privateIn(pn), {"direct_access": body{}}}})
	replica := rdbRegion + "/read-replicas/" + str(made, "id")
	if n := len(dig(made, "endpoints").([]any)); n != 1 {
		t.Errorf("%d endpoints at once: the direct one comes later", n)
	}
	ready := r.untilStatus(replica, "ready")
	if len(dig(ready, "endpoints").([]any)) != 2 || str(r.do("GET", rdbs+"/"+id, nil), "read_replicas", 0, "id") != str(made, "id") {
		t.Errorf("a replica that is ready: %v", ready)
	}
	if status, _ := r.refused("DELETE", networks+"/"+pn, nil); status != http.StatusPreconditionFailed {
		t.Errorf("deleting the network under a replica: %d", status)
	}
	r.do("DELETE", rdbEndpoints+str(ready, "endpoints", 0, "id"), nil)
	r.untilStatus(replica, "ready")
	r.do("DELETE", networks+"/"+pn, nil)
	promoted := r.do("POST", replica+"/promote", body{})
	r.untilGone(replica)
	if i := r.untilStatus(rdbs+"/"+str(promoted, "id"), "ready"); i["name"] != "promoted - db" || i["endpoint"] == nil {
		t.Errorf("the promoted instance: %v", i)
	}
}

// Rules of the access list are in order of their ranges, and deleting some tells
// which there were.
func TestDatabaseAccessList(t *testing.T) {
	r := newRegion(t)
	at := rdbs + "/" + r.database("PostgreSQL-17")
	rules := func(ranges ...string) (all []body) {
		for _, x := range ranges {
			all = append(all, body{"ip": x, "description": "d"})
		}
		return all
	}
	added := r.do("POST", at+"/acls", body{"rules": rules("198.51.100.7", "10.0.0.0/8")})
	for n, want := range []string{"0.0.0.0/0", "10.0.0.0/8", "198.51.100.7/32"} {
		if got := str(added, "rules", n, "ip"); got != want {
			t.Errorf("rule %d is %s, want %s", n, got, want)
		}
	}
	r.untilStatus(at, "ready")
	if status, b := r.refused("PUT", at+"/acls", body{"rules": rules("everybody")}); status != http.StatusBadRequest {
		t.Errorf("a rule for everybody: %d %v", status, b)
	}
	gone := r.do("DELETE", at+"/acls", body{"acl_rule_ips": []string{"0.0.0.0/0", "203.0.113.0/24"}})
	if len(dig(gone, "rules").([]any)) != 1 || str(gone, "rules", 0, "description") != "Allow All" {
		t.Errorf("deleted %v", gone)
	}
	if left := r.do("GET", at+"/acls", nil); dig(left, "total_count") != 2.0 {
		t.Errorf("left %v", left)
	}
}
