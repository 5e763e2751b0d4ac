package plan_test

import (
	"fmt"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/plan"
)

// grown is the example estate with so many nodes.
func grown(t testing.TB, nodes int) *estate.Estate {
	e, err := estate.Load("../../examples/private")
	if err != nil {
		t.Fatal(err)
	}
	e.Pools[len(e.Pools)-1].Count = nodes - e.ControlPlane.Count
	return e
}

// live is an estate in which everything is as the file says.
func live(g *blueprint.Graph) plan.Live {
	l := plan.Live{Steps: map[string]plan.Observed{}}
	for _, s := range g.Steps {
		l.Steps[s.ID] = plan.Observed{Step: s.ID, CloudID: "id-" + s.ID, Status: "ready", Settled: true, Spec: s.Spec}
	}
	return l
}

// BenchmarkGrowth lays out and compares estates of growing size. Time and memory
// for each node are the figures to look at: they should stay the same.
func BenchmarkGrowth(b *testing.B) {
	for _, nodes := range []int{5, 50, 200, 500} {
		b.Run(fmt.Sprintf("%d-nodes", nodes), func(b *testing.B) {
			e := grown(b, nodes)
			b.ReportAllocs()
			for b.Loop() {
				g, err := blueprint.Build(e, nil, e.Admin.PublicKeys)
				if err != nil {
					b.Fatal(err)
				}
				if p := plan.Make(g, live(g)); !p.Empty() {
					b.Fatalf("%d of %d steps differ from themselves", len(p.Actions), len(g.Steps))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(nodes), "ns/node")
		})
	}
}

// Memory grows with the nodes and not with their square: allocations are
// counted, which no other process can disturb.
func TestAllocationsGrowWithTheNodes(t *testing.T) {
	count := func(nodes int) float64 {
		e := grown(t, nodes)
		return testing.AllocsPerRun(3, func() {
			g, err := blueprint.Build(e, nil, e.Admin.PublicKeys)
			if err != nil {
				t.Fatal(err)
			}
			plan.Make(g, live(g))
		}) / float64(nodes)
	}
	small, large := count(50), count(500)
	t.Logf("%.0f allocations a node at 50 nodes, %.0f at 500", small, large)
	if large > 1.3*small {
		t.Errorf("%.0f allocations a node at 500 nodes, %.0f at 50", large, small)
	}
}
