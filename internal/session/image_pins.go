package session

import (
	"context"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/scaleway"
	"bastide/internal/store"
	"bastide/internal/talos"
)

// byFile is the pin of what the file asks for.
const byFile = "the file"

// pin says what keeps what: the file, volumes, and imports that run. An image that
// somebody else made does not show here: it carries another estate's mark.
func (s *Session) pin(out *Images, inv *scaleway.Inventory, objects []store.StoredImage) {
	wanted, wantedKey, object := "", "", ""
	if s.Estate.Talos.MakesImage() {
		name := blueprint.ImageName(s.Estate.Talos.Version, s.Estate.Talos.SchematicID())
		object = string(blueprint.KindImageObject) + "/" + name
		wanted, wantedKey = string(blueprint.KindSnapshot)+"/"+name+"-"+s.Estate.Name, blueprint.ImageKey(name)
	}
	digest := ""
	for _, o := range objects {
		if o.Key == wantedKey && o.Image != nil {
			digest = o.Image.Digest
		}
	}
	if wanted != "" {
		inv.Prove(wanted, object, digest)
	}
	out.wanted, out.wantedKey = wanted, wantedKey
	importing := map[string]string{}
	for _, i := range inv.Images() {
		p := PinnedSnapshot{Image: i}
		if i.Step != "" && i.Step == wanted && !i.Second && i.Doubt == "" {
			p.Pins = append(p.Pins, byFile)
		}
		for _, v := range i.Volumes {
			p.Pins = append(p.Pins, "volume "+v)
		}
		if i.Running() {
			p.Pins = append(p.Pins, "its import, which runs")
			importing[blueprint.ImageKey(blueprint.ImageName(i.Talos, i.Schematic))] = i.Name
		}
		out.Snapshots = append(out.Snapshots, p)
	}
	for _, o := range objects {
		p := PinnedObject{StoredImage: o}
		if o.Key == wantedKey {
			p.Pins = append(p.Pins, byFile)
		}
		if by := importing[o.Key]; by != "" {
			p.Pins = append(p.Pins, "the import of "+by)
		}
		out.Objects = append(out.Objects, p)
	}
}

// askNodes asks what runs, and says why it could not.
func (s *Session) askNodes(ctx context.Context, out *Images) string {
	there, err := s.Vault().Exists()
	if err != nil || !there {
		return "there is no secrets bundle to ask them with"
	}
	v, err := s.survey(ctx)
	if err != nil {
		return err.Error()
	}
	if v.Cluster == nil {
		return "there is no way to them"
	}
	out.Nodes = v.Cluster.Running(ctx)
	return ""
}

// keepWhatRuns pins the image of the version and schematic that a node says it
// runs: its volume may be of another one, or of none that is left. A node that
// cannot be asked may run any of them. Of several snapshots of one content the
// first is enough, and one that is never used is no help to a node.
func (i *Images) keepWhatRuns() {
	for n := range i.Snapshots {
		s := &i.Snapshots[n]
		if s.Step != "" && !s.Second && s.Doubt == "" {
			s.Pins = append(s.Pins, i.runs(blueprint.ImageName(s.Talos, s.Schematic), s.Talos)...)
		}
	}
	for n := range i.Objects {
		o := &i.Objects[n]
		name := strings.TrimSuffix(strings.TrimPrefix(o.Key, blueprint.ImagePrefix), ".qcow2")
		version := ""
		if o.Image != nil {
			version = o.Image.Talos
		}
		o.Pins = append(o.Pins, i.runs(name, version)...)
	}
}

// runs are the pins of an image of a name: the nodes that run it, and those that
// may. version is empty where only the name tells it.
func (i *Images) runs(name, version string) (pins []string) {
	if i.NotAsked != "" {
		pins = append(pins, "nodes that were not asked")
	}
	for _, n := range i.Nodes {
		switch {
		case i.unmade[n.Node]:
		case n.Unread != "":
			pins = append(pins, "node "+n.Node+", which did not say what it runs")
		case n.Schematic == "" && (version == n.Talos || version == "" && strings.HasPrefix(name, blueprint.ImageName(n.Talos, ""))):
			pins = append(pins, "node "+n.Node+", which does not say its schematic")
		case n.Schematic != "" && name == blueprint.ImageName(n.Talos, n.Schematic):
			pins = append(pins, "node "+n.Node)
		}
	}
	return pins
}

// onlyServers sets nodes of the file that are not made yet aside, and adds servers
// that the file does not ask for any more: those were not asked.
func (i *Images) onlyServers(inv *scaleway.Inventory) {
	asked, servers := map[string]bool{}, map[string]bool{}
	for _, n := range i.Nodes {
		asked[n.Node] = true
	}
	for _, it := range inv.Items {
		if it.Kind != blueprint.KindServer {
			continue
		}
		name := strings.TrimPrefix(it.Step, string(blueprint.KindServer)+"/")
		servers[name] = true
		if !asked[name] && i.NotAsked == "" {
			asked[name] = true
			servers[it.Name] = true
			i.Nodes = append(i.Nodes, talos.Running{Node: it.Name, Unread: "the file does not ask for it"})
		}
	}
	i.unmade = map[string]bool{}
	for _, n := range i.Nodes {
		i.unmade[n.Node] = !servers[n.Node]
	}
}
