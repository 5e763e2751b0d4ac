package scaleway_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/scaleway"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

const (
	claim    = "pvc-0a1b2c3d-1111-4222-8333-444455556666"
	claimed  = "snapshot-0a1b2c3d-1111-4222-8333-444455556666"
	detached = "pvc-99999999-1111-4222-8333-444455556666"
)

// often is how often the SDK looks while it waits; by default every five seconds.
var often = time.Millisecond

// inhabit makes what a living cluster makes: a load balancer of the cloud
// controller in the estate's network, a volume of the storage driver on a node
// and its snapshot; and beside them the same kinds without any tie.
func (w *world) inhabit() (volume, snapshot, balancer string) {
	w.Helper()
	client := w.somebody()
	blocks, balancers := block.NewAPI(client), lb.NewZonedAPI(client)
	balancer = w.controllerBalancer("ours")
	if err := balancersIn(balancers, balancer, w.find("private-network/staging").CloudID); err != nil {
		w.Fatal(err)
	}
	w.controllerBalancer("nobodys")
	volume = w.volume(claim)
	w.volume(detached)
	must(instance.NewAPI(client).AttachServerVolume(&instance.AttachServerVolumeRequest{Zone: zone, ServerID: w.find("server/staging-cp-1").CloudID, VolumeID: volume,
		VolumeType: instance.AttachServerVolumeRequestVolumeTypeSbsVolume}))(w)
	snapshot = must(blocks.CreateSnapshot(&block.CreateSnapshotRequest{Zone: zone, Name: claimed, VolumeID: volume}))(w).ID
	must(blocks.WaitForSnapshot(&block.WaitForSnapshotRequest{Zone: zone, SnapshotID: snapshot, RetryInterval: &often}))(w)
	w.settled()
	return volume, snapshot, balancer
}

func balancersIn(api *lb.ZonedAPI, balancer, network string) error {
	_, err := api.AttachPrivateNetwork(&lb.ZonedAPIAttachPrivateNetworkRequest{Zone: zone, LBID: balancer, PrivateNetworkID: network})
	if err == nil {
		_, err = api.WaitForLBPN(&lb.ZonedAPIWaitForLBPNRequest{Zone: zone, LBID: balancer, RetryInterval: &often})
	}
	return err
}

func (w *world) controllerBalancer(service string) string {
	w.Helper()
	api := lb.NewZonedAPI(w.somebody())
	b := must(api.CreateLB(&lb.ZonedAPICreateLBRequest{Zone: zone, Name: "default_" + service, Description: "kubernetes service " + service, Type: "LB-S",
		Tags: []string{"managed-by-scaleway-cloud-controller-manager"}, AssignFlexibleIP: scw.BoolPtr(true)}))(w)
	must(api.WaitForLb(&lb.ZonedAPIWaitForLBRequest{Zone: zone, LBID: b.ID, RetryInterval: &often}))(w)
	return b.ID
}

func (w *world) volume(name string) string {
	w.Helper()
	api := block.NewAPI(w.somebody())
	v := must(api.CreateVolume(&block.CreateVolumeRequest{Zone: zone, Name: name, FromEmpty: &block.CreateVolumeRequestFromEmpty{Size: 10e9}, PerfIops: scw.Uint32Ptr(5000)}))(w)
	must(api.WaitForVolume(&block.WaitForVolumeRequest{Zone: zone, VolumeID: v.ID, RetryInterval: &often}))(w)
	return v.ID
}

func (w *world) whole(ctx context.Context) *scaleway.Inventory {
	w.Helper()
	inv, err := w.cloud().WholeInventory(ctx)
	if err != nil {
		w.Fatal(err)
	}
	return inv
}

func (w *world) exists(volume string) bool {
	w.Helper()
	_, err := block.NewAPI(w.somebody()).GetVolume(&block.GetVolumeRequest{Zone: zone, VolumeID: volume})
	return err == nil
}

func kindsOf(items []scaleway.Item) (out []string) {
	for _, it := range items {
		out = append(out, string(it.Kind)+"/"+it.Name)
	}
	slices.Sort(out)
	return out
}

// What the cluster made is found with the cluster dead, its load balancer goes,
// its volumes are marked before their nodes go, kept, and go when they are named.
func TestClusterMadeThingsAreTakenDown(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	volume, snapshot, balancer := w.inhabit()

	inv := w.whole(t.Context())
	var looks []string
	for _, l := range inv.Lookalikes {
		looks = append(looks, string(l.Kind)+"/"+l.Name)
	}
	slices.Sort(looks)
	if want := []string{"cluster-load-balancer/default_nobodys", "cluster-volume/" + detached}; !slices.Equal(looks, want) {
		t.Errorf("lookalikes: %v, want %v", looks, want)
	}
	if len(inv.Foreign) > 0 {
		t.Errorf("foreign: %+v", inv.Foreign)
	}

	if err := w.destroy(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	if got, want := kindsOf(w.whole(t.Context()).Items), []string{"cluster-snapshot/" + claimed, "cluster-volume/" + claim}; !slices.Equal(got, want) {
		t.Fatalf("left: %v, want %v", got, want)
	}
	if _, err := lb.NewZonedAPI(w.somebody()).GetLB(&lb.ZonedAPIGetLBRequest{Zone: zone, LBID: balancer}); err == nil {
		t.Error("the cloud controller's load balancer is still there")
	}
	ips := must(lb.NewZonedAPI(w.somebody()).ListIPs(&lb.ZonedAPIListIPsRequest{Zone: zone}))(t)
	if len(ips.IPs) != 1 || ips.IPs[0].LBID == nil {
		t.Errorf("addresses of load balancers: %+v, want only that of the other cluster's", ips.IPs)
	}

	if err := w.destroy(t.Context(), w.cloud(), blueprint.DataVolumes); err != nil {
		t.Fatal(err)
	}
	w.wantNothingLeft()
	if w.exists(volume) {
		t.Error("the volume is still there")
	}
	if _, err := block.NewAPI(w.somebody()).GetSnapshot(&block.GetSnapshotRequest{Zone: zone, SnapshotID: snapshot}); err == nil {
		t.Error("the snapshot is still there")
	}
	if got := w.whole(t.Context()); len(got.Items) > 0 || len(got.Lookalikes) != 2 {
		t.Errorf("left %v, lookalikes %+v", kindsOf(got.Items), got.Lookalikes)
	}
}

// Killed at any call, a teardown never forgets whose volume it is.
func TestKilledTeardownRemembersVolumes(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	for _, after := range []bool{false, true} {
		kills := 0
		for n := int64(1); ; n += 2 {
			w := newWorld(t, privateEstate(1))
			w.mustUp()
			w.inhabit()
			ctx, cancel := context.WithCancel(t.Context())
			kill, dead := killAt(n, after, cancel)
			err := w.destroy(ctx, w.cloud(kill), blueprint.DataVolumes)
			cancel()
			if !dead.Load() {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			kills++
			w.served.drain()
			if err := w.destroy(t.Context(), w.cloud(), blueprint.DataVolumes); err != nil {
				t.Fatalf("killed at %d (after: %v) and repeated: %v", n, after, err)
			}
			w.wantNothingLeft()
			if got := w.whole(t.Context()); len(got.Items) > 0 || len(got.Lookalikes) != 2 {
				t.Fatalf("killed at %d (after: %v), left %v, lookalikes %+v", n, after, kindsOf(got.Items), got.Lookalikes)
			}
			w.region.Close()
		}
		t.Logf("destroy of an inhabited estate: %d kills survived (after the call: %v)", kills, after)
	}
}

// An address that somebody reserved outlives the load balancer that used it.
func TestReservedAddressOfAClusterBalancerStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	api := lb.NewZonedAPI(w.somebody())
	ip := must(api.CreateIP(&lb.ZonedAPICreateIPRequest{Zone: zone, Tags: []string{"www"}}))(t)
	b := must(api.CreateLB(&lb.ZonedAPICreateLBRequest{Zone: zone, Name: "default_www", Type: "LB-S", IPIDs: []string{ip.ID},
		Tags: []string{"managed-by-scaleway-cloud-controller-manager"}, AssignFlexibleIP: scw.BoolPtr(false)}))(t)
	must(api.WaitForLb(&lb.ZonedAPIWaitForLBRequest{Zone: zone, LBID: b.ID, RetryInterval: &often}))(t)
	if err := balancersIn(api, b.ID, w.find("private-network/staging").CloudID); err != nil {
		t.Fatal(err)
	}
	w.settled()
	if err := w.destroy(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	w.wantNothingLeft()
	if got, err := api.GetIP(&lb.ZonedAPIGetIPRequest{Zone: zone, IPID: ip.ID}); err != nil || got.LBID != nil {
		t.Errorf("the reserved address: %+v %v", got, err)
	}
}

// Every kind of trouble, once at every change, on the way down of an estate in
// which a cluster lived: nothing is left, and nothing of others is touched.
func TestEveryMutatingCallFailsOnceAroundClusterMadeThings(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	for name, rule := range once {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, oneNode())
			w.mustUp()
			w.inhabit()
			w.afflict(rule)
			if err := w.destroy(t.Context(), w.cloud(), blueprint.DataVolumes); err != nil {
				t.Fatal(err)
			}
			w.wantNothingLeft()
			if got := w.whole(t.Context()); len(got.Items) > 0 || len(got.Lookalikes) != 2 {
				t.Errorf("left %v, lookalikes %+v", kindsOf(got.Items), got.Lookalikes)
			}
		})
	}
}
