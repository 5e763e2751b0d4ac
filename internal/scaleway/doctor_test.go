package scaleway_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/scaleway"
	"bastide/internal/sim/api"
	"bastide/internal/sim/fault"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// examine is what doctor says now, by check: each finding as "what: why".
func (w *world) examine() map[string][]string {
	w.Helper()
	out := map[string][]string{}
	for _, c := range w.checks() {
		if c.Unread != "" {
			w.Errorf("%s was not read: %s", c.Name, c.Unread)
		}
		for _, f := range c.Findings {
			if f.What == "" || f.Why == "" || f.Fix == "" || strings.Contains(f.Fix, "PLACE") {
				w.Errorf("%s found %+v", c.Name, f)
			}
			out[c.Name] = append(out[c.Name], f.What+": "+f.Why+"; "+f.Fix)
		}
	}
	return out
}

func (w *world) checks() []scaleway.Check {
	w.Helper()
	p, err := w.cloud().Examine(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	var inv scaleway.Inventory
	if p.Inventory != nil {
		inv = *p.Inventory
	}
	g, err := blueprint.Build(w.estate, inv.Booked(), []string{sshKey})
	if err != nil {
		w.Fatal(err)
	}
	return p.Checks(g)
}

// A project with one estate that is as it should be has nothing to find, before
// and after; and looking changes nothing.
func TestDoctorIsContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, privateEstate(1))
	if found := w.examine(); len(found) > 0 {
		t.Errorf("in an empty project: %v", found)
	}
	w.mustUp()
	mark := len(w.region.Requests(0))
	if found := w.examine(); len(found) > 0 {
		t.Errorf("with an estate: %v", found)
	}
	if n, which := w.writes(mark); n > 0 {
		t.Errorf("wrote %v", which)
	}
}

// ailments are what somebody does to a project, and which check finds it by what
// words. Each is played in a region with one estate that is up.
var ailments = map[string]struct {
	do    func(w *world, c *scw.Client)
	check string
	words []string
}{
	"a flexible address of no server": {func(w *world, c *scw.Client) {
		must(instance.NewAPI(c).CreateIP(&instance.CreateIPRequest{Zone: zone, Project: scw.StringPtr(project), Type: instance.IPTypeRoutedIPv4}))(w)
	}, "unused-flexible-addresses", []string{"flexible address", "belongs to no server", "scw instance ip delete "}},
	"a gateway's address of no gateway": {func(w *world, c *scw.Client) {
		must(vpcgw.NewAPI(c).CreateIP(&vpcgw.CreateIPRequest{Zone: zone}))(w)
	}, "unused-gateway-addresses", []string{"gateway address", "belongs to no gateway", "scw vpc-gw ip delete-v2 "}},
	"a load balancer's address of none": {func(w *world, c *scw.Client) {
		must(lb.NewZonedAPI(c).CreateIP(&lb.ZonedAPICreateIPRequest{Zone: "fr-par-2"}))(w)
	}, "unused-load-balancer-addresses", []string{"load balancer address", "in fr-par-2", "scw lb ip delete ", "zone=fr-par-2"}},
	"a booking of nobody in another network": {func(w *world, c *scw.Client) {
		n := must(vpc.NewAPI(c).CreatePrivateNetwork(&vpc.CreatePrivateNetworkRequest{Name: "other", Subnets: []scw.IPNet{subnet("192.168.7.0/24")}}))(w)
		must(ipam.NewAPI(c).BookIP(&ipam.BookIPRequest{ProjectID: project, Source: &ipam.Source{PrivateNetworkID: &n.ID}}))(w)
	}, "unused-private-addresses", []string{"192.168.7.", "keeps its network from being deleted", "scw ipam ip delete "}},
	"a volume of no server":        {func(w *world, c *scw.Client) { w.volume("scratch") }, "unused-volumes", []string{"volume scratch", "no server has it", "scw block volume delete "}},
	"a volume of a storage driver": {func(w *world, c *scw.Client) { w.volume(detached) }, "cluster-volumes", []string{detached, "no server has it that would say"}},
	"a snapshot of nothing": {func(w *world, c *scw.Client) {
		v := w.volume("scratch")
		blocks := block.NewAPI(c)
		s := must(blocks.CreateSnapshot(&block.CreateSnapshotRequest{Zone: zone, Name: "before-the-change", VolumeID: v}))(w)
		must(blocks.WaitForSnapshot(&block.WaitForSnapshotRequest{Zone: zone, SnapshotID: s.ID, RetryInterval: &often}))(w)
		must(blocks.WaitForVolume(&block.WaitForVolumeRequest{Zone: zone, VolumeID: v, RetryInterval: &often}))(w)
		if err := blocks.DeleteVolume(&block.DeleteVolumeRequest{Zone: zone, VolumeID: v}); err != nil {
			w.Fatal(err)
		}
	}, "unused-snapshots", []string{"snapshot before-the-change", "its volume is gone", "scw block snapshot delete "}},
	"a load balancer of nobody's cluster": {func(w *world, c *scw.Client) { w.controllerBalancer("web") },
		"cluster-load-balancers", []string{"default_web", "a cloud controller made it", "release-ip=true"}},
	"a load balancer that balances nothing": {func(w *world, c *scw.Client) {
		must(lb.NewZonedAPI(c).CreateLB(&lb.ZonedAPICreateLBRequest{Zone: zone, Name: "trial", Type: "LB-S", AssignFlexibleIP: scw.BoolPtr(true)}))(w)
	}, "idle-load-balancers", []string{"load balancer trial", "neither frontend nor backend"}},
	"a gateway of no network": {func(w *world, c *scw.Client) {
		must(vpcgw.NewAPI(c).CreateGateway(&vpcgw.CreateGatewayRequest{Zone: zone, Name: "trial", Type: "VPC-GW-S"}))(w)
	}, "idle-gateways", []string{"gateway trial", "is in no private network"}},
	"a bastion open to everybody": {func(w *world, c *scw.Client) {
		gw := w.find("gateway/staging-gateway").CloudID
		must(vpcgw.NewAPI(c).SetBastionAllowedIPs(&vpcgw.SetBastionAllowedIPsRequest{Zone: zone, GatewayID: gw, IPRanges: []string{"198.51.100.7/32", "0.0.0.0/0"}}))(w)
	}, "open-bastions", []string{"gateway staging-gateway", "0.0.0.0/0, which is everybody", "bastide up ENV"}},
	"a mapped port": {func(w *world, c *scw.Client) {
		must(vpcgw.NewAPI(c).CreatePatRule(&vpcgw.CreatePatRuleRequest{Zone: zone, GatewayID: w.find("gateway/staging-gateway").CloudID, PublicPort: 6443,
			PrivateIP: net.ParseIP("172.16.0.4"), PrivatePort: 6443, Protocol: vpcgw.PatRuleProtocolTCP}))(w)
	}, "open-ports", []string{"port 6443 of the gateway staging-gateway", "172.16.0.4 port 6443 for everybody", "scw vpc-gw pat-rule delete-v2 "}},
	"no default route": {func(w *world, c *scw.Client) {
		must(vpcgw.NewAPI(c).UpdateGatewayNetwork(&vpcgw.UpdateGatewayNetworkRequest{Zone: zone, GatewayNetworkID: w.find("gateway-network/staging-gateway").CloudID,
			EnableMasquerade: scw.BoolPtr(false), PushDefaultRoute: scw.BoolPtr(false)}))(w)
	}, "default-route", []string{"the nodes of staging", "reach nothing outside"}},
	"a node with a public address": {func(w *world, c *scw.Client) {
		ip := must(instance.NewAPI(c).CreateIP(&instance.CreateIPRequest{Zone: zone, Project: scw.StringPtr(project), Type: instance.IPTypeRoutedIPv4}))(w)
		must(instance.NewAPI(c).UpdateIP(&instance.UpdateIPRequest{Zone: zone, IP: ip.IP.ID, Server: &instance.NullableStringValue{Value: w.find("server/staging-cp-1").CloudID}}))(w)
	}, "public-nodes", []string{"server staging-cp-1", "and the estate is private", "scw instance ip detach "}},
	"a group that lets in everything": {func(w *world, c *scw.Client) {
		accept := instance.SecurityGroupPolicyAccept
		must(instance.NewAPI(c).UpdateSecurityGroup(&instance.UpdateSecurityGroupRequest{Zone: zone, SecurityGroupID: w.find("security-group/staging-nodes").CloudID, InboundDefaultPolicy: accept}))(w)
	}, "accepting-groups", []string{"security group staging-nodes", "lets in what no rule names, and staging-cp-1, "}},
	"a snapshot that is gone": {func(w *world, c *scw.Client) {
		blocks := block.NewAPI(c)
		for _, s := range must(blocks.ListSnapshots(&block.ListSnapshotsRequest{Zone: zone}))(w).Snapshots {
			name := "talos-old"
			must(blocks.UpdateSnapshot(&block.UpdateSnapshotRequest{Zone: zone, SnapshotID: s.ID, Name: &name}))(w)
		}
	}, "talos-snapshot", []string{"snapshot talos-v1.13.5", "no node can be made"}},
	"a network of the estate's name": {func(w *world, c *scw.Client) {
		must(vpc.NewAPI(c).CreateVPC(&vpc.CreateVPCRequest{Name: "staging"}))(w)
	}, "names-without-mark", []string{"vpc staging", "has the name of vpc/staging and carries no mark", "bastide:step=vpc/staging"}},
	"a mark that nothing explains": {func(w *world, c *scw.Client) {
		must(block.NewAPI(c).CreateVolume(&block.CreateVolumeRequest{Zone: zone, Name: "old", FromEmpty: &block.CreateVolumeRequestFromEmpty{Size: 10e9}, PerfIops: scw.Uint32Ptr(5000),
			Tags: []string{"bastide:estate=staging", "bastide:step=volume/staging-old-1"}}))(w)
	}, "unexplained-marks", []string{"volume old", "the file does not ask for it"}},
	"somebody in the estate's network": {func(w *world, c *scw.Client) {
		id := w.find("private-network/staging").CloudID
		must(ipam.NewAPI(c).BookIP(&ipam.BookIPRequest{ProjectID: project, Source: &ipam.Source{PrivateNetworkID: &id}}))(w)
	}, "in-the-way", []string{"stops a destroy"}},
}

func subnet(s string) scw.IPNet {
	_, n, err := net.ParseCIDR(s)
	if err != nil {
		panic(err)
	}
	return scw.IPNet{IPNet: *n}
}

func TestDoctorFinds(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	for name, a := range ailments {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			w := newWorld(t, privateEstate(1))
			w.mustUp()
			a.do(w, w.somebody())
			w.settled()
			found := w.examine()
			if !slices.ContainsFunc(found[a.check], func(f string) bool {
				return !slices.ContainsFunc(a.words, func(word string) bool { return !strings.Contains(f, word) })
			}) {
				t.Errorf("%s does not say %q: %v", a.check, a.words, found)
			}
			for other := range found {
				if other != a.check && !slices.Contains(consequences[name], other) {
					t.Errorf("%s found %v as well", other, found[other])
				}
			}
		})
	}
}

// What somebody is deleting is on its way out: no check finds it, so that advice
// just followed is not given again. The region is slow, so that both are still there.
func TestDoctorLeavesOutWhatIsLeaving(t *testing.T) {
	t.Parallel()
	w := newWorldAt(t, privateEstate(1), 1)
	balancers := lb.NewZonedAPI(w.somebody())
	balancer := must(balancers.CreateLB(&lb.ZonedAPICreateLBRequest{Zone: zone, Name: "default_web", Type: "LB-S", AssignFlexibleIP: scw.BoolPtr(true),
		Tags: []string{"managed-by-scaleway-cloud-controller-manager"}}))(w)
	idle := must(balancers.CreateLB(&lb.ZonedAPICreateLBRequest{Zone: zone, Name: "trial", Type: "LB-S", AssignFlexibleIP: scw.BoolPtr(true)}))(w)
	before := w.examine()
	for _, check := range []string{"cluster-load-balancers", "idle-load-balancers"} {
		if len(before[check]) != 1 {
			t.Errorf("before the deletions %s found %v", check, before[check])
		}
	}

	for _, id := range []string{balancer.ID, idle.ID} {
		if err := balancers.DeleteLB(&lb.ZonedAPIDeleteLBRequest{Zone: zone, LBID: id, ReleaseIP: true}); err != nil {
			t.Fatal(err)
		}
	}
	if found := w.examine(); len(found) > 0 {
		t.Errorf("while they are deleted: %v", found)
	}
	if n := len(must(balancers.ListLBs(&lb.ZonedAPIListLBsRequest{Zone: zone}))(w).LBs); n != 2 {
		t.Errorf("%d load balancers are still there, so the test asked too late", n)
	}
}

// consequences are the checks that find the same act as well, and rightly.
var consequences = map[string][]string{
	"a snapshot that is gone":          {"unused-snapshots"},
	"somebody in the estate's network": {"unused-private-addresses"},
}

// Of a listing that cannot be read nothing is concluded: its checks say so, and
// the others are made.
func TestDoctorSaysWhatItDidNotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	w.volume("scratch")
	w.settled()
	w.budget = 1
	estate := []string{"taken-names", "closed-products", "unexplained-marks", "in-the-way", "default-route", "cluster-load-balancers", "cluster-volumes", "cluster-snapshots"}
	for path, mine := range map[string][]string{
		"/instance/**/ips":          {"unused-flexible-addresses"},
		"/vpc-gw/**/pat-rules":      {"open-ports"},
		"/lb/**/ips":                append([]string{"unused-load-balancer-addresses"}, estate...),
		"/lb/v1/zones/fr-par-2/lbs": append([]string{"idle-load-balancers", "names-without-mark"}, estate...),
		"/instance/**/servers":      append([]string{"interfaces-without-server", "public-nodes", "accepting-groups", "names-without-mark"}, estate...),
	} {
		for _, rule := range []fault.HTTPRule{{Status: 403, Body: map[string]any{"type": "permissions_denied", "message": "m"}}, {Status: 500}, {Status: 200, Body: map[string]any{}}} {
			rule.Method, rule.Path = "GET", path
			if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{rule}}); err != nil {
				t.Fatal(err)
			}
			var unread, found []string
			for _, c := range w.checks() {
				if c.Unread != "" {
					unread = append(unread, c.Name)
					if !strings.Contains(c.Unread, "could not be listed") {
						t.Errorf("%s: %s", c.Name, c.Unread)
					}
				}
				if len(c.Findings) > 0 {
					found = append(found, c.Name)
				}
			}
			slices.Sort(unread)
			slices.Sort(mine)
			if !slices.Equal(unread, mine) || fmt.Sprint(found) != "[unused-volumes]" {
				t.Errorf("%s %d: not read %v, want %v; found %v", path, rule.Status, unread, mine, found)
			}
		}
	}
	w.region.Faults().Clear()
}

// What the estate can have in a product that the key may not read is not known,
// also when the file uses none of it.
func TestDoctorNamesClosedProducts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneNode())
	w.seed(api.Seed{Permissions: &api.Credential{Deny: []string{"registry", "iam"}}})
	for _, c := range w.checks() {
		if closed := c.Name == "closed-products"; closed != (c.Unread != "") || closed && (!strings.Contains(c.Unread, "SSH keys") || !strings.Contains(c.Unread, "registry namespaces")) {
			t.Errorf("%s: %q", c.Name, c.Unread)
		}
	}
}

// A name that somebody else has is found before up trips over it.
func TestDoctorFindsTakenNames(t *testing.T) {
	t.Parallel()
	w := newServicesWorld(t, smallServices())
	must(secret.NewAPI(w.somebody()).CreateSecret(&secret.CreateSecretRequest{ProjectID: project, Name: "session-key", Path: scw.StringPtr("/app"), Type: "opaque"}))(t)
	found := w.examine()
	if len(found) != 1 || len(found["taken-names"]) != 1 || !strings.HasPrefix(found["taken-names"][0], "secret/app/session-key: ") {
		t.Errorf("found %v", found)
	}
}

// An interface whose server is gone is in no server's listing; only the
// project's own listing of interfaces shows it.
func TestDoctorFindsLostInterfaces(t *testing.T) {
	t.Parallel()
	e := privateEstate(1)
	region := newWorld(t, e).region
	w := serve(t, e, region, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/private-network-interfaces") {
			region.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		nic := func(id string, tags ...string) map[string]any {
			return map[string]any{"id": id, "server_id": "33333333-3333-4333-8333-333333333333", "private_network_id": "44444444-4444-4444-8444-444444444444",
				"mac_address": "02:00:00:12:34:56", "zone": zone, "tags": tags}
		}
		_ = json.NewEncoder(rw).Encode(map[string]any{"total_count": 2, "private_network_interfaces": []any{
			nic("55555555-5555-4555-8555-555555555555"), nic("66666666-6666-4666-8666-666666666666", "bastide:estate=another")}})
	}), speed)
	found := w.examine()
	if len(found) != 1 || len(found["interfaces-without-server"]) != 1 || !strings.Contains(found["interfaces-without-server"][0], "02:00:00:12:34:56 (55555555-") {
		t.Errorf("found %v", found)
	}
}
