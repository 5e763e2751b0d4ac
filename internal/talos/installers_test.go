package talos

import (
	"slices"
	"strings"
	"testing"

	"bastide/internal/plan"
)

// What running nodes would be upgraded from is read from them, a change of nothing
// else is no restart, and what else changes still costs what it costs.
func TestAnotherInstallerRestartsNothing(t *testing.T) {
	seen := func(s *scene) (Installers, plan.Live) {
		t.Helper()
		cloud := plan.Live{Steps: cloud(s.estate)}
		looked := s.cluster.Look(t.Context(), cloud)
		live, err := s.cluster.Interpret(t.Context(), s.graph, cloud, looked)
		if err != nil {
			t.Fatal(err)
		}
		i, err := s.cluster.Installers(s.graph, looked)
		if err != nil {
			t.Fatal(err)
		}
		return i, live
	}
	s := newScene(t).up()
	nodes := len(controlPlane)
	if i, _ := seen(s); i.AsWanted != nodes || !i.All() {
		t.Errorf("a live estate: %+v", i)
	}
	s.change(immediate)
	if i, _ := seen(s); i.AsWanted != nodes || !i.All() {
		t.Errorf("another change: %+v", i)
	}
	for name, c := range map[string]struct {
		patch string
		cost  plan.Disruption
	}{"alone": {"", plan.None}, "with another change": {immediate, plan.Restart}, "with a reboot": {rebootOnly, plan.Reboot}} {
		s := newScene(t).up()
		s.estate.Talos.Extensions = append(slices.Clone(s.estate.Talos.Extensions), "siderolabs/gvizor")
		if s.rerun(); c.patch != "" {
			s.change(c.patch)
		}
		i, live := seen(s)
		if i.All() || len(i.Others) != nodes {
			t.Errorf("%s: %+v", name, i)
		}
		for _, a := range plan.Make(s.graph, live).Actions {
			if a.Step.ID != "machine/staging-cp-2" {
				continue
			}
			if text := strings.Join(a.Detail, "\n"); a.Op != plan.Update || a.Disruption != c.cost || strings.Contains(text, "next upgrade") != (c.cost == plan.None) {
				t.Errorf("%s: %s, %s\n%s", name, a.Op, a.Disruption, text)
			}
		}
	}
}
