package scaleway_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// drift changes by hand everything that a run can change back.
func (w *world) drift() {
	w.Helper()
	id := func(step string) string { return w.find(step).CloudID }
	yes, no := scw.BoolPtr(true), scw.BoolPtr(false)
	other := w.somebody()
	gateways, instances, balancers := vpcgw.NewAPI(other), instance.NewAPI(other), lb.NewZonedAPI(other)
	must(vpc.NewAPI(other).UpdateVPC(&vpc.UpdateVPCRequest{VpcID: id("vpc/staging"), Name: scw.StringPtr("renamed")}))(w)
	gateway := id("gateway/staging-gateway")
	rest := func() { // every change makes a gateway busy
		must(gateways.WaitForGateway(&vpcgw.WaitForGatewayRequest{GatewayID: gateway, RetryInterval: scw.TimeDurationPtr(time.Millisecond)}))(w)
	}
	must(gateways.SetBastionAllowedIPs(&vpcgw.SetBastionAllowedIPsRequest{GatewayID: gateway, IPRanges: []string{"0.0.0.0/0"}}))(w)
	rest()
	must(gateways.UpdateGateway(&vpcgw.UpdateGatewayRequest{GatewayID: gateway, EnableBastion: no}))(w)
	rest()
	must(gateways.UpdateGatewayNetwork(&vpcgw.UpdateGatewayNetworkRequest{GatewayNetworkID: id("gateway-network/staging-gateway"), EnableMasquerade: yes, PushDefaultRoute: no}))(w)
	rest()
	must(instances.UpdateSecurityGroup(&instance.UpdateSecurityGroupRequest{SecurityGroupID: id("security-group/staging-nodes"), InboundDefaultPolicy: instance.SecurityGroupPolicyAccept}))(w)
	enforced := instance.PlacementGroupPolicyModeEnforced
	must(instances.UpdatePlacementGroup(&instance.UpdatePlacementGroupRequest{PlacementGroupID: id("placement-group/staging-system"), PolicyMode: &enforced}))(w)
	must(instances.ServerAction(&instance.ServerActionRequest{ServerID: id("server/staging-cp-1"), Action: instance.ServerActionPoweroff}))(w)
	must(block.NewAPI(other).UpdateVolume(&block.UpdateVolumeRequest{VolumeID: id("volume/staging-system-1"), PerfIops: scw.Uint32Ptr(15000)}))(w)
	backend := id("lb-backend/staging-api")
	must(balancers.SetBackendServers(&lb.ZonedAPISetBackendServersRequest{BackendID: backend, ServerIP: []string{"172.16.0.99"}}))(w)
}

// Every change that corrects drift fails once, in every way, and is made all the
// same. (What a run makes from nothing is another test.)
func TestEveryCorrectionFailsOnce(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	for name, rule := range once {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, privateEstate(1))
			w.mustUp()
			w.drift()
			w.afflict(rule)
			mark := len(w.region.Requests(0))
			w.mustUp()
			w.attempt = 5e9
			w.region.Faults().Clear()
			w.wantConverged()
			_, calls := w.writes(mark)
			for _, want := range []string{"PATCH /vpc/", "PUT /vpc-gw/", "PATCH /vpc-gw/v2/zones/fr-par-1/gateways/", "PATCH /vpc-gw/v2/zones/fr-par-1/gateway-networks/",
				"PATCH /instance/v1/zones/fr-par-1/security_groups/", "PATCH /instance/v1/zones/fr-par-1/placement_groups/", "PATCH /block/", "PUT /lb/", "POST /instance/v1/zones/fr-par-1/servers/"} {
				if !slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, want) }) {
					t.Errorf("nothing was corrected with %s", want)
				}
			}
		})
	}
}
