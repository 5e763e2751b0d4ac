package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"bastide/internal/sim/api"
)

// rightsOf tries every kind of call with a key, and says which it may make.
func (r *region) rightsOf(key, secretID string) string {
	r.Helper()
	may := []string{}
	for _, c := range []struct {
		name, method, path string
		in                 body
	}{
		{"servers", "GET", servers, nil}, {"lb", "GET", lbs, nil}, {"volume+", "POST", volumes, body{"name": "v", "project_id": project, "from_empty": body{"size": 1e9}}},
		{"secrets", "GET", secrets, nil}, {"secret+", "POST", secrets, body{"project_id": project, "name": "s" + time.Now().Format("150405.000000")}},
		{"version+", "POST", secrets + "/" + secretID + "/versions", body{"data": "eA=="}}, {"value", "GET", secrets + "/" + secretID + "/versions/1/access", nil},
		{"registry", "GET", namespaces, nil}, {"dns", "GET", zonesPath, nil}, {"keys", "GET", keys, nil}, {"applications", "GET", "/iam/v1alpha1/applications", nil},
		{"projects", "GET", "/account/v3/projects", nil}, {"prices", "GET", "/product-catalog/v2alpha1/public-catalog/products", nil},
	} {
		status, _, b, err := r.call(c.method, c.path, c.in, "X-Auth-Token", key)
		switch {
		case err != nil:
			r.Fatal(err)
		case status == http.StatusOK:
			may = append(may, c.name)
		case status != http.StatusForbidden || !strings.Contains(string(b), `"type":"permissions_denied"`):
			r.Errorf("%s: %d %s", c.name, status, b)
		}
	}
	return strings.Join(may, " ")
}

const everyRight = "servers lb volume+ secrets secret+ version+ value registry dns keys applications projects prices"

// A region can be told which rights its keys lack, by product, action or
// permission set, or which permission sets are the only ones they have.
func TestRightsOfAKey(t *testing.T) {
	for _, c := range []struct {
		name   string
		rights api.Credential
		may    string
	}{
		{"all", api.Credential{}, everyRight},
		{"no IAM", api.Credential{Deny: []string{"iam"}}, strings.Replace(everyRight, "keys applications ", "", 1)},
		{"no SSH keys", api.Credential{Deny: []string{"SSHKeysFullAccess"}}, strings.Replace(everyRight, "keys ", "", 1)},
		{"no values of secrets", api.Credential{Deny: []string{"SecretManagerSecretAccess"}}, strings.Replace(everyRight, "value ", "", 1)},
		{"values but no listing", api.Credential{Deny: []string{"SecretManagerReadOnly"}}, strings.Replace(everyRight, "secrets ", "", 1)},
		{"no writing", api.Credential{Deny: []string{"secret-manager:write", "block:write"}}, strings.Replace(strings.Replace(everyRight, "secret+ version+ ", "", 1), "volume+ ", "", 1)},
		{"reader", api.Credential{PermissionSets: []string{"AllProductsReadOnly"}}, "servers lb secrets registry dns prices"},
		{"products", api.Credential{PermissionSets: []string{"AllProductsFullAccess"}}, strings.Replace(everyRight, "keys applications projects ", "", 1)},
		{"puller", api.Credential{PermissionSets: []string{"ContainerRegistryReadOnly", "SecretManagerSecretAccess"}}, "value registry prices"},
		{"nothing", api.Credential{PermissionSets: []string{}}, "prices"},
	} {
		t.Run(c.name, func(t *testing.T) {
			const admin = "33333333-3333-4333-8333-333333333333"
			r := newRegion(t, func(o *api.Options) { o.Rights, o.Credentials = c.rights, map[string]api.Credential{admin: {}} })
			id := str(r.with(admin, "POST", secrets, body{"project_id": project, "name": "s"}), "id")
			r.with(admin, "POST", secrets+"/"+id+"/versions", body{"data": "eA=="})
			if got := r.rightsOf(token, id); got != c.may {
				t.Errorf("may %s\nwant %s", got, c.may)
			}
		})
	}
}

// with makes a call that must succeed with another key.
func (r *region) with(key, method, path string, in any) body {
	r.Helper()
	mine := *r
	mine.client = &http.Client{Transport: keyed{key, r.client.Transport}}
	return mine.do(method, path, in)
}

type keyed struct {
	key  string
	next http.RoundTripper
}

func (k keyed) RoundTrip(req *http.Request) (*http.Response, error) {
	req.Header.Set("X-Auth-Token", k.key)
	return k.next.RoundTrip(req)
}

// A refusal says what was not allowed, in the words of the real API.
func TestRefusalsNameWhatIsMissing(t *testing.T) {
	r := newRegion(t, func(o *api.Options) { o.Rights.PermissionSets = []string{} })
	for _, c := range []struct{ method, path, resource, action string }{
		{"GET", lbs, "loadbalancer", "read"}, {"POST", namespaces, "api_namespace", "write"}, {"POST", "/account/v3/projects", "project", "write"},
		{"POST", servers, "compute_servers", "write"}, {"GET", snapshots, "snapshot", "read"}, {"GET", networks, "private_network", "read"},
		{"GET", secrets + "/" + project + "/versions/1/access", "secret", "read"}, {"DELETE", secrets + "/" + project, "secret", "write"},
		{"GET", keys, "ssh_key", "read"}, {"GET", "/rdb/v1/regions/fr-par/instances", "instance", "read"}, {"GET", "/iam/v1alpha1/policies", "policy", "read"}, {"GET", zonesPath, "dns_zone", "read"},
	} {
		status, b := r.refused(c.method, c.path, nil)
		if status != http.StatusForbidden || str(b, "details", 0, "resource") != c.resource || str(b, "details", 0, "action") != c.action {
			t.Errorf("%s %s: %d %v, want %s %s", c.method, c.path, status, b, c.action, c.resource)
		}
	}
}

// Rights may come with a seed, and go for a while by a fault script.
func TestRightsComeAndGo(t *testing.T) {
	r := newRegion(t)
	r.script("permissions:\n  - {name: new key, deny: [iam, LoadBalancersReadOnly], from: 2, count: 2}\n")
	status := func(path string) int {
		s, _, _, err := r.call("GET", path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for i, c := range []struct {
		path string
		want int
	}{{keys, 200}, {servers, 200}, {lbs, 403}, {keys, 403}, {keys, 200}} {
		if got := status(c.path); got != c.want {
			t.Errorf("call %d: %d, want %d", i+1, got, c.want)
		}
	}
	if log := r.Requests(0); log[2].Fault != "permission new key" || log[4].Fault != "" {
		t.Errorf("log %+v", log)
	}
	if n := str(r.do("GET", "/sim/faults", nil), "permissions", 0, "acted"); n != "2" {
		t.Errorf("acted %s times", n)
	}
	s, _, b, err := r.call("POST", "/sim/faults", "permissions: [{deny: [Everything]}]\n")
	if err != nil || s != http.StatusBadRequest || !strings.Contains(string(b), `"Everything"`) {
		t.Errorf("%d %s %v", s, b, err)
	}
	for text, want := range map[string]int{`{"permissions": {"deny": ["lb"]}}`: 204, `{"permissions": {"deny": ["lb:fly"]}}`: 400, `{"permissions": {"permission_sets": ["King"]}}`: 400} {
		if s, _, b, err := r.call("POST", "/sim/seed", text); err != nil || s != want {
			t.Errorf("%s: %d %s %v, want %d", text, s, b, err, want)
		}
	}
	if got := status(lbs); got != 403 {
		t.Errorf("after the seed %d", got)
	}
	r.Reset()
	if got := status(lbs); got != 200 {
		t.Errorf("after the reset %d", got)
	}
}

// A key of an application has the rights of the application's policies, until it
// expires or is deleted.
func TestKeysOfApplications(t *testing.T) {
	const iam = "/iam/v1alpha1"
	r := newRegion(t)
	id := r.secret("s", nil)
	r.keep(id, "x", nil)
	app := str(r.do("POST", iam+"/applications", body{"name": "puller", "tags": []string{"estate=a"}}), "id")
	made := r.do("POST", iam+"/api-keys", body{"application_id": app, "description": "pull", "default_project_id": project})
	access, secret := str(made, "access_key"), str(made, "secret_key")
	if got := r.rightsOf(secret, id); got != "prices" {
		t.Errorf("without a policy: %s", got)
	}
	policy := str(r.do("POST", iam+"/policies", body{"name": "pull", "application_id": app, "rules": []body{
		{"permission_set_names": []string{"ContainerRegistryReadOnly"}, "project_ids": []string{project}}}}), "id")
	if got := r.rightsOf(secret, id); got != "registry prices" {
		t.Errorf("with a policy: %s", got)
	}
	r.do("PUT", iam+"/rules", body{"policy_id": policy, "rules": []body{{"permission_set_names": []string{"SecretManagerReadOnly"}, "organization_id": project}}})
	if x := r.do("GET", iam+"/rules?policy_id="+policy, nil); str(x, "rules", 0, "permission_sets_scope_type") != "projects" || str(x, "rules", 0, "organization_id") != project {
		t.Errorf("rules %v", x)
	}
	if n := r.do("GET", iam+"/policies?user_ids="+project, nil)["total_count"]; n != 0.0 {
		t.Errorf("%v policies of somebody else", n)
	}
	if got := r.rightsOf(secret, id); got != "secrets prices" {
		t.Errorf("with other rules: %s", got)
	}
	if k := r.do("GET", iam+"/api-keys/"+access, nil); k["secret_key"] != nil || k["application_id"] != app {
		t.Errorf("the secret shows again: %v", k)
	}
	if n := str(r.do("GET", iam+"/applications/"+app, nil), "nb_api_keys"); n != "1" {
		t.Errorf("%s keys", n)
	}
	if status, b := r.refused("POST", iam+"/policies", body{"name": "x", "rules": []body{{"permission_set_names": []string{"King"}, "project_ids": []string{project}}}}); status != 400 {
		t.Errorf("%d %v", status, b)
	}
	expired := str(r.do("POST", iam+"/api-keys", body{"application_id": app, "expires_at": "2020-01-01T00:00:00Z"}), "secret_key")
	for _, c := range []struct{ key, reason string }{{expired, "expired"}, {secret, "not_found"}} {
		if c.key == secret {
			r.do("DELETE", iam+"/api-keys/"+access, nil)
		}
		status, _, b, err := r.call("GET", secrets, nil, "X-Auth-Token", c.key)
		if err != nil || status != http.StatusUnauthorized || !strings.Contains(string(b), `"reason":"`+c.reason+`"`) {
			t.Errorf("%s: %d %s %v", c.reason, status, b, err)
		}
	}
	if status, _ := r.refused("GET", iam+"/api-keys/"+access, nil); status != http.StatusNotFound {
		t.Errorf("a deleted key: %d", status)
	}
	r.do("DELETE", iam+"/policies/"+policy, nil)
	r.do("DELETE", iam+"/applications/"+app, nil)
	if status, b := r.refused("GET", iam+"/policies/"+policy, nil); b["resource"] != "policy" {
		t.Errorf("%d %v", status, b)
	}
	if n := r.do("GET", iam+"/permission-sets?page_size=100", nil)["total_count"].(float64); n < 30 {
		t.Errorf("%v permission sets", n)
	}
}
