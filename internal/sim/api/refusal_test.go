package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"
)

// What the real region refuses, with the type and words that clients go by.
func TestRefusals(t *testing.T) {
	r := newRegion(t)
	pn := r.network()
	booked := str(r.do("POST", ips, body{"project_id": project, "source": body{"private_network_id": pn}}), "id")
	vol := str(r.do("POST", volumes, body{"name": "v", "project_id": project, "from_empty": body{"size": 10e9}}), "id")
	r.untilStatus(volumes+"/"+vol, "available")
	srv := str(r.do("POST", servers, body{"name": "s", "project": project, "commercial_type": "PLAY2-PICO", "dynamic_ip_required": false,
		"volumes": body{"0": body{"id": vol, "volume_type": "sbs_volume"}}}), "server", "id")
	group := str(r.do("GET", servers+"/"+srv, nil), "server", "security_group", "id")
	r.do("POST", servers+"/"+srv+"/private_nics", body{"private_network_id": pn})
	const unknown = "99999999-9999-4999-8999-999999999999"

	for _, c := range []struct {
		name, method, path string
		in                 any
		status             int
		want               string // parts of the body, joined by spaces
	}{
		{"network with an attached server", "DELETE", networks + "/" + pn, nil, 412, "precondition_failed resource_still_in_use Private Network must be empty"},
		{"default VPC's network keeps the VPC", "DELETE", vpcs + "/" + str(r.do("GET", networks+"/"+pn, nil), "vpc_id"), nil, 412, "precondition_failed"},
		{"overlapping subnet", "POST", networks, body{"project_id": project, "name": "x", "subnets": []string{"172.16.1.0/24"}}, 400, "invalid_arguments subnets overlaps"},
		{"public subnet", "POST", networks, body{"project_id": project, "name": "x", "subnets": []string{"8.8.8.0/24"}}, 400, "invalid_arguments subnets private"},
		{"booked address again", "POST", ips, body{"project_id": project, "source": body{"private_network_id": pn}, "address": "172.16.0.2"}, 409, "already in use"},
		{"reserved address", "POST", ips, body{"project_id": project, "source": body{"private_network_id": pn}, "address": "172.16.0.1"}, 400, "invalid_arguments address"},
		{"network in another project", "POST", vpcs, body{"project_id": unknown, "name": "x"}, 404, "not_found"},
		{"server in another project", "POST", servers, body{"project": unknown, "name": "x", "commercial_type": "DEV1-S", "image": r.image("instance_sbs")}, 403, "permissions_denied"},
		{"balancer in another project", "POST", lbs, body{"project_id": unknown, "name": "x", "type": "LB-S"}, 403, "permissions_denied"},
		{"volume in use", "DELETE", volumes + "/" + vol, nil, 412, "precondition_failed resource_still_in_use"},
		{"volume shrinks", "PATCH", volumes + "/" + vol, body{"size": 5e9}, 400, "invalid_arguments size"},
		{"odd IOPS", "POST", volumes, body{"project_id": project, "perf_iops": 7000, "from_empty": body{"size": 10e9}}, 400, "invalid_arguments perf_iops"},
		{"odd size", "POST", volumes, body{"project_id": project, "from_empty": body{"size": 10000000001}}, 400, "invalid_arguments size"},
		{"wrong type of field", "POST", volumes, body{"project_id": 7}, 400, "invalid_arguments project_id format"},
		{"unknown gateway type", "POST", gws, body{"project_id": project, "type": "VPC-GW-XXS"}, 400, "invalid_arguments type"},
		{"unknown server type", "POST", servers, body{"project": project, "name": "x", "commercial_type": "PLAY2-GIGA", "image": r.image("instance_sbs")}, 400, "invalid_arguments commercial_type"},
		{"unknown image", "POST", servers, body{"project": project, "name": "x", "commercial_type": "DEV1-S", "image": unknown}, 404, "not_found instance_image"},
		{"unknown flexible address", "POST", servers, body{"project": project, "name": "x", "commercial_type": "DEV1-S", "image": r.image("instance_sbs"), "public_ips": []string{unknown}}, 404, "not_found instance_ip"},
		{"local disk on a type without", "POST", servers, body{"project": project, "name": "x", "commercial_type": "PLAY2-NANO", "volumes": body{"0": body{"size": 10e9, "volume_type": "l_ssd"}}}, 400, "invalid_arguments volumes"},
		{"attached volume again", "POST", servers, body{"project": project, "name": "x", "commercial_type": "PLAY2-NANO", "volumes": body{"0": body{"id": vol, "volume_type": "sbs_volume"}}}, 412, "precondition_failed"},
		{"second NIC in a network", "POST", servers + "/" + srv + "/private_nics", body{"private_network_id": pn}, 400, "Private NIC already exists"},
		{"group in use", "DELETE", groups + "/" + group, nil, 400, "group is in use"},
		{"poweroff of a stopped server", "POST", servers + "/" + srv + "/action", body{"action": "poweroff"}, 400, "stopped"},
		{"missing balancer has no type", "GET", lbs + "/" + unknown, nil, 404, "lbs not Found"},
		{"missing route names nothing", "GET", "/vpc/v2/regions/fr-par/routes/" + unknown, nil, 404, "not_found unknown"},
		{"missing user data", "GET", servers + "/" + srv + "/user_data/none", nil, 404, ""},
		{"unknown label", "GET", "/marketplace/v2/local-images?image_label=plan9&zone=" + zone, nil, 404, "not_found MarketplaceImage plan9"},
		{"unknown zone", "GET", "/instance/v1/zones/fr-par-9/servers", nil, 400, "invalid_arguments zone"},
		{"unserved", "GET", "/baremetal/v1/zones/" + zone + "/servers", nil, 404, ""},
		{"bad key", "POST", keys, body{"project_id": project, "public_key": "ssh-rsa no"}, 400, "invalid_arguments public_key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, _, b, err := r.call(c.method, c.path, c.in)
			if err != nil {
				t.Fatal(err)
			}
			if status != c.status {
				t.Fatalf("%d %s, want %d", status, b, c.status)
			}
			for _, word := range strings.Fields(c.want) {
				if !strings.Contains(string(b), word) {
					t.Errorf("%s lacks %q", b, word)
				}
			}
		})
	}
	if status, b := r.refused("DELETE", networks+"/"+pn, nil); status != 412 {
		t.Errorf("%d %v", status, b)
	}
	r.do("DELETE", ips+"/"+booked, nil)
}

// What is still on its way refuses changes; time hardly moves in this region.
func TestTransientRefusals(t *testing.T) {
	r := newRegion(t, func(o *api.Options) { o.Clock = clock.New(0.01) })
	pn := r.network()
	gw := str(r.do("POST", gws, body{"project_id": project, "name": "gw", "type": "VPC-GW-S"}), "id")
	vol := str(r.do("POST", volumes, body{"name": "v", "project_id": project, "from_empty": body{"size": 10e9}}), "id")
	lb := str(r.do("POST", lbs, body{"name": "l", "project_id": project, "type": "LB-S"}), "id")
	srv := str(r.do("POST", servers, body{"name": "s", "project": project, "commercial_type": "DEV1-S", "image": r.image("instance_sbs")}), "server", "id")
	r.do("POST", servers+"/"+srv+"/action", body{"action": "poweron"})
	if s := str(r.do("GET", servers+"/"+srv, nil), "server", "state"); s != "stopped" {
		t.Errorf("right after poweron a read still shows stopped, not %s", s)
	}
	for _, c := range []struct {
		method, path string
		in           any
		resource     string
		state        string
	}{
		{"POST", gwNets, body{"gateway_id": gw, "private_network_id": pn}, "gateway", "allocating"},
		{"PATCH", gws + "/" + gw, body{"enable_bastion": true}, "gateway", "allocating"},
		{"DELETE", gws + "/" + gw, nil, "gateway", "allocating"},
		{"DELETE", volumes + "/" + vol, nil, "volume", "creating"},
		{"POST", snapshots, body{"volume_id": vol, "name": "s", "project_id": project}, "volume", "creating"},
		{"POST", servers, body{"name": "x", "project": project, "commercial_type": "PLAY2-NANO", "volumes": body{"0": body{"id": vol, "volume_type": "sbs_volume"}}}, "volume", "creating"},
		{"POST", servers + "/" + srv + "/attach-volume", body{"volume_id": vol, "volume_type": "sbs_volume"}, "volume", "creating"},
		{"POST", lbs + "/" + lb + "/attach-private-network", body{"private_network_id": pn}, "lb", "to_create"},
	} {
		status, b := r.refused(c.method, c.path, c.in)
		if status != http.StatusConflict || b["type"] != "transient_state" || b["resource"] != c.resource || b["current_state"] != c.state {
			t.Errorf("%s %s: %d %v", c.method, c.path, status, b)
		}
	}
	// A NIC added now is not there for the guest for a long while, says v2alpha1;
	// v1 calls it available.
	if s := str(r.do("POST", servers+"/"+srv+"/private_nics", body{"private_network_id": pn}), "private_nic", "state"); s != "available" {
		t.Errorf("v1 calls a new NIC %s", s)
	}
	// IPAM shows the address only later.
	if n := r.do("GET", ips+"?resource_type=instance_private_nic", nil)["total_count"]; n != 0.0 {
		t.Errorf("IPAM shows %v addresses at once", n)
	}
}

// A booked address keeps a network from going even when nothing is attached.
func TestBookedAddressHoldsTheNetwork(t *testing.T) {
	r := newRegion(t)
	pn := r.network()
	ip := str(r.do("POST", ips, body{"project_id": project, "source": body{"private_network_id": pn}}), "id")
	if status, b := r.refused("DELETE", networks+"/"+pn, nil); status != 412 || b["precondition"] != "resource_still_in_use" {
		t.Errorf("%d %v", status, b)
	}
	r.do("DELETE", ips+"/"+ip, nil)
	r.do("DELETE", networks+"/"+pn, nil)
}

func TestWhoMayDoWhat(t *testing.T) {
	limited := "33333333-3333-4333-8333-333333333333"
	r := newRegion(t, func(o *api.Options) {
		o.Credentials = map[string]api.Credential{token: {}, limited: {Deny: []string{"lb", "block:write"}}}
		o.OnlyListed = true
	})
	for _, c := range []struct {
		token, method, path string
		status              int
	}{
		{token, "GET", lbs, 200},
		{"", "GET", lbs, 401},
		{"not-a-uuid", "GET", lbs, 401},
		{"44444444-4444-4444-8444-444444444444", "GET", lbs, 401},
		{limited, "GET", lbs, 403},
		{limited, "GET", volumes, 200},
		{limited, "POST", volumes, 403},
		{limited, "GET", servers, 200},
		{"", "GET", "/metadata", 200},
	} {
		status, _, b, err := r.call(c.method, c.path, body{}, "X-Auth-Token", c.token)
		if err != nil || status != c.status {
			t.Errorf("%s %s with %q: %d %s %v, want %d", c.method, c.path, c.token, status, b, err, c.status)
		}
	}
}

func TestQuota(t *testing.T) {
	r := newRegion(t, func(o *api.Options) { o.Quotas = map[string]int{"PLAY2-NANO": 1} })
	in := body{"name": "a", "project": project, "commercial_type": "PLAY2-NANO", "image": r.image("instance_sbs")}
	r.do("POST", servers, in)
	status, b := r.refused("POST", servers, in)
	if status != http.StatusForbidden || b["type"] != "quotas_exceeded" || str(b, "details", 0, "quota") != "1" {
		t.Errorf("%d %v", status, b)
	}
}

// Listings come in pages; who takes the first for all of it loses the rest.
func TestPages(t *testing.T) {
	r := newRegion(t)
	for i := range 25 {
		r.do("POST", vpcs, body{"name": fmt.Sprintf("net-%02d", i), "project_id": project})
	}
	first := r.do("GET", vpcs+"?name=net-", nil)
	if n := len(first["vpcs"].([]any)); n != 20 || first["total_count"] != 25.0 {
		t.Errorf("first page has %d of %v", n, first["total_count"])
	}
	second := r.do("GET", vpcs+"?name=net-&page=2&order_by=name_desc", nil)
	if n := len(second["vpcs"].([]any)); n != 5 || str(second, "vpcs", 4, "name") != "net-00" {
		t.Errorf("second page has %d, ends with %s", n, str(second, "vpcs", 4, "name"))
	}
	_, h, b, err := r.call("GET", "/instance/v1/zones/"+zone+"/products/servers?per_page=10", nil)
	if err != nil || h.Get("X-Total-Count") != "135" || !strings.Contains(h.Get("Link"), `page=14&per_page=10&>; rel="last"`) {
		t.Errorf("total %q, link %q, %v", h.Get("X-Total-Count"), h.Get("Link"), err)
	}
	if !strings.HasPrefix(h.Get("Content-Type"), "application/json") || h.Get("X-Request-Id") == "" {
		t.Errorf("headers %v of %.60s", h, b)
	}
}
