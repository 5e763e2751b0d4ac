package scaleway

import (
	"fmt"
	"slices"

	"bastide/internal/blueprint"
	"bastide/internal/plan"
)

// astray finds things that carry the estate's mark and lost the tag that says
// what they are, by what else tells: their name, or their address. Without that
// the plan would make a twin of each.
func (inv *Inventory) astray(g *blueprint.Graph, live *plan.Live) {
	for _, s := range g.Steps {
		if _, seen := live.Steps[s.ID]; seen || s.Kind.Cluster() {
			continue
		}
		var alike []Item
		for _, it := range inv.Items {
			if _, wanted := g.Step(it.Step); it.Kind == s.Kind && !wanted && !it.useless && it.is(s) {
				alike = append(alike, it)
			}
		}
		if len(alike) != 1 {
			continue // nothing tells which
		}
		it, tag := alike[0], blueprint.TagStep+s.ID
		why := fmt.Sprintf("the %s %s (%s) has lost the tag %s; give it back", s.Kind, it.Name, it.CloudID, tag)
		if it.Step != "" {
			why = fmt.Sprintf("the %s %s (%s) has the tag %s%s, wanted %s; put it right", s.Kind, it.Name, it.CloudID, blueprint.TagStep, it.Step, tag)
		}
		live.Steps[s.ID] = plan.Observed{Step: s.ID, CloudID: it.CloudID, Zone: it.Zone, Status: "without its tag", Spec: it.Spec, Broken: why}
		live.Strays = slices.DeleteFunc(live.Strays, func(stray plan.Stray) bool { return stray.Kind == it.Kind && stray.CloudID == it.CloudID })
	}
}

// is says whether a thing is what a step wants, by all but its tags. Public
// addresses have no name; of those that nothing asks for there may be one.
func (it Item) is(s blueprint.Step) bool {
	switch want := s.Spec.(type) {
	case blueprint.Address:
		have, ok := it.Spec.(blueprint.Address)
		return ok && have.Address == want.Address
	case blueprint.PostgresSecret:
		have, ok := it.Spec.(blueprint.PostgresSecret)
		return ok && have.Name == want.Name && have.Path == want.Path
	case blueprint.GatewayIP, blueprint.EdgeIP:
		return true
	}
	return it.Name == s.Name
}
