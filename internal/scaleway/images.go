package scaleway

import (
	"slices"

	"bastide/internal/blueprint"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
)

// Image is a snapshot that bastide imported for the estate, and what is made of it.
type Image struct {
	Item
	Talos     string // version
	Schematic string
	Digest    string   // of the content that went into it
	Volumes   []string // names of the estate's volumes that were made from it
}

// Running says that its import has not ended yet.
func (i Image) Running() bool { return i.Status == string(block.SnapshotStatusCreating) }

// Images are the estate's own snapshots, those in error included.
func (inv *Inventory) Images() []Image {
	var out []Image
	for _, it := range inv.Items {
		if it.Kind != blueprint.KindSnapshot {
			continue
		}
		spec, _ := it.Spec.(blueprint.Snapshot)
		i := Image{Item: it, Talos: spec.Talos, Schematic: spec.Schematic, Digest: tagged(it.tags, blueprint.TagDigest)}
		for _, v := range inv.Items {
			if v.Kind == blueprint.KindVolume && inv.parents[v.CloudID] == it.CloudID {
				i.Volumes = append(i.Volumes, v.Name)
			}
		}
		slices.Sort(i.Volumes)
		out = append(out, i)
	}
	return out
}
