package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// names of the items of a listing, or another field of theirs.
func (r *region) names(path, list, field string) string {
	r.Helper()
	var out []string
	items, _ := r.do("GET", path, nil)[list].([]any)
	for _, i := range items {
		out = append(out, str(i, field))
	}
	return strings.Join(out, " ")
}

func TestOrderOfListings(t *testing.T) {
	r := newRegion(t)
	pn := r.network()
	for _, n := range []string{"b", "a", "c"} {
		r.do("POST", vpcs, body{"name": n, "project_id": project, "tags": []string{"mine"}})
		r.do("POST", servers, body{"name": n, "project": project, "commercial_type": "PLAY2-NANO", "image": r.image("instance_sbs")})
	}
	for _, a := range []string{"172.16.0.10", "172.16.0.9", "172.16.1.1"} {
		r.do("POST", ips, body{"project_id": project, "source": body{"private_network_id": pn}, "address": a})
	}
	for _, c := range []struct{ path, list, field, want string }{
		{vpcs + "?tags=mine", "vpcs", "name", "b a c"},
		{vpcs + "?tags=mine&order_by=created_at_desc", "vpcs", "name", "c a b"},
		{vpcs + "?tags=mine&order_by=name_asc", "vpcs", "name", "a b c"},
		{servers, "servers", "name", "c a b"}, // the newest first, unlike most
		{servers + "?order=creation_date_asc", "servers", "name", "b a c"},
		{ips, "ips", "address", "172.16.1.1/22 172.16.0.9/22 172.16.0.10/22"}, // here too
		{ips + "?order_by=created_at_asc", "ips", "address", "172.16.0.10/22 172.16.0.9/22 172.16.1.1/22"},
		{ips + "?order_by=ip_address_asc", "ips", "address", "172.16.0.9/22 172.16.0.10/22 172.16.1.1/22"},
		{ips + "?order_by=ip_address_desc&page_size=2&page=2", "ips", "address", "172.16.0.9/22"},
	} {
		if got := r.names(c.path, c.list, c.field); got != c.want {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
}

// A filter that nothing meets shows nothing; one for an enumeration that says
// "unknown" is none.
func TestFiltersOfListings(t *testing.T) {
	r := newRegion(t)
	other := str(r.do("POST", "/account/v3/projects", body{"name": "other", "organization_id": project}), "id")
	a := str(r.do("POST", vpcs, body{"name": "alpha", "project_id": project, "tags": []string{"one", "two"}}), "id")
	b := str(r.do("POST", vpcs, body{"name": "beta", "project_id": other, "tags": []string{"two"}}), "id")
	r.do("POST", networks, body{"name": "n", "project_id": project, "vpc_id": a})
	srv := str(r.do("POST", servers, body{"name": "s", "project": project, "commercial_type": "PLAY2-NANO", "image": r.image("instance_sbs"), "tags": []string{"one", "two"}}), "server", "id")
	pn := r.network()
	nic := r.do("POST", servers+"/"+srv+"/private_nics", body{"private_network_id": pn})
	mac := strings.ToUpper(str(nic, "private_nic", "mac_address"))
	r.do("POST", "/vpc/v2/regions/fr-par/vpc-connectors", body{"name": "c", "vpc_id": a, "target_vpc_id": b})
	r.do("POST", "/vpc/v2/regions/fr-par/routes", body{"vpc_id": a, "destination": "10.1.0.0/16"})

	const routes, connectors = "/vpc/v2/regions/fr-par/routes-with-nexthop", "/vpc/v2/regions/fr-par/vpc-connectors"
	for _, c := range []struct {
		path, list string
		want       int
	}{
		{vpcs + "?is_default=false", "vpcs", 2}, {vpcs + "?is_default=false&project_id=" + other, "vpcs", 1},
		{vpcs + "?organization_id=" + project + "&is_default=false", "vpcs", 2}, {vpcs + "?organization_id=" + other, "vpcs", 0},
		{vpcs + "?name=alp", "vpcs", 1}, {vpcs + "?tags=one&tags=two", "vpcs", 2}, {vpcs + "?tags=none", "vpcs", 0},
		{vpcs + "?routing_enabled=false", "vpcs", 0}, {networks + "?vpc_id=" + a, "private_networks", 1},
		{networks + "?dhcp_enabled=false", "private_networks", 0}, {networks + "?private_network_ids=" + pn, "private_networks", 1},
		{servers + "?tags=one,two", "servers", 1}, {servers + "?tags=one,three", "servers", 0}, // all of them, unlike elsewhere
		{servers + "?private_nic_mac_address=" + mac, "servers", 1}, {servers + "?private_nic_mac_address=02:00:00:00:00:00", "servers", 0},
		{servers + "?private_network=" + pn, "servers", 1}, {servers + "?project=" + other, "servers", 0},
		{servers + "?state=running", "servers", 0}, {servers + "?without_ip=true", "servers", 1},
		{connectors + "?status=unknown_vpc_connector_status", "vpc_connectors", 1}, {connectors + "?status=peered", "vpc_connectors", 0},
		{connectors + "?target_vpc_id=" + a, "vpc_connectors", 0},
		{routes + "?types=custom", "routes", 1}, {routes + "?types=custom&contains=10.1.2.0/24", "routes", 1},
		{routes + "?types=custom&contains=10.0.0.0/8", "routes", 0}, {routes + "?types=custom&is_ipv6=true", "routes", 0},
		{ips + "?resource_type=unknown_type&private_network_id=" + pn + "&regional=true", "ips", 0},
		{volumes + "?product_resource_id=" + srv, "volumes", 1}, {volumes + "?volume_type=sbs_15k", "volumes", 0},
		{"/marketplace/v2/local-images?image_label=ubuntu_noble&zone=" + zone + "&type=unknown_type&arch=unknown_arch", "local_images", 3},
		{"/marketplace/v2/local-images?image_label=ubuntu_noble&zone=" + zone + "&type=instance_sbs&arch=arm64", "local_images", 1},
		{"/marketplace/v2/images?category=instantapp&arch=arm64", "images", 0},
	} {
		items, _ := r.do("GET", c.path, nil)[c.list].([]any)
		if len(items) != c.want {
			t.Errorf("%s shows %d, want %d", c.path, len(items), c.want)
		}
	}
}

// Instance v1 tells the total and the ways to other pages in headers.
func TestPageHeaders(t *testing.T) {
	r := newRegion(t)
	for range 3 {
		r.do("POST", flexibles, body{"project": project, "tags": []string{"mine"}})
	}
	for query, want := range map[string]string{
		"per_page=2&tags=mine":        `</ips?page=2&per_page=2&tags=mine>; rel="next",</ips?page=2&per_page=2&tags=mine>; rel="last"`,
		"per_page=2&page=2&tags=mine": `</ips?page=1&per_page=2&tags=mine>; rel="first",</ips?page=1&per_page=2&tags=mine>; rel="previous",</ips?page=2&per_page=2&tags=mine>; rel="last"`,
		"tags=none":                   `</ips?page=0&per_page=50&tags=none>; rel="last"`,
	} {
		_, h, _, err := r.call("GET", flexibles+"?"+query, nil)
		if err != nil || h.Get("Link") != want || h.Get("X-Total-Count") != fmt.Sprint(map[bool]int{true: 0, false: 3}[query == "tags=none"]) {
			t.Errorf("%s: %q of %q, want %q (%v)", query, h.Get("Link"), h.Get("X-Total-Count"), want, err)
		}
	}
}
