package scaleway_test

import (
	"testing"

	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"

	"bastide/internal/blueprint"
	"bastide/internal/price"
)

// bill is what the estate costs, live and by the live catalogue.
func (w *world) bill() price.Bill {
	w.Helper()
	c := w.cloud()
	prices, err := c.Prices(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	inv, err := c.Inventory(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	g, err := blueprint.Build(w.estate, inv.Booked(), []string{sshKey})
	if err != nil {
		w.Fatal(err)
	}
	live := inv.Live(g)
	return price.Make(g, &live, price.Table().Over(prices))
}

// The bill of a live estate follows what is made, switched off, changed by hand
// and no longer asked for.
func TestTheLiveBill(t *testing.T) {
	t.Parallel()
	w := newServicesWorld(t, smallServices())
	want := func(when, have, delta string) price.Bill {
		t.Helper()
		b := w.bill()
		if b.Have == nil || b.Have.Month.String() != have || b.Delta.Month.String() != delta {
			t.Fatalf("%s: %+v, want %s now and a change of %s", when, b, have, delta)
		}
		return b
	}
	// 3 PLAY2-NANO, 1 PLAY2-MICRO, 80 GB at 5000 and 90 GB at 15000 IOPS, LB-S,
	// VPC-GW-S and its address, the edge's address: 0.22594 an hour.
	const all = "164.9362"
	empty := want("nothing exists", "0", all)
	if open := len(empty.NotPriced()); open != 6 {
		t.Errorf("%d lines are not priced: a bucket's content and egress, a registry, two secrets, a zone", open)
	}
	w.mustUp()
	want("all is as wanted", all, "0")

	// A machine that is off is not billed: 20.1042 less.
	must(instance.NewAPI(w.somebody()).ServerAction(&instance.ServerActionRequest{ServerID: w.find("server/staging-cp-1").CloudID, Action: instance.ServerActionPoweroff}))(t)
	w.settled()
	want("a machine is off", "144.832", "20.1042")
	w.mustUp()
	want("it is on again", all, "0")

	// A node that the file no longer asks for goes on costing.
	w.estate.Pools[0].Count = 0
	fewer := want("a node is not asked for", all, "0")
	if got := fewer.Left.Month.String(); got != "42.194" { // 40.2084 and 20 GB at 5000 IOPS
		t.Errorf("what is left alone costs %s", got)
	}
}
