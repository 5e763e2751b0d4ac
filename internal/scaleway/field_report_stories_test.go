package scaleway_test

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/sim/fault"

	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// Field report 38: a zone's first default group is not even stateful. A server
// that somebody moved to it is drift.
func TestFieldReport38DefaultSecurityGroupIsDrift(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	api := instance.NewAPI(w.somebody())
	all := must(api.ListSecurityGroups(&instance.ListSecurityGroupsRequest{ProjectDefault: scw.BoolPtr(true)}))(t)
	must(api.UpdateServer(&instance.UpdateServerRequest{ServerID: w.find("server/staging-cp-2").CloudID,
		SecurityGroup: &instance.SecurityGroupTemplate{ID: all.SecurityGroups[0].ID, Name: "x"}}))(t)
	if a := w.action("server/staging-cp-2"); a.Op != plan.Update || !strings.HasPrefix(a.Changes[0].Have, "foreign:") {
		t.Errorf("%s %+v", a.Op, a.Changes)
	}
	w.mustUp()
	w.wantConverged()
	g := must(api.GetSecurityGroup(&instance.GetSecurityGroupRequest{SecurityGroupID: w.find("security-group/staging-nodes").CloudID}))(t).SecurityGroup
	if !g.Stateful || g.InboundDefaultPolicy != instance.SecurityGroupPolicyDrop || !g.EnableDefaultSecurity {
		t.Errorf("the group is %+v", g)
	}
}

// Field report 37: no rule may name port 0 or leave the port out, which opens all.
func TestFieldReport37NoRuleWithoutAPort(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	step := blueprint.Step{ID: "security-group/staging-nodes", Kind: blueprint.KindSecurityGroup, Name: "staging-nodes", Spec: blueprint.SecurityGroup{Name: "staging-nodes",
		Description: "made by bastide for the estate staging", Zone: zone, BlocksMail: true, Stateful: true, InboundDefault: "drop", OutboundDefault: "accept",
		Rules: []blueprint.Rule{{Action: "accept", Protocol: "TCP", Direction: "inbound", Range: prefix("198.51.100.7/32").Prefix}}}}
	mark := len(w.region.Requests(0))
	_, err := w.cloud().Apply(t.Context(), plan.Action{Step: step, Op: plan.Update}, nil)
	wantError(t, err, outcome.Failed, "names no port")
	if n, which := w.writes(mark); n > 0 {
		t.Errorf("wrote %v", which)
	}
}

// Field report 19: leftover user data would keep Talos from ever waiting for its
// configuration.
func TestFieldReport19LeftoverUserData(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	api, id := instance.NewAPI(w.somebody()), w.find("server/staging-system-1").CloudID
	must(api.ServerAction(&instance.ServerActionRequest{ServerID: id, Action: instance.ServerActionPoweroff}))(t)
	if err := api.SetServerUserData(&instance.SetServerUserDataRequest{ServerID: id, Key: "cloud-init", Content: strings.NewReader("#!/bin/sh\n")}); err != nil {
		t.Fatal(err)
	}
	wantError(t, w.up(t.Context(), w.cloud()), outcome.Failed, "staging-system-1 was not started", "10 bytes of cloud-init user data", "scw instance user-data delete server-id="+id)
	if err := api.DeleteServerUserData(&instance.DeleteServerUserDataRequest{ServerID: id, Key: "cloud-init"}); err != nil {
		t.Fatal(err)
	}
	w.mustUp()
	w.wantConverged()
}

// Field report 40: an address that is wanted and taken stops the run before
// anything is made, naming the holder.
func TestFieldReport40AddressIsTaken(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	other := ipam.NewAPI(w.somebody())
	network := w.find("private-network/staging").CloudID
	next := net.ParseIP("172.16.0.8")
	booked := must(other.BookIP(&ipam.BookIPRequest{ProjectID: project, Source: &ipam.Source{PrivateNetworkID: &network}, Address: &next}))(t)
	w.estate.Pools[0].Count = 2
	a := w.action("address/staging-system-2")
	if a.Op != plan.Refuse || !strings.Contains(a.Reason, "172.16.0.8 is held by the booking "+booked.ID) {
		t.Fatalf("%s: %s", a.Op, a.Reason)
	}
	mark := len(w.region.Requests(0))
	wantError(t, w.up(t.Context(), w.cloud()), outcome.Refused, "172.16.0.8 is held by")
	if n, which := w.writes(mark); n > 0 {
		t.Errorf("wrote %v", which)
	}
	// The same when it is taken between plan and booking.
	step := a.Step
	known := knows{"private-network/staging": network}
	_, err := w.cloud().Apply(t.Context(), plan.Action{Step: step, Op: plan.Create}, known)
	wantError(t, err, outcome.Failed, "the address 172.16.0.8 could not be booked", "the booking "+booked.ID)
}

type knows map[string]string

func (k knows) Get(step string) (plan.Observed, bool) {
	id, ok := k[step]
	return plan.Observed{Step: step, CloudID: id}, ok
}

// Field report 41: no call leaves the project to a default.
func TestFieldReport41EveryCallCarriesTheProject(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	var mu sync.Mutex
	watch := func(next http.RoundTripper) http.RoundTripper {
		return transport(func(req *http.Request) (*http.Response, error) {
			var body []byte
			if req.Body != nil {
				body, _ = io.ReadAll(req.Body)
				req.Body = io.NopCloser(strings.NewReader(string(body)))
			}
			mu.Lock()
			defer mu.Unlock()
			if missing(req, string(body)) {
				t.Errorf("no project in %s %s?%s %s", req.Method, req.URL.Path, req.URL.RawQuery, body)
			}
			return next.RoundTrip(req)
		})
	}
	if err := w.up(t.Context(), w.cloud(watch)); err != nil {
		t.Fatal(err)
	}
	if err := w.destroy(t.Context(), w.cloud(watch)); err != nil {
		t.Fatal(err)
	}
}

// missing says whether a call for a collection lacks the project. Collections
// under a parent take it from there.
func missing(req *http.Request, body string) bool {
	collection := []string{"servers", "security_groups", "placement_groups", "volumes", "snapshots", "vpcs", "private-networks", "ips", "gateways", "lbs", "ssh-keys"}
	parts := strings.Split(req.URL.Path, "/")
	if !slices.Contains(collection, parts[len(parts)-1]) || strings.Contains(req.URL.Path, "/lbs/") {
		return false
	}
	q := req.URL.Query()
	return !(q.Get("project") == project || q.Get("project_id") == project || req.Method == http.MethodPost && strings.Contains(body, project))
}

// Field report 46: a gateway that is busy with another change refuses the next
// one for a while; any other conflict is final.
func TestFieldReport46BusyGateway(t *testing.T) {
	busy := map[string]any{"type": "transient_state", "message": "resource is in a transient state", "resource": "gateway", "resource_id": "x", "current_state": "configuring"}
	for name, test := range map[string]struct {
		body map[string]any
		want outcome.Code
	}{"transient": {busy, outcome.Done}, "taken": {map[string]any{"message": "name is taken"}, outcome.Failed}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, privateEstate(1))
			rule := fault.HTTPRule{Method: "POST", Path: "/vpc-gw/**/gateway-networks", When: fault.When{From: 1, Count: 3}, Status: 409, Body: test.body}
			if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{rule}}); err != nil {
				t.Fatal(err)
			}
			err := w.up(t.Context(), w.cloud())
			if outcome.CodeOf(err) != test.want {
				t.Fatalf("got %v", err)
			}
			if err == nil {
				w.wantConverged()
			} else {
				wantError(t, err, outcome.Failed, "gateway-network staging-gateway", "409: name is taken")
			}
		})
	}
}

func stop(t *testing.T, client *scw.Client, id string) {
	t.Helper()
	api := instance.NewAPI(client)
	must(api.ServerAction(&instance.ServerActionRequest{ServerID: id, Action: instance.ServerActionPoweroff}))(t)
	for must(api.GetServer(&instance.GetServerRequest{ServerID: id}))(t).Server.State != instance.ServerStateStopped {
	}
}

// Stock is looked at before the first thing is made. (Field report 45.)
func TestFieldReport45StockIsCheckedFirst(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	_, p, _, err := w.plan(t.Context(), w.cloud())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.cloud().CheckStock(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.estate.ControlPlane.Type = "PLAY9-HUGE"
	if _, p, _, err = w.plan(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	_, err = w.cloud().CheckStock(t.Context(), p)
	wantError(t, err, outcome.Refused, "staging-cp-1, staging-cp-2, staging-cp-3 cannot be made", "fr-par-1 does not offer the type PLAY9-HUGE")
	w.estate.ControlPlane.Type = "PLAY2-NANO"
	answer := map[string]any{"servers": map[string]any{"PLAY2-NANO": map[string]any{"availability": "shortage"}, "PLAY2-MICRO": map[string]any{"availability": "scarce"}}}
	rule := fault.HTTPRule{Method: "GET", Path: "/instance/**/availability", Status: 200, Body: answer, Headers: map[string]string{"X-Total-Count": "2"}}
	if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{rule}}); err != nil {
		t.Fatal(err)
	}
	if _, p, _, err = w.plan(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	_, err = w.cloud().CheckStock(t.Context(), p)
	wantError(t, err, outcome.Refused, "PLAY2-NANO is out of stock in fr-par-1")
}
