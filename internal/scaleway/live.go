package scaleway

import (
	"context"
	"fmt"

	"bastide/internal/blueprint"
	"bastide/internal/plan"
)

// Observe reads the estate and lays it beside the graph.
func (c *Cloud) Observe(ctx context.Context, g *blueprint.Graph) (plan.Live, error) {
	inv, err := c.Inventory(ctx)
	if err != nil {
		return plan.Live{}, err
	}
	return inv.Live(g), nil
}

// Live lays the inventory beside the graph: what each cloud step has come to,
// and what carries the estate's mark without a step that explains it.
func (inv *Inventory) Live(g *blueprint.Graph) plan.Live {
	live := inv.beside(g)
	inv.needless(g, &live)
	return live
}

// Made is Live for those who want the image for its own sake: it is not settled
// because nothing needs it.
func (inv *Inventory) Made(g *blueprint.Graph) plan.Live { return inv.beside(g) }

func (inv *Inventory) beside(g *blueprint.Graph) plan.Live {
	live := plan.Live{Steps: map[string]plan.Observed{}, Unreachable: map[string]string{}}
	for _, it := range inv.Items {
		step, wanted := g.Step(it.Step)
		switch {
		case it.Kind == blueprint.KindPower && (!wanted || it.Second):
			continue // the server is reported
		case it.Kind == blueprint.KindSnapshot && it.Step != "" && !wanted:
			continue // of an earlier version or schematic: it stays until image prune
		case it.Second && it.Doubt != "":
			live.Strays = append(live.Strays, it.stray(it.Doubt+"; nothing is made of it"))
		case it.Second:
			live.Strays = append(live.Strays, it.stray("an older one claims the same step"))
		case it.useless:
			live.Strays = append(live.Strays, it.stray("its import failed: the next up that needs it removes it and imports again"))
		case it.Step == "":
			live.Strays = append(live.Strays, it.stray("it carries the estate's mark but claims no step"))
		case !wanted || step.Kind != it.Kind:
			live.Strays = append(live.Strays, it.stray(it.unwanted()))
		default:
			live.Steps[it.Step] = inv.observed(it, step)
		}
	}
	for _, s := range g.Steps {
		inv.missing(s, &live)
	}
	inv.nameless(g, &live)
	inv.astray(g, &live)
	return live
}

func (it Item) stray(why string) plan.Stray {
	return plan.Stray{Kind: it.Kind, Step: it.Step, CloudID: it.CloudID, Name: it.Name, Why: why, Spec: it.Spec}
}

func (inv *Inventory) observed(it Item, step blueprint.Step) plan.Observed {
	o := plan.Observed{Step: it.Step, CloudID: it.CloudID, Zone: it.Zone, Status: it.Status, Settled: it.Settled, Broken: it.Broken, Spec: it.Spec}
	switch spec := it.Spec.(type) {
	case blueprint.Volume:
		want := step.Spec.(blueprint.Volume)
		spec.Snapshot = inv.origin(it.CloudID, want.Snapshot)
		if spec.Image = want.Image; want.Image != "" {
			spec.Snapshot = "" // what it was made from counts no more: what runs is read from the node
		}
		o.Spec = spec
	case blueprint.Snapshot:
		spec.Object = step.Spec.(blueprint.Snapshot).Object // the file that it came from may be gone
		o.Spec = spec
	case blueprint.SSHKey:
		key := step.Spec.(blueprint.SSHKey) // the same key: its digest is in the name
		key.Disabled = spec.Disabled
		o.Spec = key
	case blueprint.Address:
		if by := inv.heldBy(spec.Address); by != "" {
			o.Broken = fmt.Sprintf("its address %s is held by %s", spec.Address, by)
		}
	case blueprint.DNSRecord:
		o.Broken = orText(o.Broken, inv.squatters[it.Step])
	case blueprint.Secret:
		if want := step.Spec.(blueprint.Secret); spec.Name != want.Name || spec.Path != want.Path {
			o.Broken = orText(o.Broken, inv.squatters[it.Step]) // it cannot go where another one is
		}
	case blueprint.PostgresSecret:
		if want := step.Spec.(blueprint.PostgresSecret); spec.Name != want.Name || spec.Path != want.Path {
			o.Broken = orText(o.Broken, inv.squatters[it.Step])
		}
	case blueprint.Postgres:
		inv.postgresBeside(&o, it, spec, step.Spec.(blueprint.Postgres))
	case blueprint.PostgresUser:
		inv.userBeside(&o, it, spec, step.Spec.(blueprint.PostgresUser))
	}
	return o
}

// origin is the snapshot that a volume was made from, in the file's words when
// it is the one that the file names. Scaleway forgets the parent of a volume
// once the snapshot is deleted; then it cannot be told, and counts as right.
func (inv *Inventory) origin(volume, wanted string) string {
	parent, known := inv.parents[volume]
	if !known || parent == "" || parent == wanted {
		return wanted
	}
	for _, s := range inv.snapshots {
		if s.ID == parent {
			return wanted
		}
	}
	return parent
}

// missing explains steps for which nothing carries the mark although something
// stands in their place.
func (inv *Inventory) missing(s blueprint.Step, live *plan.Live) {
	if _, ok := live.Steps[s.ID]; ok {
		return
	}
	if l, there := inv.lost[s.ID]; there {
		live.Steps[s.ID] = plan.Observed{Step: s.ID, CloudID: l.id, Zone: l.zone, Status: "without its mark", Spec: l.spec, Broken: l.why()}
		return
	}
	switch want := s.Spec.(type) {
	case blueprint.SSHKey:
		if id, status := inv.key(want); status != "" {
			live.Steps[s.ID] = plan.Observed{Step: s.ID, CloudID: id, Status: status, Settled: true, Spec: want}
		}
	case blueprint.Address:
		if by := inv.heldBy(want.Address); by != "" {
			live.Steps[s.ID] = plan.Observed{Step: s.ID, Status: "taken", Settled: true, Spec: want,
				Broken: fmt.Sprintf("the address %s is held by %s", want.Address, by)}
		}
	case blueprint.PostgresDatabase, blueprint.PostgresUser:
		if why := inv.closed; why != "" {
			live.Steps[s.ID] = plan.Observed{Step: s.ID, Status: "not to be read while the database instance is " + why, Spec: want}
		}
	default:
		if why := inv.squatters[s.ID]; why != "" {
			live.Steps[s.ID] = plan.Observed{Step: s.ID, Status: "taken", Settled: true, Spec: want, Broken: why}
		}
	}
}

// key finds a public key among all of the project's, whoever put it there.
func (inv *Inventory) key(want blueprint.SSHKey) (id, status string) {
	if inv.keysUnreadable {
		return "", "taken to be there"
	}
	for _, k := range inv.keys {
		if sameKey(k.PublicKey, want.PublicKey) && !k.Disabled {
			return k.ID, "present as " + k.Name
		}
	}
	return "", ""
}

// nameless finds nodes whose server lost the tags which say what it is, by the
// volumes that it holds. Without that the plan would make a twin, which could
// never have the volumes.
func (inv *Inventory) nameless(g *blueprint.Graph, live *plan.Live) {
	servers := inv.servers()
	for _, v := range inv.Items {
		volume, wanted := g.Step(v.Step)
		if v.Kind != blueprint.KindVolume || v.on == "" || inv.gone[v.on] || !wanted {
			continue
		}
		server, known := servers[v.on]
		if known && server.Step != "" {
			continue
		}
		lost := blueprint.TagStep + string(blueprint.KindServer) + "/" + volume.Node
		why := fmt.Sprintf("the server %s (%s) holds its volume and has lost the tag %s; give it back", server.Name, v.on, lost)
		if !known {
			why = fmt.Sprintf("the server %s holds its volume and carries no mark of the estate; if it is this node, give it the tags %s%s and %s", v.on, blueprint.TagEstate, inv.estate, lost)
		}
		for _, kind := range []blueprint.Kind{blueprint.KindServer, blueprint.KindPrivateNIC, blueprint.KindPower} {
			step, ok := g.Step(string(kind) + "/" + volume.Node)
			if _, seen := live.Steps[step.ID]; ok && !seen {
				live.Steps[step.ID] = plan.Observed{Step: step.ID, CloudID: v.on, Zone: v.Zone, Status: "without its mark", Spec: step.Spec, Broken: why}
			}
		}
	}
}

// servers are the estate's, by ID.
func (inv *Inventory) servers() map[string]Item {
	out := map[string]Item{}
	for _, it := range inv.Items {
		if it.Kind == blueprint.KindServer {
			out[it.CloudID] = it
		}
	}
	return out
}
