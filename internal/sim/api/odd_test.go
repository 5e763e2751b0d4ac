package api

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"bastide/internal/sim/clock"
)

// No body, however odd, breaks any operation, whether its path leads to
// something or not: it is refused, or taken for an empty one.
func TestOddBodies(t *testing.T) {
	const token = "22222222-2222-4222-8222-222222222222"
	r := New(Options{Clock: clock.New(0.01)})
	defer r.Close()
	send := func(method, path, body string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, path, strings.NewReader(body))
		req.Header.Set("X-Auth-Token", token)
		rec := httptest.NewRecorder()
		r.ServeHTTP(rec, req)
		return rec
	}
	made := func(id string, rec *httptest.ResponseRecorder) string {
		found := regexp.MustCompile(`"id":"([0-9a-f-]{36})"`).FindAllStringSubmatch(rec.Body.String(), -1)
		if rec.Code >= 300 || len(found) == 0 {
			t.Fatalf("%s: %d %s", id, rec.Code, rec.Body)
		}
		return found[len(found)-1][1]
	}
	exists := []string{
		made("vpc", send("POST", "/vpc/v2/regions/fr-par/vpcs", `{"project_id":"`+token+`"}`)),
		made("network", send("POST", "/vpc/v2/regions/fr-par/private-networks", `{"project_id":"`+token+`"}`)),
		made("volume", send("POST", "/block/v1/zones/fr-par-1/volumes", `{"project_id":"`+token+`","from_empty":{"size":1000000000}}`)),
		made("balancer", send("POST", "/lb/v1/zones/fr-par-1/lbs", `{"project_id":"`+token+`","type":"LB-S","assign_flexible_ip":false}`)),
		made("database", send("POST", "/rdb/v1/regions/fr-par/instances", `{"project_id":"`+token+`","engine":"PostgreSQL-17","node_type":"DB-DEV-S"}`)),
		made("group", send("POST", "/instance/v1/zones/fr-par-1/security_groups", `{"project":"`+token+`"}`)),
	}
	bodies := []string{"", "null", "[]", "{}", `"text"`, "7", "{", `{"project_id":null,"name":null,"tags":null,"source":null,"volumes":null}`,
		`{"rules":[null],"subnets":[null],"acls":[null],"pat_rules":[null],"volumes":{"0":null},"health_check":null,"match":null}`,
		`{"volumes":{"x":{}},"size":-1,"perf_iops":-1,"ip_ids":[""],"server_ip":null,"extra_volumes":{"1":null},"action":{}}`,
		`{"init_endpoints":[null],"endpoint_spec":{},"settings":[null],"logs_policy":null,"major_upgrade_workflow":{},"instance_id":null}`,
		`{"name":7,"tags":"a","size":"b","server":{},"action":7}`}
	place := regexp.MustCompile(`\{(\w+)\}`)
	for _, op := range r.operations {
		method, pattern, _ := strings.Cut(op, " ")
		for _, id := range append([]string{"none", "99999999-9999-4999-8999-999999999999"}, exists...) {
			path := place.ReplaceAllStringFunc(pattern, func(name string) string {
				switch name {
				case "{zone}":
					return "fr-par-1"
				case "{region}":
					return "fr-par"
				}
				return id
			})
			for _, b := range bodies {
				if rec := send(method, path, b); rec.Code >= http.StatusInternalServerError {
					t.Errorf("%s %s with %s: %d %s", method, path, b, rec.Code, rec.Body)
				}
				if method == "DELETE" || method == "GET" {
					break
				}
			}
		}
	}
}
