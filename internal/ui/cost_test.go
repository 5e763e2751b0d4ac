package ui

import (
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/plan"
	"bastide/internal/price"
)

// someGraph has something of each sort: what changes, is kept, is off, is new,
// and what cannot be priced.
func someGraph() *blueprint.Graph {
	return &blueprint.Graph{Estate: "staging", Steps: []blueprint.Step{
		step(blueprint.KindVPC, "staging", "", blueprint.VPC{Name: "staging"}),
		step(blueprint.KindGateway, "staging-gateway", "", blueprint.Gateway{Type: "VPC-GW-S"}),
		step(blueprint.KindBucket, "staging-app", "", blueprint.Bucket{}),
		step(blueprint.KindVolume, "staging-cp-1", "staging-cp-1", blueprint.Volume{Size: 40 * estate.GB, IOPS: 5000}),
		step(blueprint.KindServer, "staging-cp-1", "staging-cp-1", blueprint.Server{Type: "PLAY2-NANO"}),
		step(blueprint.KindServer, "staging-cp-2", "staging-cp-2", blueprint.Server{Type: "PLAY2-NANO"}),
	}}
}

func someLive() *plan.Live {
	seen := func(id string, spec blueprint.Spec) plan.Observed {
		return plan.Observed{Step: id, Spec: spec, Settled: true}
	}
	return &plan.Live{Steps: map[string]plan.Observed{
		"gateway/staging-gateway": seen("gateway/staging-gateway", blueprint.Gateway{Type: "VPC-GW-S"}),
		"volume/staging-cp-1":     seen("volume/staging-cp-1", blueprint.Volume{Size: 20 * estate.GB, IOPS: 5000}),
		"server/staging-cp-1":     seen("server/staging-cp-1", blueprint.Server{Type: "PLAY2-NANO"}),
		"power/staging-cp-1":      seen("power/staging-cp-1", blueprint.Power{State: "stopped"}),
	}, Strays: []plan.Stray{{Kind: blueprint.KindServer, Step: "server/staging-old-1", Name: "staging-old-1", Spec: blueprint.Server{Type: "PLAY2-PICO"}}}}
}

func TestCost(t *testing.T) {
	golden(t, "cost_file", []string{"text", "json"}, func(p Printer, _ *clock) {
		p.Cost(price.Make(someGraph(), nil, price.Table()))
	})
	golden(t, "cost_live", []string{"text", "ascii", "json"}, func(p Printer, _ *clock) {
		p.Cost(price.Make(someGraph(), someLive(), price.Table().Over(map[price.Item]price.Price{
			"instance/PLAY2-NANO": {Amount: 28_000_000, Unit: price.Hour, Source: "the catalogue of fr-par-1"}})))
	})
	golden(t, "cost_unknown", []string{"text"}, func(p Printer, _ *clock) {
		live := someLive()
		delete(live.Steps, "gateway/staging-gateway")
		live.Unreachable = map[string]string{"gateway/staging-gateway": "the key may not read gateways"}
		book := price.Table()
		book.Note = "prices are those of the table"
		p.Cost(price.Make(someGraph(), live, book))
	})
	golden(t, "cost_nothing", []string{"text", "json"}, func(p Printer, _ *clock) {
		p.Cost(price.Make(&blueprint.Graph{Estate: "staging"}, nil, price.Table()))
	})
}

func TestTheFootOfAPlanSaysItsPrice(t *testing.T) {
	golden(t, "plan_price", []string{"text", "json"}, func(p Printer, _ *clock) {
		bill := price.Make(someGraph(), someLive(), price.Table())
		p.Plan(laterPlan(), &bill)
	})
}
