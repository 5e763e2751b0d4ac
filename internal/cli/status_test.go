package cli

import (
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/plan"
	"bastide/internal/scaleway"
	"bastide/internal/session"
	"bastide/internal/talos"
)

// What up would have ended with, status tells too, and once.
func TestStatusRepeatsTheChecks(t *testing.T) {
	passed := talos.Check{Node: "staging-cp-1", Name: "Talos version", OK: true}
	small := talos.Check{Node: "staging-cp-1", Name: "EPHEMERAL volume", Want: "at least 4096 MiB", Have: "1200 MiB", Fix: "recreate it"}
	for name, c := range map[string]struct {
		checks []talos.Check
		want   string // of the problems; empty when it is healthy
	}{
		"nothing was checked":  {nil, ""},
		"all is well":          {[]talos.Check{passed}, ""},
		"only a check sees it": {[]talos.Check{passed, small}, "staging-cp-1: EPHEMERAL volume: have 1200 MiB, want at least 4096 MiB; recreate it"},
	} {
		t.Run(name, func(t *testing.T) {
			st := &session.Status{
				Inventory: &scaleway.Inventory{Items: []scaleway.Item{{Kind: blueprint.KindVPC, Name: "staging", Settled: true}}},
				Survey:    &session.Survey{Graph: &blueprint.Graph{Estate: "staging"}, Live: plan.Live{}},
				Checks:    c.checks,
			}
			got := statusOf("staging", st)
			if got.Healthy != (c.want == "") || strings.Join(got.Problems, "\n") != c.want {
				t.Errorf("healthy %t, problems %q, want %q", got.Healthy, got.Problems, c.want)
			}
		})
	}
}
