package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"
)

const (
	manager = "/secret-manager/v1beta1/regions/fr-par"
	secrets = manager + "/secrets"
)

func (r *region) secret(name string, more body) string {
	r.Helper()
	in := body{"project_id": project, "name": name}
	for k, v := range more {
		in[k] = v
	}
	return str(r.do("POST", secrets, in), "id")
}

// keep stores a value as a new version.
func (r *region) keep(id, value string, more body) body {
	r.Helper()
	in := body{"data": base64.StdEncoding.EncodeToString([]byte(value))}
	for k, v := range more {
		in[k] = v
	}
	return r.do("POST", secrets+"/"+id+"/versions", in)
}

func (r *region) value(path string) string {
	r.Helper()
	b, err := base64.StdEncoding.DecodeString(str(r.do("GET", path, nil), "data"))
	if err != nil {
		r.Fatal(err)
	}
	return string(b)
}

// A deleted secret is still there for a week: by id, with the time of its
// deletion, and in no listing that does not ask for it.
func TestASecretIsDeletedSoftly(t *testing.T) {
	r := newRegion(t)
	id := r.secret("join", body{"tags": []string{"estate"}})
	r.keep(id, "token", nil)
	r.do("DELETE", secrets+"/"+id, nil)
	if s := r.do("GET", secrets+"/"+id, nil); s["deletion_requested_at"] == nil || s["status"] != "ready" {
		t.Errorf("after the deletion: %v", s)
	}
	if o := r.State()["owned"].(map[string][]api.Owned)["estate"]; len(o) != 1 || o[0].Kind != "secret" || o[0].Status != "scheduled_for_deletion" {
		t.Errorf("the state page: %+v", o)
	}
	for query, want := range map[string]float64{"": 0, "?scheduled_for_deletion=false": 0, "?scheduled_for_deletion=true": 1} {
		if n := r.do("GET", secrets+query, nil)["total_count"]; n != want {
			t.Errorf("listing%s has %v, want %v", query, n, want)
		}
	}
	for _, c := range []struct{ method, path string }{
		{"GET", "/versions/latest/access"}, {"POST", "/versions"}, {"PATCH", ""}, {"POST", "/protect"},
	} {
		if status, b := r.refused(c.method, secrets+"/"+id+c.path, body{"name": "x"}); status != http.StatusPreconditionFailed {
			t.Errorf("%s %s: %d %v", c.method, c.path, status, b)
		}
	}
	if status, b := r.refused("DELETE", secrets+"/"+id, nil); status != http.StatusNotFound || b["resource"] != "secret" {
		t.Errorf("deleted twice: %d %v", status, b)
	}
	if status, b := r.refused("POST", secrets, body{"project_id": project, "name": "join"}); status != http.StatusBadRequest ||
		str(b, "details", 0, "help_message") != "cannot have same secret name in same path" || str(b, "details", 0, "argument_name") != "name" {
		t.Errorf("its name is taken: %d %v", status, b)
	}
	r.do("POST", secrets+"/"+id+"/restore", nil)
	if got := r.value(secrets + "/" + id + "/versions/latest/access"); got != "token" {
		t.Errorf("after the restoration: %q", got)
	}
	if s := r.do("GET", secrets+"/"+id, nil); s["deletion_requested_at"] != nil {
		t.Errorf("after the restoration: %v", s)
	}
}

func TestASecretIsGoneAfterAWeek(t *testing.T) {
	r := newRegion(t, func(o *api.Options) { o.Clock = clock.New(1e7) })
	id := r.secret("join", nil)
	r.do("DELETE", secrets+"/"+id, nil)
	r.untilGone(secrets + "/" + id)
	r.secret("join", nil)
}

func TestVersionsOfASecret(t *testing.T) {
	r := newRegion(t)
	id := r.secret("join", body{"tags": []string{"estate=a"}, "path": "/a/b/"})
	one := secrets + "/" + id
	if s := r.do("GET", one, nil); s["path"] != "/a/b" {
		t.Errorf("the path %v keeps its slash", s["path"])
	}
	r.keep(id, "one", nil)
	r.keep(id, "two", body{"disable_previous": true, "data_crc32": 298486374, "description": "second"})
	r.keep(id, "three", nil)
	if v := r.do("GET", one+"/versions/1", nil); v["status"] != "disabled" || v["latest"] != false {
		t.Errorf("the version before: %v", v)
	}
	if got := r.value(one + "/versions/latest/access"); got != "three" {
		t.Errorf("latest is %q", got)
	}
	if a := r.do("GET", one+"/versions/2/access", nil); a["data_crc32"] != 298486374.0 {
		t.Errorf("checksum %v", a["data_crc32"])
	}
	r.do("POST", one+"/versions/3/disable", nil)
	if status, b := r.refused("GET", one+"/versions/latest/access", nil); status != http.StatusPreconditionFailed {
		t.Errorf("a disabled version: %d %v", status, b)
	}
	if got := r.value(one + "/versions/latest_enabled/access"); got != "two" {
		t.Errorf("latest_enabled is %q", got)
	}
	r.do("POST", one+"/versions/3/enable", nil)
	r.do("DELETE", one+"/versions/3", nil)
	v := r.do("GET", one+"/versions/3", nil)
	if v["status"] != "scheduled_for_deletion" || v["deletion_requested_at"] == nil || v["latest"] != true || v["updated_at"] == v["deletion_requested_at"] {
		t.Errorf("a deleted version: %v", v)
	}
	all := r.do("GET", one+"/versions", nil)
	if all["total_count"] != 3.0 || str(all, "versions", 0, "revision") != "3" {
		t.Errorf("all versions, the newest first: %v", all)
	}
	if n := r.do("GET", one+"/versions?status=enabled", nil)["total_count"]; n != 1.0 {
		t.Errorf("%v enabled", n)
	}
	if n := r.do("GET", one, nil)["version_count"]; n != 3.0 {
		t.Errorf("version_count %v", n)
	}
	r.do("POST", one+"/versions/3/restore", nil)
	byPath := manager + "/secrets-by-path/versions/latest/access?secret_path=/a/b&secret_name=join&project_id=" + project
	if got := r.value(byPath); got != "three" {
		t.Errorf("by path %q", got)
	}
	for _, c := range []struct {
		path   string
		status int
	}{{one + "/versions/4", 404}, {one + "/versions/newest", 400}, {strings.Replace(byPath, "a/b", "a", 1), 404}, {secrets + "/" + project, 404}} {
		if status, b := r.refused("GET", c.path, nil); status != c.status {
			t.Errorf("%s: %d %v", c.path, status, b)
		}
	}
}

func TestRefusedSecrets(t *testing.T) {
	r := newRegion(t)
	id := r.secret("login", body{"type": "basic_credentials"})
	opaque := r.secret("opaque", nil)
	big := base64.StdEncoding.EncodeToString(make([]byte, 64<<10+1))
	enc := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, c := range []struct {
		path             string
		in               body
		argument, reason string
	}{
		{secrets, body{"project_id": project, "name": ""}, "name", "format"},
		{secrets, body{"project_id": project, "name": "a b"}, "name", "format"},
		{secrets, body{"project_id": project, "name": "opaque"}, "name", "format"},
		{secrets, body{"project_id": project, "name": "opaque", "path": "//"}, "name", "format"},
		{secrets, body{"project_id": project, "name": "x", "path": "a"}, "path", "format"},
		{secrets, body{"project_id": project, "name": "x", "type": "poem"}, "type", "constraint"},
		{secrets, body{"project_id": project, "name": "x", "ephemeral_policy": body{"time_to_live": "soon", "action": "delete"}}, "ephemeral_policy.time_to_live", "format"},
		{secrets, body{"project_id": project, "name": "x", "ephemeral_policy": body{"time_to_live": "31536001s", "action": "delete"}}, "ephemeral_policy.time_to_live", "constraint"},
		{secrets, body{"project_id": project, "name": "x", "ephemeral_policy": body{"time_to_live": "60s", "action": "unknown_action"}}, "ephemeral_policy.action", "constraint"},
		{secrets + "/" + opaque + "/versions", body{}, "data", "required"},
		{secrets + "/" + opaque + "/versions", body{"data": "%%%"}, "data", "format"},
		{secrets + "/" + opaque + "/versions", body{"data": big}, "data", "constraint"},
		{secrets + "/" + opaque + "/versions", body{"data": enc("x"), "data_crc32": 1}, "data_crc32", "constraint"},
		{secrets + "/" + id + "/versions", body{"data": enc("plain")}, "data", "format"},
		{secrets + "/" + id + "/versions", body{"data": enc(`{"username": "u"}`)}, "data", "format"},
	} {
		status, b := r.refused("POST", c.path, c.in)
		if status != http.StatusBadRequest || b["type"] != "invalid_arguments" || str(b, "details", 0, "argument_name") != c.argument ||
			str(b, "details", 0, "reason") != c.reason {
			t.Errorf("%.80v: %d %v, want %s %s", c.in, status, b, c.argument, c.reason)
		}
	}
	r.keep(id, `{"username": "u", "password": "p"}`, nil)
	r.keep(opaque, strings.Repeat("x", 64<<10), nil)
	if status, b := r.refused("PATCH", secrets+"/"+opaque, body{"ephemeral_policy": body{"time_to_live": "60s", "action": "delete"}}); status != 400 {
		t.Errorf("a policy for a secret that had none: %d %v", status, b)
	}
	if status, b := r.refused("POST", secrets, body{"project_id": "99999999-9999-4999-8999-999999999999", "name": "x"}); status != 403 || str(b, "details", 0, "resource") != "secret" {
		t.Errorf("another project: %d %v", status, b)
	}
}

func TestAProtectedSecretStays(t *testing.T) {
	r := newRegion(t)
	id := r.secret("ca", body{"protected": true})
	if status, b := r.refused("DELETE", secrets+"/"+id, nil); status != http.StatusPreconditionFailed || b["precondition"] != "protected_resource" {
		t.Errorf("%d %v", status, b)
	}
	before := r.do("GET", secrets+"/"+id, nil)
	after := r.do("POST", secrets+"/"+id+"/unprotect", nil)
	if after["protected"] != false || after["updated_at"] != before["updated_at"] {
		t.Errorf("%v", after)
	}
	r.do("DELETE", secrets+"/"+id, nil)
}

func TestEphemeralSecrets(t *testing.T) {
	r := newRegion(t)
	once := r.secret("once", body{"ephemeral_policy": body{"expires_once_accessed": true, "action": "delete"}})
	r.keep(once, "seen", nil)
	if got := r.value(secrets + "/" + once + "/versions/latest/access"); got != "seen" {
		t.Errorf("%q", got)
	}
	if status, b := r.refused("GET", secrets+"/"+once+"/versions/1/access", nil); status != http.StatusNotFound {
		t.Errorf("a second look: %d %v", status, b)
	}
	r.do("DELETE", secrets+"/"+once, nil)
	r.untilGone(secrets + "/" + once) // at once, without a week

	short := r.secret("short", body{"ephemeral_policy": body{"time_to_live": "1.500s", "action": "disable"}})
	if s := r.do("GET", secrets+"/"+short, nil); str(s, "ephemeral_policy", "time_to_live") != "1.500s" {
		t.Errorf("%v", s["ephemeral_policy"])
	}
	if v := r.keep(short, "x", nil); dig(v, "ephemeral_properties", "expires_at") == nil {
		t.Errorf("%v", v)
	}
	r.untilStatus(secrets+"/"+short+"/versions/1", "disabled")
}

func TestBrowsingSecrets(t *testing.T) {
	r := newRegion(t)
	for name, path := range map[string]string{"top": "/", "a1": "/a", "a2": "/a/b", "a3": "/ab"} {
		r.secret(name, body{"path": path, "tags": []string{"t-" + name, "shared"}})
	}
	for prefix, want := range map[string]string{"": "a/ ab/ top", "/a": "a1 b/", "/a/b/": "a2", "/c": ""} {
		items, got := r.do("GET", secrets+"/browse?prefix="+prefix+"&project_id="+project, nil)["items"].([]any), []string{}
		for _, i := range items {
			name := str(i, "name")
			if dig(i, "folder") != nil {
				name += "/"
			}
			got = append(got, name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", prefix, got, want)
		}
	}
	if n := r.do("GET", manager+"/tags?project_id="+project, nil)["total_count"]; n != 5.0 {
		t.Errorf("%v tags", n)
	}
	if n := r.do("GET", secrets+"?path=/a", nil)["total_count"]; n != 1.0 {
		t.Errorf("%v in /a", n)
	}
}

// A fault script can make a new secret late to be seen, as was reported; what is
// logged and shown of a secret never has its value.
func TestSecretsUnderFaults(t *testing.T) {
	r := newRegion(t, func(o *api.Options) { o.Clock = clock.New(1) })
	r.script("http:\n  - {method: GET, path: '/secret-manager/**', stale: 1h, count: 1}\n")
	id := r.secret("join", nil)
	if status, b := r.refused("GET", secrets+"/"+id, nil); status != http.StatusNotFound || b["type"] != "not_found" {
		t.Errorf("%d %v", status, b)
	}
	r.keep(id, "hunter2", nil)
	log := fmt.Sprintf("%+v", r.Requests(0))
	for _, page := range []string{log, fmt.Sprint(r.State())} {
		if strings.Contains(page, "hunter2") || strings.Contains(page, base64.StdEncoding.EncodeToString([]byte("hunter2"))) {
			t.Errorf("a value shows in %s", page)
		}
	}
	if !strings.Contains(log, "secret_version") || !strings.Contains(log, "stale") {
		t.Errorf("effects and faults in %s", log)
	}
}
