package scaleway_test

import (
	"slices"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// A gateway or its address that is bound to the estate and lost the mark is
// refused by its ID, with the tags that give it back, and no second one is made;
// doctor names it too. With the tags it is the estate's again.
func TestAGatewayWithoutItsMark(t *testing.T) {
	t.Parallel()
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	api := vpcgw.NewAPI(w.somebody())
	gateway := must(api.ListGateways(&vpcgw.ListGatewaysRequest{}))(t).Gateways[0]
	named := func(name string, tags []string) {
		must(api.UpdateGateway(&vpcgw.UpdateGatewayRequest{GatewayID: gateway.ID, Name: &name, Tags: &tags}))(t)
		for must(api.GetGateway(&vpcgw.GetGatewayRequest{GatewayID: gateway.ID}))(t).Status != vpcgw.GatewayStatusRunning {
		}
	}
	address := func(tags []string) {
		must(api.UpdateIP(&vpcgw.UpdateIPRequest{IPID: gateway.IPv4.ID, Tags: &tags}))(t)
	}
	for _, c := range []struct {
		name, step, id string
		lose, give     func()
		refused        []string
	}{
		{"the gateway", "gateway/staging-gateway", gateway.ID, func() { named(gateway.Name, []string{"x"}) }, func() { named(gateway.Name, gateway.Tags) },
			[]string{"gateway/staging-gateway", "gateway-network/staging-gateway"}},
		{"the gateway, renamed as well", "gateway/staging-gateway", gateway.ID, func() { named("front", []string{"x"}) }, func() { named(gateway.Name, gateway.Tags) },
			[]string{"gateway/staging-gateway", "gateway-network/staging-gateway"}},
		{"the address", "gateway-ip/staging-gateway", gateway.IPv4.ID, func() { address([]string{"x"}) }, func() { address(gateway.IPv4.Tags) },
			[]string{"gateway-ip/staging-gateway"}},
		{"both", "gateway-ip/staging-gateway", gateway.IPv4.ID, func() { named(gateway.Name, []string{}); address([]string{}) }, func() { named(gateway.Name, gateway.Tags); address(gateway.IPv4.Tags) },
			[]string{"gateway-ip/staging-gateway", "gateway/staging-gateway", "gateway-network/staging-gateway"}},
	} {
		c.lose()
		var refused []string
		_, p, _, err := w.plan(t.Context(), w.cloud())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range p.Actions {
			if a.Op == plan.Refuse {
				refused = append(refused, a.Step.ID)
			} else if a.Op != plan.Keep && !a.Step.Kind.Cluster() {
				t.Errorf("%s: %s is to be %sd: %s", c.name, a.Step.ID, a.Op, a.Reason)
			}
			if a.Step.ID == c.step && (!strings.Contains(a.Reason, c.id) || !strings.Contains(a.Reason, blueprint.TagEstate+"staging") || !strings.Contains(a.Reason, blueprint.TagStep+c.step)) {
				t.Errorf("%s: %s", c.name, a.Reason)
			}
		}
		slices.Sort(refused)
		slices.Sort(c.refused)
		if !slices.Equal(refused, c.refused) {
			t.Errorf("%s: refused %v, want %v", c.name, refused, c.refused)
		}
		if found := strings.Join(w.examine()["names-without-mark"], "\n"); !strings.Contains(found, c.id) || !strings.Contains(found, blueprint.TagStep+c.step) {
			t.Errorf("%s: doctor says %q", c.name, found)
		}
		c.give()
		w.wantConverged()
	}
}

// A gateway that is nobody's and in nobody's way is left alone, whatever its name.
func TestAnotherGatewayIsNotTheEstates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, privateEstate(1))
	api := vpcgw.NewAPI(w.somebody())
	must(api.CreateGateway(&vpcgw.CreateGatewayRequest{Name: "staging-gateway", Type: "VPC-GW-S", BastionPort: scw.Uint32Ptr(61000)}))(t)
	w.mustUp()
	w.wantConverged()
}
