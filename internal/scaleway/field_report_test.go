package scaleway_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/sim/fault"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// creates are the actions of a fresh plan that would make something.
func (w *world) creates() []string {
	w.Helper()
	_, p, _, err := w.plan(w.Context(), w.cloud())
	if err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, a := range p.Having(plan.Create) {
		out = append(out, a.Step.ID)
	}
	return out
}

// Field report 65: nodes that exist were not seen, so more were planned. Here a
// control plane node is on a second page, one has lost a tag and one is stopped:
// nothing is planned twice, and what was lost is said.
func TestFieldReport65NodesThatExistAreNotMadeAgain(t *testing.T) {
	const workers = 120 // more than a page of 100
	w := newWorld(t, privateEstate(workers))
	w.mustUp()
	mark := len(w.region.Requests(0))
	w.wantConverged()
	pages := map[string]int{}
	for _, r := range w.region.Requests(mark) {
		if strings.HasSuffix(r.Path, "/servers") {
			pages[r.Path]++
		}
	}
	if len(pages) != 1 || pages["/instance/v1/zones/"+zone+"/servers"] < 2 {
		t.Fatalf("the servers were not on two pages: %v", pages)
	}
	api := instance.NewAPI(w.somebody())
	for name, spoil := range map[string]func(id string){
		"staging-cp-1": func(id string) {
			must(api.ServerAction(&instance.ServerActionRequest{ServerID: id, Action: instance.ServerActionPoweroff}))(t)
		},
		"staging-cp-2": func(id string) { // without the tag that says what it is
			must(api.UpdateServer(&instance.UpdateServerRequest{ServerID: id, Tags: &[]string{"bastide:estate=staging"}}))(t)
		},
		"staging-cp-3": func(id string) { // without any: renamed as well, so that nothing but its disks tells
			name := "web"
			must(api.UpdateServer(&instance.UpdateServerRequest{ServerID: id, Tags: &[]string{}, Name: &name}))(t)
		},
	} {
		spoil(w.find("server/" + name).CloudID)
	}
	w.settled()
	if made := w.creates(); len(made) > 0 {
		t.Errorf("the plan makes %v, which exist", made)
	}
	if a := w.action("server/staging-cp-2"); a.Op != plan.Refuse || !strings.Contains(a.Reason, "has lost the tag bastide:step=server/staging-cp-2") {
		t.Errorf("the untagged node: %s %s", a.Op, a.Reason)
	}
	if a := w.action("server/staging-cp-3"); a.Op != plan.Refuse || !strings.Contains(a.Reason, "carries no mark of the estate; if it is this node, give it the tags bastide:estate=staging") {
		t.Errorf("the unmarked node: %s %s", a.Op, a.Reason)
	}
	before := len(w.region.Requests(0))
	err := w.up(t.Context(), w.cloud())
	wantError(t, err, outcome.Refused, "staging-cp-2")
	if n, which := w.writes(before); n > 0 {
		t.Errorf("wrote %v", which)
	}
}

// A listing that cannot be read, on any page, is unknown and not "none".
func TestFieldReport65AnUnreadablePageIsUnknown(t *testing.T) {
	w := newWorld(t, privateEstate(120))
	w.mustUp()
	w.budget, w.backoff = time.Second, time.Millisecond
	for _, page := range []string{"1", "2"} {
		for _, rule := range []fault.HTTPRule{{Status: 500}, {Status: 403}, {Truncate: 100}, {ShortPage: 1}} {
			rule.Method, rule.Path, rule.Query = "GET", "/instance/**/servers", map[string]string{"page": page}
			if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{rule}}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.cloud().Inventory(t.Context()); outcome.CodeOf(err) != outcome.Unknown || !strings.Contains(err.Error(), "servers") {
				t.Errorf("page %s, %+v: %v", page, rule, err)
			}
		}
	}
}

// Field report 67: another gateway has another address, which nodes learn with
// their next lease only. A change that would make one is refused, and says so.
func TestFieldReport67AnotherGatewayIsRefused(t *testing.T) {
	for name, change := range map[string]func(e *estate.Estate){
		"type": func(e *estate.Estate) { e.Network.Gateway.Type = "VPC-GW-M" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, privateEstate(1))
			w.mustUp()
			change(w.estate)
			a := w.action("gateway/staging-gateway")
			if a.Op != plan.Refuse || !strings.Contains(a.Reason, "loses egress until its lease is renewed or it reboots") {
				t.Errorf("%s %s", a.Op, a.Reason)
			}
			before := len(w.region.Requests(0))
			wantError(t, w.up(t.Context(), w.cloud()), outcome.Refused, "loses egress")
			if n, which := w.writes(before); n > 0 {
				t.Errorf("wrote %v", which)
			}
		})
	}
}

// Another zone would make a second estate beside the first: what holds its
// addresses is named, and nothing is written.
func TestFieldReport67AnotherZoneIsRefused(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	w.estate.Scaleway.Zones = []string{"fr-par-2"}
	for _, id := range []string{"address/staging-gateway", "address/staging-cp-1"} {
		if a := w.action(id); a.Op != plan.Refuse || !strings.Contains(a.Reason, "is held by") {
			t.Errorf("%s: %s %s", id, a.Op, a.Reason)
		}
	}
	before := len(w.region.Requests(0))
	wantError(t, w.up(t.Context(), w.cloud()), outcome.Refused, "is held by vpc_gateway_network staging-gateway")
	if n, which := w.writes(before); n > 0 {
		t.Errorf("wrote %v", which)
	}
}

// The file takes a zone if, and only if, the SDK offers there all that a private
// estate is made of.
func TestFieldReport67ZonesHaveWhatAnEstateNeeds(t *testing.T) {
	client := newWorld(t, privateEstate(1)).somebody()
	products := map[string][]scw.Zone{"public gateways": vpcgw.NewAPI(client).Zones(), "load balancers": lb.NewZonedAPI(client).Zones(),
		"Instances": instance.NewAPI(client).Zones(), "block storage": block.NewAPI(client).Zones()}
	for _, z := range scw.AllZones {
		region, err := z.Region()
		if err != nil {
			t.Fatal(err)
		}
		whole := true
		for _, zones := range products {
			whole = whole && slices.Contains(zones, z)
		}
		e := privateEstate(1)
		e.Scaleway.Region, e.Scaleway.Zones = string(region), []string{string(z)}
		err = estate.Validate(e)
		if refused := err != nil && strings.Contains(err.Error(), "scaleway.zones[0]"); refused == whole {
			t.Errorf("%s: refused is %v and it has all products is %v: %v", z, refused, whole, err)
		}
	}
}

// Field report 36: on the network may lie a booking of the estate's, an
// interface whose server is gone, or something of others. (The first two are in
// TestFieldReport36LeftoversInTheNetwork.) Of the third nothing is removed.
func TestFieldReport36ForeignThingsStopATeardown(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	network := w.find("private-network/staging").CloudID
	theirs := must(ipam.NewAPI(w.somebody()).BookIP(&ipam.BookIPRequest{ProjectID: project, Source: &ipam.Source{PrivateNetworkID: &network}, Tags: []string{"bastide:estate=other"}}))(t)
	w.settled()
	before := len(w.region.Requests(0))
	wantError(t, w.destroy(t.Context(), w.cloud()), outcome.Refused, theirs.ID)
	if n, which := w.writes(before); n > 0 {
		t.Errorf("wrote %v", which)
	}
}

// Field report 37: not one rule in the log of a whole life names port 0, leaves
// the port out, or spans from 0.
func TestFieldReport37NoRuleInTheLogOpensEverything(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	var mu sync.Mutex
	var bodies []string
	watch := func(next http.RoundTripper) http.RoundTripper {
		return transport(func(req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.Path, "/security_groups") && fault.Mutates(req.Method) && req.GetBody != nil {
				body, _ := req.GetBody()
				buffer := make([]byte, 1<<16)
				n, _ := body.Read(buffer)
				mu.Lock()
				bodies = append(bodies, string(buffer[:n]))
				mu.Unlock()
			}
			return next.RoundTrip(req)
		})
	}
	if err := w.up(t.Context(), w.cloud(watch)); err != nil {
		t.Fatal(err)
	}
	if len(bodies) == 0 {
		t.Fatal("no call about a security group was seen")
	}
	for _, body := range bodies {
		for _, bad := range []string{`"protocol":"ANY","`, `"dest_port_from":0`, `"dest_port_from":null`} {
			if strings.Contains(body, bad) && strings.Contains(body, "accept") && strings.Contains(body, `"direction":"inbound"`) {
				t.Errorf("a rule opens everything: %s", body)
			}
		}
	}
	group := w.find("security-group/staging-nodes").Spec.(blueprint.SecurityGroup)
	if group.InboundDefault != "drop" || !group.Stateful {
		t.Errorf("the group is %+v", group)
	}
	for _, r := range group.Rules {
		if r.Direction == "inbound" && r.Action == "accept" {
			t.Errorf("nodes have no public interface and yet a rule lets something in: %+v", r)
		}
	}
	for _, it := range []string{"server/staging-cp-1", "server/staging-system-1"} {
		s := must(instance.NewAPI(w.somebody()).GetServer(&instance.GetServerRequest{ServerID: w.find(it).CloudID}))(t).Server
		if len(s.PublicIPs) > 0 || s.DynamicIPRequired {
			t.Errorf("%s has a public address: %+v", it, s.PublicIPs)
		}
	}
}

// Field report 40: addresses are booked before anything is attached to the
// network, so a collision cannot come half way.
func TestFieldReport40AddressesAreBookedBeforeAnythingAttaches(t *testing.T) {
	w := newWorld(t, privateEstate(2))
	g, err := blueprint.Build(w.estate, nil, []string{sshKey})
	if err != nil {
		t.Fatal(err)
	}
	w.mustUp()
	booked, attached := 0, 0
	for _, r := range w.region.Requests(0) {
		switch {
		case r.Method != http.MethodPost || r.Status >= 300:
		case strings.HasSuffix(r.Path, "/ips") && strings.HasPrefix(r.Path, "/ipam/"):
			booked++
		case strings.HasSuffix(r.Path, "/private_nics"), strings.HasSuffix(r.Path, "/gateway-networks"), strings.HasSuffix(r.Path, "/attach-private-network"):
			if attached++; attached > booked {
				t.Errorf("%d things were attached and %d addresses were booked", attached, booked)
			}
		}
	}
	if booked != 7 || attached == 0 {
		t.Errorf("%d bookings, %d attachments", booked, attached)
	}
	for _, s := range g.Steps {
		if s.Kind == blueprint.KindPrivateNIC || s.Kind == blueprint.KindGatewayNetwork || s.Kind == blueprint.KindLBAttachment {
			if !slices.ContainsFunc(s.Needs, func(id string) bool { return strings.HasPrefix(id, "address/") }) {
				t.Errorf("%s needs no booking: %v", s.ID, s.Needs)
			}
		}
	}
}

// Field report 45: "too many requests" is waited out as the answer says, however
// often it comes, and the run then ends well.
func TestFieldReport45TooManyRequestsIsHonoured(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	rule := fault.HTTPRule{Method: "mutating", Path: "/**", Per: "path", When: fault.When{From: 1, Count: 5}, Status: 429, Headers: map[string]string{"Retry-After": "0"}}
	if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{rule}}); err != nil {
		t.Fatal(err)
	}
	w.mustUp()
	w.wantConverged()
}

// A zone that runs out while a run is under way ends it at the first refusal,
// naming node, type and zone; what was made stays for the next run.
func TestFieldReport45StockThatEndsDuringARun(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	rule := fault.HTTPRule{Method: "POST", Path: "/instance/**/servers", When: fault.When{From: 2}, Status: 403,
		Body: map[string]any{"type": "out_of_stock", "message": "m", "resource": "PLAY2-NANO"}}
	if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{rule}}); err != nil {
		t.Fatal(err)
	}
	wantError(t, w.up(t.Context(), w.cloud()), outcome.Failed, "out of stock", "in "+zone, "server staging-")
	if err := w.region.LoadFaults(fault.Script{}); err != nil {
		t.Fatal(err)
	}
	w.mustUp()
	w.wantConverged()
}

// Field report 19: what bastide itself makes carries no user data, so Talos is
// left to wait for its configuration.
func TestFieldReport19NewServersCarryNoUserData(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	for _, r := range w.region.Requests(0) {
		if r.Mutating && strings.Contains(r.Path, "/user_data") {
			t.Errorf("%s %s writes user data", r.Method, r.Path)
		}
	}
}

// Field report 60: a killed run leaves nothing that has to be removed by hand;
// the next one adopts what there is and ends. Here the kill comes at the call
// that makes each kind of thing; TestKilledAtEveryCallOfUp does it at all.
func TestFieldReport60TheRunAfterAKillAdopts(t *testing.T) {
	for _, n := range []int64{1, 5, 12, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t, privateEstate(1))
			ctx, cancel := context.WithCancel(t.Context())
			kill, dead := killAt(n, true, cancel)
			err := w.up(ctx, w.cloud(kill))
			cancel()
			if !dead.Load() || err == nil {
				t.Fatalf("it was not killed: %v", err)
			}
			w.served.drain()
			made := w.census()
			w.mustUp()
			w.wantConverged()
			if made == w.census() {
				t.Error("the kill came after everything was made")
			}
		})
	}
}
