package api_test

import (
	"net/http"
	"testing"

	"bastide/internal/sim/api"
)

const (
	registry   = "/registry/v1/regions/fr-par"
	namespaces = registry + "/namespaces"
)

// A name is taken for all customers of a region, and errors have no type.
func TestRegistryNamesAreTaken(t *testing.T) {
	r := newRegion(t)
	if err := r.Seed(api.Seed{RegistryTaken: []api.SeedTaken{{Region: "fr-par", Name: "staging"}}}); err != nil {
		t.Fatal(err)
	}
	in := func(name string) body { return body{"name": name, "project_id": project} }
	for _, c := range []struct {
		path, name string
		status     int
	}{
		{namespaces, "staging", http.StatusConflict},
		{"/registry/v1/regions/nl-ams/namespaces", "staging", http.StatusOK},
		{namespaces, "mine", http.StatusOK},
		{namespaces, "mine", http.StatusConflict},
		{namespaces, "My_Own", http.StatusBadRequest},
		{namespaces, "ab-", http.StatusBadRequest},
	} {
		status, _, b, err := r.call("POST", c.path, in(c.name))
		if err != nil || status != c.status {
			t.Errorf("%s in %s: %d %s %v, want %d", c.name, c.path, status, b, err, c.status)
		}
	}
	if status, b := r.refused("POST", namespaces, in("staging")); b["type"] != nil || b["message"] == nil {
		t.Errorf("%d %v", status, b)
	}
	if n := r.do("GET", namespaces, nil)["total_count"]; n != 1.0 {
		t.Errorf("%v namespaces, and another customer's does not show", n)
	}
	r.Reset()
	if status, _ := r.refused("POST", namespaces, in("staging")); status != http.StatusConflict {
		t.Errorf("a reset freed the name: %d", status)
	}
}

func TestRegistryComesAndGoes(t *testing.T) {
	r := newRegion(t)
	if err := r.Seed(api.Seed{RegistryImages: []api.SeedRegistryImage{
		{Region: "fr-par", Namespace: "staging", Name: "app", Tags: []string{"v1", "latest"}, SizeBytes: 3847002},
		{Region: "fr-par", Namespace: "staging", Name: "db", SizeBytes: 10},
	}}); err != nil {
		t.Fatal(err)
	}
	n := r.do("GET", namespaces+"?name=staging", nil)
	one := namespaces + "/" + str(n, "namespaces", 0, "id")
	if str(n, "namespaces", 0, "image_count") != "2" || str(n, "namespaces", 0, "size") != "3.847012e+06" || str(n, "namespaces", 0, "endpoint") != "rg.fr-par.scw.cloud/staging" {
		t.Errorf("%v", n)
	}
	changed := r.do("PATCH", one, body{"description": "images", "is_public": true})
	if changed["description"] != "images" || changed["is_public"] != true {
		t.Errorf("%v", changed)
	}
	image := str(r.do("GET", registry+"/images?name=app", nil), "images", 0, "id")
	tags := r.do("GET", registry+"/images/"+image+"/tags", nil)
	tag := registry + "/tags/" + str(tags, "tags", 0, "id")
	if tags["total_count"] != 2.0 || str(r.do("GET", tag, nil), "name") != "v1" {
		t.Errorf("%v", tags)
	}
	r.do("DELETE", tag, nil)
	if status, b := r.refused("GET", tag, nil); status != http.StatusNotFound || b["type"] != nil {
		t.Errorf("%d %v", status, b)
	}
	if i := r.do("DELETE", registry+"/images/"+image, nil); i["status"] != "deleting" {
		t.Errorf("%v", i)
	}
	r.untilGone(registry + "/images/" + image)
	if d := r.do("DELETE", one, nil); d["status"] != "deleting" {
		t.Errorf("%v", d)
	}
	r.untilGone(one)
	if status, b := r.refused("GET", one, nil); b["message"] != "Namespace was not found" || b["type"] != nil {
		t.Errorf("%d %v", status, b)
	}
	if n := r.do("GET", registry+"/images", nil)["total_count"]; n != 0.0 {
		t.Errorf("%v images outlive their namespace", n)
	}
}
