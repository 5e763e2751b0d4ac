package api_test

import (
	"net/http"
	"strings"
	"testing"

	"bastide/internal/sim/api"
)

const zonesPath = "/domain/v2beta1/dns-zones"

func dnsRegion(t *testing.T) *region {
	r := newRegion(t)
	if err := r.Seed(api.Seed{Domains: []api.SeedDomain{{Domain: "example.org"}}}); err != nil {
		t.Fatal(err)
	}
	return r
}

// records are a zone's, each as "name type data".
func (r *region) records(zone, query string) []string {
	r.Helper()
	out := []string{}
	for _, x := range r.do("GET", zonesPath+"/"+zone+"/records?page_size=100&"+query, nil)["records"].([]any) {
		out = append(out, strings.TrimSpace(str(x, "name")+" "+str(x, "type")+" "+str(x, "data")))
	}
	return out
}

func records(list ...body) body { return body{"records": list} }

func (r *region) change(zone string, changes ...body) body {
	r.Helper()
	return r.do("PATCH", zonesPath+"/"+zone+"/records", body{"changes": changes, "return_all_records": false})
}

// Data is kept in a form of the zone's own: a client that compares what it wrote
// with what it reads has to know it.
func TestDNSRecordsAreNormalised(t *testing.T) {
	r := dnsRegion(t)
	for _, c := range []struct {
		in   body
		want string
	}{
		{body{"name": "a", "type": "A", "data": "192.0.2.1"}, "a A 192.0.2.1"},
		{body{"name": "B", "type": "AAAA", "data": "2001:db8:0:0::1"}, "b AAAA 2001:db8::1"},
		{body{"name": "c", "type": "CNAME", "data": "target"}, "c CNAME target.example.org."},
		{body{"name": "d", "type": "CNAME", "data": "target.example.org."}, "d CNAME target.example.org."},
		{body{"name": "e.example.org.", "type": "TXT", "data": "owner=bastide"}, `e TXT "owner=bastide"`},
		{body{"name": "f.example.org", "type": "TXT", "data": `"quoted"`}, `f.example.org TXT "quoted"`},
		{body{"name": "@", "type": "MX", "data": "mail", "priority": 10}, "MX 10 mail.example.org."},
		{body{"name": "_s._tcp", "type": "SRV", "data": "0 5 6443 api"}, "_s._tcp SRV 0 5 6443 api.example.org."},
	} {
		made := r.change("example.org", body{"add": records(c.in)})["records"].([]any)
		if len(made) != 1 {
			t.Fatalf("%v: %v", c.in, made)
		}
		if got := strings.TrimSpace(str(made[0], "name") + " " + str(made[0], "type") + " " + str(made[0], "data")); got != c.want {
			t.Errorf("%v is kept as %s, want %s", c.in, got, c.want)
		}
		if ttl := str(made[0], "ttl"); ttl != "3600" {
			t.Errorf("ttl %s", ttl)
		}
	}
	if got := r.records("example.org", "name=a&type=A"); len(got) != 1 {
		t.Errorf("%v", got)
	}
	if got := r.records("example.org", "name=&type=unknown"); len(got) != 10 {
		t.Errorf("an empty name filters nothing, so all 8 and two name servers: %v", got)
	}
}

func TestDNSChanges(t *testing.T) {
	r := dnsRegion(t)
	a := func(data string) body { return body{"name": "api", "type": "A", "data": data, "ttl": 60} }
	set := func(list ...body) body {
		return body{"set": body{"id_fields": body{"name": "api", "type": "A"}, "records": list}}
	}
	first := r.change("example.org", set(a("192.0.2.1")))
	id := str(first, "records", 0, "id")
	second := r.change("example.org", set(a("192.0.2.1"), a("192.0.2.2")))
	if str(second, "records", 0, "id") == id {
		t.Error("a record that was set by its fields kept its id")
	}
	if got := r.records("example.org", "name=api"); strings.Join(got, ",") != "api A 192.0.2.1,api A 192.0.2.2" {
		t.Errorf("%v", got)
	}
	id = str(second, "records", 1, "id")
	if x := r.change("example.org", body{"set": body{"id": id, "records": []body{a("192.0.2.3")}}}); str(x, "records", 0, "id") != id {
		t.Errorf("a record that was set by its id lost it: %v", x)
	}
	r.change("example.org", body{"delete": body{"id_fields": body{"name": "api", "type": "A", "data": "192.0.2.1"}}})
	r.change("example.org", body{"delete": body{"id": id}}, body{"add": records(a("192.0.2.9"))})
	if got := r.records("example.org", "name=api"); strings.Join(got, ",") != "api A 192.0.2.9" {
		t.Errorf("%v", got)
	}
	whole := r.do("PATCH", zonesPath+"/example.org/records", body{"changes": []body{{"add": records(a("192.0.2.10"))}}})
	if n := len(whole["records"].([]any)); n != 4 {
		t.Errorf("without return_all_records the whole zone comes back, not %d records", n)
	}
	for _, c := range []struct {
		change body
		status int
	}{
		{body{"delete": body{"id": id}}, 404},
		{body{"delete": body{"id_fields": body{"name": "nobody", "type": "A"}}}, 404},
		{body{"set": body{"id": id, "records": []body{a("192.0.2.1")}}}, 404},
		{body{"add": records(a("192.0.2.9"))}, 409},
		{body{"add": records(body{"name": "api", "type": "CNAME", "data": "x"})}, 409},
		{body{"add": records(body{"name": "", "type": "CNAME", "data": "x"})}, 400},
		{body{"add": records(body{"name": "x", "type": "A", "data": "2001:db8::1"})}, 400},
		{body{"add": records(body{"name": "x", "type": "POEM", "data": "x"})}, 400},
		{body{}, 400},
	} {
		if status, b := r.refused("PATCH", zonesPath+"/example.org/records", body{"changes": []body{{"add": records(a("192.0.2.77"))}, c.change}}); status != c.status {
			t.Errorf("%v: %d %v, want %d", c.change, status, b, c.status)
		}
	}
	if got := r.records("example.org", "name=api"); len(got) != 2 {
		t.Errorf("a refused call left something behind: %v", got)
	}
	r.change("example.org", body{"clear": body{}})
	if got := r.records("example.org", ""); strings.Join(got, ",") != "NS ns0.dom.scw.cloud.,NS ns1.dom.scw.cloud." {
		t.Errorf("%v", got)
	}
}

// A name below a domain becomes a zone of its own, which costs money, unless the
// caller says not to.
func TestAZoneComesSilently(t *testing.T) {
	r := dnsRegion(t)
	const path = zonesPath + "/staging.example.org/records"
	in := body{"changes": []body{{"add": records(body{"name": "api", "type": "A", "data": "192.0.2.1"})}}, "disallow_new_zone_creation": true}
	if status, b := r.refused("PATCH", path, in); status != http.StatusNotFound || b["type"] != nil {
		t.Errorf("%d %v", status, b)
	}
	if n := r.do("GET", zonesPath, nil)["total_count"]; n != 1.0 {
		t.Errorf("%v zones", n)
	}
	in["disallow_new_zone_creation"] = false
	r.do("PATCH", path, in)
	log := r.Requests(0)
	if e := log[len(log)-1].Effects; len(e) == 0 || e[0].Verb != "created" || e[0].Kind != "dns_zone" || e[0].ID != "staging.example.org" {
		t.Errorf("effects %v", e)
	}
	list := zonesPath + "?dns_zones=staging.example.org"
	if z := r.do("GET", list, nil); str(z, "dns_zones", 0, "status") != "pending" || str(z, "dns_zones", 0, "subdomain") != "staging" {
		t.Errorf("%v", z)
	}
	r.until(list, func(_ int, b body) bool { return str(b, "dns_zones", 0, "status") == "active" })
	for zone, status := range map[string]int{"example.org": 403, "example.net": 403, "gone.example.org": 404} {
		if got, b := r.refused("DELETE", zonesPath+"/"+zone+"?project_id="+project, nil); got != status {
			t.Errorf("%s: %d %v, want %d", zone, got, b, status)
		}
	}
	r.do("DELETE", zonesPath+"/staging.example.org?project_id="+project, nil)
	if status, _ := r.refused("GET", path, nil); status != http.StatusNotFound {
		t.Errorf("the zone's records: %d", status)
	}
}

// Domains that the account does not have are refused once it was said which it
// has; else every domain is the account's.
func TestWhoseDomain(t *testing.T) {
	r := dnsRegion(t)
	in := body{"domain": "example.net", "subdomain": "x", "project_id": project}
	if status, b := r.refused("POST", zonesPath, in); status != http.StatusForbidden || b["type"] != "permissions_denied" {
		t.Errorf("%d %v", status, b)
	}
	open := newRegion(t)
	if z := open.do("POST", zonesPath, in); z["status"] != "active" || z["project_id"] != project {
		t.Errorf("%v", z)
	}
	if status, _ := open.refused("POST", zonesPath, in); status != http.StatusConflict {
		t.Errorf("made twice: %d", status)
	}
	if z := open.do("PATCH", zonesPath+"/x.example.net", body{"new_dns_zone": "y.example.net", "project_id": project}); z["subdomain"] != "y" {
		t.Errorf("%v", z)
	}
}
