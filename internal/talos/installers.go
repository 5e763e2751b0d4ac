package talos

import (
	"fmt"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	"bastide/internal/blueprint"
)

// Installers says of the nodes that could be read from which image they would be
// upgraded.
type Installers struct {
	AsWanted int      // nodes that hold the installer of the file's version and schematic
	Others   []string // nodes that hold another one, or none
}

// All says that nodes were read and all of them hold the file's installer: then it
// is no new name to any of them.
func (i Installers) All() bool { return i.AsWanted > 0 && len(i.Others) == 0 }

// Installers compares what running nodes hold with what the file asks for, after
// Interpret has read what was seen. A node whose configuration is the wanted one is
// not read for it.
func (c *Cluster) Installers(g *blueprint.Graph, seen Seen) (Installers, error) {
	var out Installers
	image := InstallerImage(c.estate.Talos)
	for _, s := range seen.sights {
		if s.contact.state != Ours || s.err != nil {
			continue
		}
		if step, ok := g.Step(string(blueprint.KindMachine) + "/" + s.node.Name); ok && step.Spec.(blueprint.Machine).Digest == s.holding.digest {
			out.AsWanted++
			continue
		}
		p, err := configloader.NewFromBytes(s.holding.active)
		if err != nil {
			return out, fmt.Errorf("read the configuration of %s: %w", s.node.Name, c.clean(err))
		}
		if m := p.Machine(); m != nil && m.Install().Image() == image {
			out.AsWanted++
		} else {
			out.Others = append(out.Others, s.node.Name)
		}
	}
	slices.Sort(out.Others)
	return out, nil
}
