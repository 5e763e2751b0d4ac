package api_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// A server that asks for a dynamic address gets one beside an IPv6 prefix, and
// none beside a flexible IPv4; IPv4 comes first.
func TestDynamicAddress(t *testing.T) {
	for _, c := range []struct {
		flexible []string
		want     string // families, dynamic ones marked
	}{
		{nil, "inet*"}, {[]string{"routed_ipv6"}, "inet* inet6"}, {[]string{"routed_ipv6", "routed_ipv4"}, "inet inet6"},
	} {
		t.Run(fmt.Sprint(c.flexible), func(t *testing.T) {
			r := newRegion(t)
			given := []string{}
			for _, kind := range c.flexible {
				given = append(given, str(r.do("POST", flexibles, body{"project": project, "type": kind}), "ip", "id"))
			}
			srv := servers + "/" + str(r.do("POST", servers, body{"name": "s", "project": project, "commercial_type": "PLAY2-NANO",
				"image": r.image("instance_sbs"), "dynamic_ip_required": true, "public_ips": given}), "server", "id")
			r.do("POST", srv+"/action", body{"action": "poweron"})
			b := r.untilStatus(srv, "running")
			var got []string
			for _, ip := range b["server"].(map[string]any)["public_ips"].([]any) {
				got = append(got, str(ip, "family")+map[any]string{true: "*", false: ""}[dig(ip, "dynamic")])
			}
			if s := strings.Join(got, " "); s != c.want || str(b, "server", "public_ip", "family") != "inet" {
				t.Errorf("addresses %s, want %s", s, c.want)
			}
		})
	}
}

// The IPv6 address of a server follows from its prefix and its MAC address; a
// flexible address is found by itself as well as by its id.
func TestFlexibleAddresses(t *testing.T) {
	r := newRegion(t)
	ip := r.do("POST", flexibles, body{"project": project, "type": "routed_ipv6"})
	v4 := r.do("POST", flexibles, body{"project": project})
	if got := str(r.do("GET", flexibles+"/"+str(v4, "ip", "address"), nil), "ip", "id"); got != str(v4, "ip", "id") {
		t.Errorf("by address: %s", got)
	}
	var made []netip.Addr
	for _, public := range []string{str(ip, "ip", "id"), str(r.do("POST", flexibles, body{"project": project, "type": "routed_ipv6"}), "ip", "id")} {
		s := r.do("POST", servers, body{"name": "s", "project": project, "commercial_type": "PLAY2-NANO", "image": r.image("instance_sbs"), "public_ips": []string{public}})
		a := netip.MustParseAddr(str(s, "server", "public_ips", 0, "address"))
		b, mac := a.As16(), strings.ReplaceAll(str(s, "server", "mac_address"), ":", "")
		if fmt.Sprintf("%02x%x%x", b[8]^2, b[9:11], b[13:]) != mac || b[11] != 0xff || b[12] != 0xfe {
			t.Errorf("%s does not follow from %s", a, mac)
		}
		gateway := netip.MustParseAddr(str(s, "server", "public_ips", 0, "gateway"))
		if !gateway.IsLinkLocalUnicast() {
			t.Errorf("gateway %s", gateway)
		}
		made = append(made, a)
	}
	if made[0] == made[1] {
		t.Error("two servers have the same address")
	}
}

// A rule that turns into one without ports loses them; one made with ports and a
// protocol without is refused.
func TestRulesWithoutPorts(t *testing.T) {
	r := newRegion(t)
	rules := groups + "/" + str(r.do("POST", groups, body{"name": "g", "project": project}), "security_group", "id") + "/rules"
	rule := rules + "/" + str(r.do("POST", rules, body{"protocol": "TCP", "direction": "inbound", "action": "accept", "dest_port_from": 1, "dest_port_to": 9}), "rule", "id")
	got := r.do("PATCH", rule, body{"protocol": "ICMP"})
	if dig(got, "rule", "dest_port_from") != nil || dig(got, "rule", "dest_port_to") != nil || str(got, "rule", "protocol") != "ICMP" {
		t.Errorf("%v", got)
	}
	if status, b := r.refused("POST", rules, body{"protocol": "ICMP", "direction": "inbound", "action": "accept", "dest_port_from": 1}); status != 400 {
		t.Errorf("%d %v", status, b)
	}
}

// A custom resource is known by its MAC address and has the address's id.
func TestCustomResource(t *testing.T) {
	r := newRegion(t)
	pn := r.network()
	ip := r.do("POST", ips, body{"project_id": project, "source": body{"private_network_id": pn}, "resource": body{"mac_address": "bc:24:11:00:00:01"}})
	path := ips + "/" + str(ip, "id")
	if str(ip, "resource", "type") != "custom" || str(ip, "resource", "id") != str(ip, "id") || str(ip, "resource", "mac_address") != "BC:24:11:00:00:01" {
		t.Errorf("%v", ip)
	}
	if status, _ := r.refused("DELETE", path, nil); status != 412 {
		t.Errorf("released while attached: %d", status)
	}
	if got := r.do("POST", path+"/detach", body{"resource": body{"mac_address": "BC:24:11:00:00:01"}}); got["resource"] != nil {
		t.Errorf("%v", got)
	}
	moved := r.do("POST", path+"/attach", body{"resource": body{"mac_address": "bc:24:11:00:00:02", "name": "box"}})
	if str(moved, "resource", "id") != str(ip, "id") || str(moved, "resource", "name") != "box" {
		t.Errorf("%v", moved)
	}
}

// Names set for an address show from the second read on, with a dot at the end.
func TestReverseNamesOfAnAddress(t *testing.T) {
	r := newRegion(t)
	ip := ips + "/" + str(r.do("POST", ips, body{"project_id": project, "source": body{"private_network_id": r.network()}}), "id")
	if got := r.do("PATCH", ip, body{"reverses": []body{{"hostname": "node.example.org"}}}); len(got["reverses"].([]any)) != 0 {
		t.Errorf("shown at once: %v", got)
	}
	first, second := r.do("GET", ip, nil), r.do("GET", ip, nil)
	if len(first["reverses"].([]any)) != 0 || str(second, "reverses", 0, "hostname") != "node.example.org." {
		t.Errorf("%v, then %v", first["reverses"], second["reverses"])
	}
}
