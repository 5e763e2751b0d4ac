package session

import (
	"context"

	"bastide/internal/blueprint"
	"bastide/internal/scaleway"
	"bastide/internal/store"
)

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
	importing := map[string]string{}
	for _, i := range inv.Images() {
		p := PinnedSnapshot{Image: i}
		if i.Step != "" && i.Step == wanted && !i.Second && i.Doubt == "" {
			p.Pins = append(p.Pins, "the file")
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
			p.Pins = append(p.Pins, "the file")
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
