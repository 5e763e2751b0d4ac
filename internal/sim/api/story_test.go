package api_test

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bastide/internal/sim/api"
	"bastide/internal/sim/hardware"
)

var talos = hardware.TalosImage{Version: "v1.13.5", Schematic: "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"}

// A private estate comes up, in the order in which a person would make it, and
// the hardware is told exactly what was made; then it goes, and nothing is left.
func TestPrivateEstateComesAndGoes(t *testing.T) {
	r := newRegion(t)
	if err := r.Seed(api.Seed{Snapshots: []api.SeedSnapshot{{Name: "talos", Zone: zone, SizeBytes: 5e9, Image: &talos}}}); err != nil {
		t.Fatal(err)
	}
	key := str(r.do("POST", keys, body{"name": "admin", "project_id": project, "public_key": sshKey}), "id")
	vpc := str(r.do("POST", vpcs, body{"name": "staging", "project_id": project, "tags": []string{"bastide:estate=staging"}}), "id")
	pn := str(r.do("POST", networks, body{"name": "staging", "project_id": project, "vpc_id": vpc, "subnets": []string{"172.16.0.0/22"}}), "id")

	// The gateway, with an address of its own family and one booked inside.
	gwIP := r.do("POST", gwIPs, body{"project_id": project})
	book := func(address string) string {
		return str(r.do("POST", ips, body{"project_id": project, "source": body{"private_network_id": pn}, "address": address}), "id")
	}
	inside := book("172.16.0.2")
	gw := str(r.do("POST", gws, body{"project_id": project, "name": "staging", "type": "VPC-GW-S", "ip_id": gwIP["id"], "enable_bastion": true}), "id")
	r.untilStatus(gws+"/"+gw, "running")
	net := str(r.do("POST", gwNets, body{"gateway_id": gw, "private_network_id": pn, "enable_masquerade": true, "push_default_route": true, "ipam_ip_id": inside}), "id")
	r.untilStatus(gwNets+"/"+net, "ready")
	r.untilStatus(gws+"/"+gw, "running")
	r.do("PUT", gws+"/"+gw+"/bastion-allowed-ips", body{"ip_ranges": []string{"198.51.100.7/32"}})
	r.untilStatus(gws+"/"+gw, "running")
	r.eventually("the bastion opens to one address", func() bool {
		g := r.hall.gateways[gw]
		return g.PublicIP.String() == str(gwIP, "address") && g.BastionEnabled && g.BastionPort == 61000 && len(g.AuthorizedKeys) == 1 &&
			strings.HasPrefix(sshKey, g.AuthorizedKeys[0]) && reflect.DeepEqual(g.BastionAllowed, []netip.Prefix{netip.MustParsePrefix("198.51.100.7/32")}) &&
			len(g.Attachments) == 1 && g.Attachments[0].Address.String() == "172.16.0.2"
	})
	if !netip.MustParsePrefix("127.51.0.0/16").Contains(netip.MustParseAddr(str(gwIP, "address"))) {
		t.Errorf("public address %s cannot be dialled on this machine", str(gwIP, "address"))
	}

	// A server with a root disk from the snapshot, a second disk and one NIC.
	snap := r.do("GET", snapshots+"?name=talos", nil)
	root := str(r.do("POST", volumes, body{"name": "cp-1-root", "project_id": project, "perf_iops": 5000,
		"from_snapshot": body{"snapshot_id": dig(snap, "snapshots", 0, "id"), "size": 20e9}}), "id")
	data := str(r.do("POST", volumes, body{"name": "cp-1-data", "project_id": project, "perf_iops": 15000, "from_empty": body{"size": 30e9}}), "id")
	r.untilStatus(volumes+"/"+root, "available")
	r.untilStatus(volumes+"/"+data, "available")
	server := str(r.do("POST", servers, body{"name": "Staging CP_1", "project": project, "commercial_type": "PLAY2-NANO", "dynamic_ip_required": false,
		"volumes": body{"0": body{"id": root, "volume_type": "sbs_volume", "boot": true}, "1": body{"id": data, "volume_type": "sbs_volume"}}}), "server", "id")
	address := book("172.16.0.11")
	nic := r.do("POST", servers+"/"+server+"/private_nics", body{"private_network_id": pn, "ipam_ip_ids": []string{address}})
	if _, _, _, err := r.call("PATCH", servers+"/"+server+"/user_data/cloud-init", "hello"); err != nil {
		t.Fatal(err)
	}
	r.do("POST", servers+"/"+server+"/action", body{"action": "poweron"})
	running := r.untilStatus(servers+"/"+server, "running")
	if d := str(running, "server", "state_detail"); d != "booting kernel" {
		t.Errorf("state detail %q: running tells nothing about the guest", d)
	}
	if n := dig(running, "server", "public_ips"); len(n.([]any)) != 0 {
		t.Errorf("a server that wants no dynamic address has %v", n)
	}
	r.eventually("the machine boots", func() bool { return len(r.hall.machines) == 1 })
	want := hardware.Machine{ServerID: server, Name: "Staging CP_1", Hostname: "staging-cp-1", Zone: zone, Project: project,
		CommercialType: "PLAY2-NANO", RAMBytes: 4 << 30, CPUs: 2,
		NICs: []hardware.NIC{{ID: str(nic, "private_nic", "id"), MAC: str(nic, "private_nic", "mac_address"), NetworkID: pn,
			Address: netip.MustParsePrefix("172.16.0.11/22"), Gateway: netip.MustParseAddr("172.16.0.2")}},
		Volumes:  []hardware.Volume{{ID: root, SizeBytes: 20e9, Image: &talos}, {ID: data, SizeBytes: 30e9}},
		UserData: map[string][]byte{"cloud-init": []byte("hello")}}
	r.hall.with(func() {
		if got := r.hall.machines["Staging CP_1"]; !reflect.DeepEqual(got, want) {
			t.Errorf("the machine is\n%+v\nwant\n%+v", got, want)
		}
	})

	// A private load balancer.
	lb := str(r.do("POST", lbs, body{"name": "api", "project_id": project, "type": "LB-S", "assign_flexible_ip": false}), "id")
	r.untilStatus(lbs+"/"+lb, "ready")
	lbAddress := book("172.16.0.3")
	r.do("POST", lbs+"/"+lb+"/attach-private-network", body{"private_network_id": pn, "ipam_ids": []string{lbAddress}})
	backend := str(r.do("POST", lbs+"/"+lb+"/backends", body{"name": "api", "forward_protocol": "tcp", "forward_port": 6443,
		"server_ip": []string{"172.16.0.11"}, "health_check": body{"port": 6443, "check_max_retries": 3, "check_delay": 5000, "check_timeout": 1000, "tcp_config": body{}}}), "id")
	r.do("POST", lbs+"/"+lb+"/frontends", body{"name": "api", "inbound_port": 6443, "backend_id": backend})
	r.eventually("the balancer forwards", func() bool {
		b := r.hall.balancers[lb]
		return len(b.PublicIPs) == 0 && len(b.Attachments) == 1 && b.Attachments[0].Address.String() == "172.16.0.3" &&
			len(b.Frontends) == 1 && b.Frontends[0].Port == 6443 && b.Frontends[0].Backend.CheckPort == 6443 &&
			b.Frontends[0].Backend.Servers[0].String() == "172.16.0.11"
	})

	// What an address is used by shows in IPAM, with the MAC in upper case.
	seen := r.until(ips+"?resource_type=instance_private_nic&resource_id="+str(nic, "private_nic", "id"), func(_ int, b body) bool {
		return dig(b, "total_count") == 1.0
	})
	if mac := str(seen, "ips", 0, "resource", "mac_address"); mac != strings.ToUpper(str(nic, "private_nic", "mac_address")) {
		t.Errorf("IPAM shows MAC %s", mac)
	}

	// And down again, in order.
	r.do("DELETE", lbs+"/"+lb, nil)
	r.do("POST", servers+"/"+server+"/action", body{"action": "poweroff"})
	r.untilStatus(servers+"/"+server, "stopped")
	r.do("DELETE", servers+"/"+server, nil)
	r.eventually("the machine is forgotten", func() bool { return slices.Contains(r.hall.removed, server) })
	for _, v := range []string{root, data} {
		r.untilStatus(volumes+"/"+v, "available")
		r.do("DELETE", volumes+"/"+v, nil)
	}
	r.untilGone(lbs + "/" + lb)
	r.do("DELETE", gwNets+"/"+net, nil)
	r.untilGone(gwNets + "/" + net)
	r.untilStatus(gws+"/"+gw, "running")
	r.do("DELETE", gws+"/"+gw, nil)
	r.untilGone(gws + "/" + gw)
	r.do("DELETE", gwIPs+"/"+str(gwIP, "id"), nil)
	for _, ip := range []string{inside, address, lbAddress} {
		r.do("DELETE", ips+"/"+ip, nil)
	}
	r.until(networks+"/"+pn, func(status int, _ body) bool {
		status, _, _, _ = r.call("DELETE", networks+"/"+pn, nil)
		return status == 204 || status == 404
	})
	r.do("DELETE", vpcs+"/"+vpc, nil)
	r.do("DELETE", keys+"/"+key, nil)
	left := r.do("GET", "/sim/state", nil)
	for product, kinds := range left["products"].(map[string]any) {
		for kind, items := range kinds.(map[string]any) {
			for _, i := range items.([]any) {
				implicit := dig(i, "is_default") == true || dig(i, "project_default") == true || kind == "snapshot"
				if !implicit {
					t.Errorf("left over in %s: %s %s", product, kind, str(i, "id"))
				}
			}
		}
	}
	r.eventually("all hardware is gone", func() bool {
		return len(r.hall.machines) == 0 && len(r.hall.balancers) == 0 && len(r.hall.gateways) == 0 && len(r.hall.forgotten) == 2
	})
}

// A server is stopped only when its machine really is off.
func TestStoppedMeansOff(t *testing.T) {
	r := newRegion(t)
	r.hall.slow = make(chan struct{})
	server := str(r.do("POST", servers, body{"name": "slow", "project": project, "commercial_type": "DEV1-S", "image": r.image("instance_sbs"), "dynamic_ip_required": true}), "server", "id")
	r.do("POST", servers+"/"+server+"/action", body{"action": "poweron"})
	on := r.untilStatus(servers+"/"+server, "running")
	if a := str(on, "server", "public_ips", 0, "address"); !strings.HasPrefix(a, "127.51.") {
		t.Errorf("a server without addresses of its own gets a dynamic one, not %s", a)
	}
	r.do("POST", servers+"/"+server+"/action", body{"action": "poweroff"})
	// Long after the region's half minute has passed, it is not stopped.
	r.until(servers+"/"+server, func(_ int, b body) bool { return str(b, "server", "state") == "stopping" })
	for range 50 {
		if s := str(r.do("GET", servers+"/"+server, nil), "server", "state"); s != "stopping" {
			t.Fatalf("state %s while the machine still runs", s)
		}
	}
	close(r.hall.slow)
	off := r.untilStatus(servers+"/"+server, "stopped")
	if n := len(dig(off, "server", "public_ips").([]any)); n != 0 {
		t.Errorf("the dynamic address stays after poweroff")
	}
}

// image is the id of a marketplace image.
func (r *region) image(kind string) string {
	r.Helper()
	return str(r.do("GET", "/marketplace/v2/local-images?image_label=ubuntu_jammy&zone="+zone+"&type="+kind, nil), "local_images", 0, "id")
}

// Terminating takes local disks along and leaves block volumes behind, which
// keep costing money.
func TestBlockVolumesSurviveTheServer(t *testing.T) {
	r := newRegion(t)
	s := r.do("POST", servers, body{"name": "web", "project": project, "commercial_type": "DEV1-S", "image": r.image("instance_sbs"),
		"dynamic_ip_required": false, "volumes": body{"1": body{"name": "scratch", "size": 10e9, "volume_type": "l_ssd"}}})
	server, root, local := str(s, "server", "id"), str(s, "server", "volumes", "0", "id"), str(s, "server", "volumes", "1", "id")
	if name := str(r.do("GET", volumes+"/"+root, nil), "name"); name != "Ubuntu 22.04 Jammy Jellyfish_sbs_volume_0" {
		t.Errorf("the root volume is called %s", name)
	}
	if status, b := r.refused("GET", "/instance/v1/zones/"+zone+"/volumes/"+root, nil); status != 404 || b["resource"] != "instance_volume" {
		t.Errorf("instance v1 answers %d %v for a block volume", status, b)
	}
	r.do("POST", servers+"/"+server+"/action", body{"action": "poweron"})
	r.untilStatus(servers+"/"+server, "running")
	r.do("POST", servers+"/"+server+"/action", body{"action": "terminate"})
	r.untilGone(servers + "/" + server)
	r.untilStatus(volumes+"/"+root, "available")
	if status, _ := r.refused("GET", "/instance/v1/zones/"+zone+"/volumes/"+local, nil); status != 404 {
		t.Errorf("the local volume answers %d", status)
	}
}
