package api_test

import (
	"net/http"
	"testing"
)

// What is no UUID is refused by name, wherever it stands, before anything is
// looked up; what is one and leads nowhere is not found.
func TestMalformedIdentifiers(t *testing.T) {
	r := newRegion(t)
	const lb, unknown = "/lb/v1/zones/" + zone, "99999999-9999-4999-8999-999999999999"
	for _, c := range []struct {
		method, path string
		in           any
		argument     string
	}{
		{"GET", vpcs + "/mine", nil, "vpc_id"},
		{"PATCH", networks + "/mine", body{"name": "x"}, "private_network_id"},
		{"DELETE", gwNets + "/mine", nil, "gateway_network_id"},
		{"GET", lbs + "/mine/backends", nil, "lb_id"},
		{"POST", gws + "/mine/refresh-ssh-keys", body{}, "gateway_id"},
		{"GET", "/account/v3/projects/mine", nil, "project_id"},
		{"GET", keys + "/mine", nil, "ssh_key_id"},
		{"GET", networks + "?vpc_id=mine", nil, "vpc_id"},
		{"GET", ips + "?ip_ids=" + unknown + ",mine", nil, "ip_ids"},
		{"POST", vpcs, body{"name": "x", "project_id": "fr-par/" + project}, "project_id"},
		{"POST", snapshots, body{"name": "x", "project_id": project, "volume_id": "mine"}, "volume_id"},
		{"POST", lbs, body{"name": "x", "project_id": project, "type": "LB-S", "ip_ids": []string{"mine"}}, "ip_ids"},
		{"POST", "/instance/v2alpha1/zones/" + zone + "/private-network-interfaces", body{"server_id": "mine"}, "server_id"},
	} {
		status, b := r.refused(c.method, c.path, c.in)
		if status != http.StatusBadRequest || b["type"] != "invalid_arguments" || str(b, "details", 0, "argument_name") != c.argument ||
			str(b, "details", 0, "reason") != "format" {
			t.Errorf("%s %s: %d %v, want %s refused", c.method, c.path, status, b, c.argument)
		}
	}
	for path, resource := range map[string]any{vpcs: "vpc", networks: "private_network", ips: "ip", gws: "gateway", gwNets: "gateway_network",
		gwIPs: "ip", volumes: "volume", snapshots: "snapshot", servers: "instance_server", flexibles: "instance_ip", lb + "/lbs": nil, keys: "ssh_key"} {
		status, b := r.refused("GET", path+"/"+unknown, nil)
		typed := b["type"] == "not_found" && b["resource"] == resource && b["resource_id"] == unknown
		if resource == nil {
			typed = b["type"] == nil // the load balancer's are not
		}
		if status != http.StatusNotFound || !typed {
			t.Errorf("GET %s of an unknown id: %d %v", path, status, b)
		}
	}
}

// Instance v1 has words of its own, and names everything that is missing at once.
func TestServerArguments(t *testing.T) {
	r := newRegion(t)
	srv := str(r.do("POST", servers, body{"name": "s", "project": project, "commercial_type": "PLAY2-NANO", "image": r.image("instance_sbs")}), "server", "id")
	for _, c := range []struct {
		method, path string
		in           body
		arguments    []string
		reason       string
	}{
		{"POST", servers, body{"name": "x", "project": project}, []string{"commercial_type", "image", "volumes"}, "required"},
		{"POST", servers, body{"name": "x", "project": project, "commercial_type": "DEV1-S"}, []string{"image", "volumes"}, "required"},
		{"POST", servers, body{"name": "x", "project": project, "image": r.image("instance_sbs")}, []string{"commercial_type"}, "required"},
		{"PATCH", servers + "/" + srv, body{"placement_group": "mine"}, []string{"placement_group"}, "constraint"},
		{"POST", servers, body{"name": "x", "project": project, "commercial_type": "DEV1-S", "image": "ubuntu_noble"}, []string{"image"}, "constraint"},
	} {
		status, b := r.refused(c.method, c.path, c.in)
		details, _ := b["details"].([]any)
		if status != http.StatusBadRequest || b["type"] != "invalid_arguments" || len(details) != len(c.arguments) {
			t.Errorf("%v: %d %v", c.in, status, b)
			continue
		}
		for i, a := range c.arguments {
			if str(details[i], "argument_name") != a || str(details[i], "reason") != c.reason {
				t.Errorf("%v: detail %d is %v, want %s %s", c.in, i, details[i], a, c.reason)
			}
		}
	}
}
