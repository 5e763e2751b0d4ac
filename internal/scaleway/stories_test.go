package scaleway_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/scaleway"
	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// somebody is another client with the same key: a person at the console.
func (w *world) somebody() *scw.Client {
	w.Helper()
	c, err := scw.NewClient(scw.WithAPIURL(w.url), scw.WithAuth("SCWXXXXXXXXXXXXXXXXX", "22222222-2222-4222-8222-222222222222"),
		scw.WithDefaultProjectID(project), scw.WithDefaultRegion("fr-par"), scw.WithDefaultZone(zone))
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// find is the one item of a step.
func (w *world) find(step string) scaleway.Item {
	w.Helper()
	inv, err := w.cloud().Inventory(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for _, it := range inv.Items {
		if it.Step == step {
			return it
		}
	}
	w.Fatalf("no %s in %+v", step, inv.Items)
	return scaleway.Item{}
}

// action is what a fresh plan says about a step.
func (w *world) action(step string) plan.Action {
	w.Helper()
	_, p, _, err := w.plan(w.Context(), w.cloud())
	if err != nil {
		w.Fatal(err)
	}
	for _, a := range p.Actions {
		if a.Step.ID == step {
			return a
		}
	}
	w.Fatalf("no step %s", step)
	return plan.Action{}
}

func wantError(t *testing.T, err error, code outcome.Code, words ...string) {
	t.Helper()
	if outcome.CodeOf(err) != code {
		t.Fatalf("want exit code %d, got %d: %v", code, outcome.CodeOf(err), err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q lacks %q", err, w)
		}
	}
}

// Somebody opens the bastion to the world: the plan says so and the run shuts it.
func TestDriftIsSeenAndCorrected(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	other := w.somebody()
	gateway, group, server := w.find("gateway/staging-gateway"), w.find("security-group/staging-nodes"), w.find("server/staging-cp-1")
	must(vpcgw.NewAPI(other).SetBastionAllowedIPs(&vpcgw.SetBastionAllowedIPsRequest{GatewayID: gateway.CloudID, IPRanges: []string{"0.0.0.0/0"}}))(t)
	must(instance.NewAPI(other).UpdateSecurityGroup(&instance.UpdateSecurityGroupRequest{SecurityGroupID: group.CloudID, Stateful: scw.BoolPtr(false),
		InboundDefaultPolicy: instance.SecurityGroupPolicyAccept}))(t)
	must(instance.NewAPI(other).CreateSecurityGroupRule(&instance.CreateSecurityGroupRuleRequest{SecurityGroupID: group.CloudID, Protocol: instance.SecurityGroupRuleProtocolTCP,
		Direction: instance.SecurityGroupRuleDirectionInbound, Action: instance.SecurityGroupRuleActionAccept,
		IPRange: scw.IPNet{IPNet: net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}}, DestPortFrom: scw.Uint32Ptr(50000)}))(t)
	must(instance.NewAPI(other).ServerAction(&instance.ServerActionRequest{ServerID: server.CloudID, Action: instance.ServerActionPoweroff}))(t)
	for step, attribute := range map[string]string{"gateway/staging-gateway": "bastion ranges", "security-group/staging-nodes": "inbound default", "power/staging-cp-1": "state"} {
		a := w.action(step)
		if a.Op != plan.Update || !slices.ContainsFunc(a.Changes, func(c plan.Change) bool { return c.Attribute == attribute }) {
			t.Errorf("%s: %s %+v", step, a.Op, a.Changes)
		}
	}
	w.mustUp()
	w.wantConverged()
}

// What others put into the estate's network or VPC stops a teardown before it
// begins, is named, and stays.
func TestForeignThingsInTheWay(t *testing.T) {
	for name, test := range map[string]struct {
		put  func(t *testing.T, w *world, c *scw.Client)
		want string
	}{
		"network in the VPC": {func(t *testing.T, w *world, c *scw.Client) {
			id := w.find("vpc/staging").CloudID
			must(vpc.NewAPI(c).CreatePrivateNetwork(&vpc.CreatePrivateNetworkRequest{Name: "theirs", VpcID: &id}))(t)
		}, "the private network theirs"},
		"booking": {func(t *testing.T, w *world, c *scw.Client) {
			id := w.find("private-network/staging").CloudID
			must(ipam.NewAPI(c).BookIP(&ipam.BookIPRequest{Source: &ipam.Source{PrivateNetworkID: &id}}))(t)
		}, "the booking"},
		"server in the network": {func(t *testing.T, w *world, c *scw.Client) {
			api := instance.NewAPI(c)
			s := must(api.CreateServer(&instance.CreateServerRequest{Name: "theirs", CommercialType: "PLAY2-PICO", DynamicIPRequired: scw.BoolPtr(false), Volumes: ownVolume(t, c)}))(t).Server
			must(api.CreatePrivateNIC(&instance.CreatePrivateNICRequest{ServerID: s.ID, PrivateNetworkID: w.find("private-network/staging").CloudID}))(t)
		}, "instance_private_nic"},
		"server in the group": {func(t *testing.T, w *world, c *scw.Client) {
			group := w.find("security-group/staging-nodes").CloudID
			must(instance.NewAPI(c).CreateServer(&instance.CreateServerRequest{Name: "theirs", CommercialType: "PLAY2-PICO", DynamicIPRequired: scw.BoolPtr(false),
				SecurityGroup: &group, Volumes: ownVolume(t, c)}))(t)
		}, "the server theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, privateEstate(1))
			w.mustUp()
			test.put(t, w, w.somebody())
			w.settled()
			mark := len(w.region.Requests(0))
			wantError(t, w.destroy(t.Context(), w.cloud()), outcome.Refused, "the estate staging cannot be taken down whole", test.want)
			if n, which := w.writes(mark); n > 0 {
				t.Errorf("wrote %v", which)
			}
		})
	}
}

func ownVolume(t *testing.T, c *scw.Client) map[string]*instance.VolumeServerTemplate {
	t.Helper()
	api := block.NewAPI(c)
	v := must(api.CreateVolume(&block.CreateVolumeRequest{Name: "theirs", FromEmpty: &block.CreateVolumeRequestFromEmpty{Size: 10e9}}))(t)
	for must(api.GetVolume(&block.GetVolumeRequest{VolumeID: v.ID}))(t).Status != block.VolumeStatusAvailable {
	}
	return map[string]*instance.VolumeServerTemplate{"0": {ID: &v.ID, VolumeType: instance.VolumeVolumeTypeSbsVolume}}
}

// Another estate whose name begins alike, and things that merely have our names,
// are neither used nor removed.
func TestLookalikesAreLeftAlone(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	twin := serve(t, privateEstate(1), w.region, w.region, speed)
	twin.estate.Name = "staging-2"
	twin.mustUp()
	other := w.somebody()
	must(vpc.NewAPI(other).CreateVPC(&vpc.CreateVPCRequest{Name: "staging"}))(t)
	must(vpcgw.NewAPI(other).CreateIP(&vpcgw.CreateIPRequest{Tags: []string{"staging", "bastide:step=gateway-ip/staging-gateway"}}))(t)
	must(iam.NewAPI(other).CreateSSHKey(&iam.CreateSSHKeyRequest{Name: "staging-bastide-00000000", PublicKey: strings.Replace(sshKey, "IIm0", "IIm1", 1)}))(t)
	before := w.census()
	w.mustUp()
	w.wantConverged()
	if err := w.destroy(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	if got := minusDefaults(w.census()); got != minusDefaults(before) {
		t.Errorf("got\n%s\nwant\n%s", got, before)
	}
	twin.wantConverged()
}

// A key that the project has already under another name is used and not removed.
func TestKeyOfSomebodyElseIsEnough(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	keys := iam.NewAPI(w.somebody())
	theirs := must(keys.CreateSSHKey(&iam.CreateSSHKeyRequest{Name: "alice", PublicKey: sshKey + " alice@laptop"}))(t)
	w.mustUp()
	w.wantConverged()
	if err := w.destroy(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	all := must(keys.ListSSHKeys(&iam.ListSSHKeysRequest{}))(t)
	if len(all.SSHKeys) != 1 || all.SSHKeys[0].ID != theirs.ID {
		t.Errorf("keys: %+v", all.SSHKeys)
	}
}

// The API key needs no right to SSH keys, if they are in place.
func TestNoPermissionForKeys(t *testing.T) {
	region := api.New(api.Options{Clock: clock.New(speed), Credentials: map[string]api.Credential{"22222222-2222-4222-8222-222222222222": {Deny: []string{"iam"}}}})
	w := newWorldIn(t, privateEstate(1), region, speed)
	w.mustUp()
	inv := w.wantConverged()
	if len(inv.Warnings) != 1 || !strings.Contains(inv.Warnings[0], "SSH keys") {
		t.Errorf("warnings: %q", inv.Warnings)
	}
	if err := w.destroy(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
}

// A node that the file no longer asks for is reported by up and left alone.
func TestSurplusIsReported(t *testing.T) {
	w := newWorld(t, privateEstate(2))
	w.mustUp()
	w.estate.Pools[0].Count = 1
	mark := len(w.region.Requests(0))
	w.mustUp()
	if n, which := w.writes(mark); n > 0 {
		t.Errorf("wrote %v", which)
	}
	_, p, _, err := w.plan(t.Context(), w.cloud())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []blueprint.Kind{blueprint.KindServer, blueprint.KindVolume, blueprint.KindAddress, blueprint.KindPrivateNIC} {
		if !slices.ContainsFunc(p.Strays, func(s plan.Stray) bool { return s.Kind == kind && strings.HasSuffix(s.Step, "/staging-system-2") }) {
			t.Errorf("no stray %s in %+v", kind, p.Strays)
		}
	}
}

// Growing keeps every address and touches only what is new or larger.
func TestGrowth(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	before := w.find("address/staging-cp-3").Spec
	w.estate.Pools[0].Count = 3
	w.estate.ControlPlane.Disk.Size, w.estate.ControlPlane.Disk.IOPS = 40e9, 15000
	w.mustUp()
	w.wantConverged()
	if after := w.find("address/staging-cp-3").Spec; after != before {
		t.Errorf("the address moved from %v to %v", before, after)
	}
	if v := w.find("volume/staging-cp-1").Spec.(blueprint.Volume); v.Size != 40e9 || v.IOPS != 15000 {
		t.Errorf("the volume is %+v", v)
	}
}

// The number of calls of a reading grows with pages, not with nodes.
func TestCallsOfAReading(t *testing.T) {
	for workers, most := range map[int]int{2: 40, 197: 80} {
		w := newWorld(t, privateEstate(workers))
		w.mustUp()
		mark := len(w.region.Requests(0))
		w.wantConverged()
		n := len(w.region.Requests(mark))
		t.Logf("%d nodes: %d calls", workers+3, n)
		if n > most {
			t.Errorf("%d nodes took %d calls, at most %d are allowed", workers+3, n, most)
		}
	}
}

// Two things that claim one step: the older one has it, the other is reported.
func TestTheOlderOfTwoCounts(t *testing.T) {
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	first := w.find("vpc/staging").CloudID
	second := must(vpc.NewAPI(w.somebody()).CreateVPC(&vpc.CreateVPCRequest{Name: "staging", Tags: []string{"bastide:estate=staging", "bastide:step=vpc/staging"}}))(t)
	_, p, live, err := w.plan(t.Context(), w.cloud())
	if err != nil {
		t.Fatal(err)
	}
	if live.Steps["vpc/staging"].CloudID != first || len(p.Strays) != 1 || p.Strays[0].CloudID != second.ID || !p.Empty() {
		t.Errorf("step %s, strays %+v", live.Steps["vpc/staging"].CloudID, p.Strays)
	}
	if err := w.destroy(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	w.wantNothingLeft()
}
