package scaleway_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"bastide/internal/blueprint"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// Field report 39: a backend went on to hold the address of a node that had been
// replaced, because its list was made before the new address was known. Here a
// control plane node is made again at another address: one run later the list is
// that of the present addresses, it was written after the new one was booked, and
// nothing is left to do.
func TestFieldReport39TheBackendFollowsTheAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	c := w.somebody()
	server, address, network := w.find("server/staging-cp-2").CloudID, w.find("address/staging-cp-2"), w.find("private-network/staging").CloudID
	stop(t, c, server)
	if err := instance.NewAPI(c).DeleteServer(&instance.DeleteServerRequest{Zone: zone, ServerID: server}); err != nil {
		t.Fatal(err)
	}
	w.settled()
	if err := ipam.NewAPI(c).ReleaseIP(&ipam.ReleaseIPRequest{IPID: address.CloudID}); err != nil {
		t.Fatal(err)
	}
	anew := must(ipam.NewAPI(c).BookIP(&ipam.BookIPRequest{ProjectID: project, Source: &ipam.Source{PrivateNetworkID: &network}, Address: scw.IPPtr(netip.MustParseAddr("172.16.0.77").AsSlice()),
		Tags: []string{"bastide:estate=staging", "bastide:step=address/staging-cp-2"}}))(t)
	w.settled()
	w.mustUp()
	inv := w.wantConverged()
	var want []string
	for _, it := range inv.Items {
		if spec, ok := it.Spec.(blueprint.Address); ok && strings.HasPrefix(it.Name, "172.") && strings.HasPrefix(it.Step, "address/staging-cp-") {
			want = append(want, spec.Address.String())
		}
	}
	api := lb.NewZonedAPI(c)
	got := must(api.ListBackends(&lb.ZonedAPIListBackendsRequest{Zone: zone, LBID: w.find("load-balancer/staging-api").CloudID}))(t).Backends[0].Pool
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || !slices.Contains(got, "172.16.0.77") || len(got) != 3 {
		t.Errorf("the backend has %v, the control plane %v (booked anew: %s)", got, want, anew.Address.String())
	}
	if a := w.find("address/staging-cp-2"); a.CloudID != anew.ID {
		t.Errorf("the address is %s, want the one that was booked anew", a.CloudID)
	}
}

// Field report 43: a cluster whose image was gone could be neither planned nor
// taken down. Taking down asks for no image: it works when the snapshot that the
// file names is gone, when there are two, and when the file names none.
func TestFieldReport43TakingDownAsksForNoImage(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(w *world){
		"gone": func(w *world) {
			blocks := block.NewAPI(w.somebody())
			for _, s := range must(blocks.ListSnapshots(&block.ListSnapshotsRequest{Zone: zone}))(w).Snapshots {
				if err := blocks.DeleteSnapshot(&block.DeleteSnapshotRequest{Zone: zone, SnapshotID: s.ID}); err != nil {
					w.Fatal(err)
				}
			}
		},
		"ambiguous": func(w *world) {
			blocks := block.NewAPI(w.somebody())
			must(blocks.CreateSnapshot(&block.CreateSnapshotRequest{Zone: zone, VolumeID: w.find("volume/staging-cp-1").CloudID, Name: w.estate.Talos.Snapshot}))(w)
		},
		"not named":                          func(w *world) { w.estate.Talos.Snapshot = "" },
		"named by an ID that does not exist": func(w *world) { w.estate.Talos.Snapshot = "99999999-9999-4999-8999-999999999999" },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			w := newWorld(t, privateEstate(1))
			w.mustUp()
			spoil(w)
			w.settled()
			mark := len(w.region.Requests(0))
			if err := w.destroy(t.Context(), w.cloud()); err != nil {
				t.Fatal(err)
			}
			for _, r := range w.region.Requests(mark) {
				if strings.Contains(r.Path, "/snapshots/") || strings.Contains(r.Path, "/images") {
					t.Errorf("asked for an image: %s %s", r.Method, r.Path)
				}
			}
			w.wantNothingLeft()
		})
	}
}
