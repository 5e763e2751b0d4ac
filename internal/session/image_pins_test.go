package session

import (
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/scaleway"
	"bastide/internal/store"
	"bastide/internal/talos"
)

// A prune takes nothing that a node runs or may run, whatever its volume is of.
func TestWhatNodesRunIsKept(t *testing.T) {
	old, other := strings.Repeat("a", 64), strings.Repeat("b", 64)
	for name, c := range map[string]struct {
		nodes    []talos.Running
		notAsked string
		goes     string // what a prune takes, of the images of a and b and an unused snapshot of a
	}{
		"one runs a":              {nodes: []talos.Running{{Node: "cp-1", Talos: "v1.13.5", Schematic: old}}, goes: "snapshot b, snapshot a doubted, file b"},
		"both run":                {nodes: []talos.Running{{Node: "cp-1", Talos: "v1.13.5", Schematic: old}, {Node: "cp-2", Talos: "v1.13.5", Schematic: other}}, goes: "snapshot a doubted"},
		"another version":         {nodes: []talos.Running{{Node: "cp-1", Talos: "v1.13.4", Schematic: old}}, goes: "snapshot a, snapshot b, snapshot a doubted, file a, file b"},
		"no schematic told":       {nodes: []talos.Running{{Node: "cp-1", Talos: "v1.13.5"}}, goes: "snapshot a doubted"},
		"one does not answer":     {nodes: []talos.Running{{Node: "cp-1", Unread: "it does not answer"}}, goes: "snapshot a doubted"},
		"none could be asked":     {notAsked: "there is no way to them", goes: "snapshot a doubted"},
		"there is no node at all": {goes: "snapshot a, snapshot b, snapshot a doubted, file a, file b"},
	} {
		t.Run(name, func(t *testing.T) {
			image := func(schematic, doubt string) PinnedSnapshot {
				return PinnedSnapshot{Image: scaleway.Image{Item: scaleway.Item{Step: "snapshot/x", Second: doubt != "", Doubt: doubt}, Talos: "v1.13.5", Schematic: schematic}}
			}
			file := func(schematic string) PinnedObject {
				return PinnedObject{StoredImage: store.StoredImage{Key: blueprint.ImageKey(blueprint.ImageName("v1.13.5", schematic))}}
			}
			i := &Images{Snapshots: []PinnedSnapshot{image(old, ""), image(other, ""), image(old, "doubted")}, Objects: []PinnedObject{file(old), file(other)},
				Nodes: c.nodes, NotAsked: c.notAsked}
			i.keepWhatRuns()
			var goes []string
			u := i.Unpinned()
			for _, s := range u.Snapshots {
				goes = append(goes, strings.TrimSpace("snapshot "+s.Schematic[:1]+" "+s.Doubt))
			}
			for _, o := range u.Objects {
				goes = append(goes, "file "+strings.TrimPrefix(o.Key, "images/talos-v1.13.5-")[:1])
			}
			if have := strings.Join(goes, ", "); have != c.goes {
				t.Errorf("a prune takes %s, want %s", have, c.goes)
			}
		})
	}
}

// A node that is not made yet runs nothing; a server that the file dropped may run
// anything.
func TestServersCountAndNotTheFile(t *testing.T) {
	i := &Images{Nodes: []talos.Running{{Node: "cp-1", Unread: "it is not there"}}}
	i.onlyServers(&scaleway.Inventory{})
	if pins := i.runs("talos-v1.13.5-aaaaaaaaaaaa", "v1.13.5"); len(pins) > 0 {
		t.Errorf("an image is kept by %v", pins)
	}
	i.onlyServers(&scaleway.Inventory{Items: []scaleway.Item{{Kind: blueprint.KindServer, Step: "server/old-1", Name: "old-1"}}})
	if pins := i.runs("talos-v1.13.5-aaaaaaaaaaaa", "v1.13.5"); len(pins) != 1 || !strings.Contains(pins[0], "old-1") {
		t.Errorf("an image is kept by %v, want old-1", pins)
	}
}

// What is used is not replaced, and who uses it is named.
func TestAnImageInUseIsNotReplaced(t *testing.T) {
	for _, user := range []string{"volume cp-1", "node cp-1", "node cp-1, which did not say what it runs", "nodes that were not asked", "the import of x"} {
		i := &Images{wanted: "snapshot/x", wantedKey: "images/x.qcow2", Snapshots: []PinnedSnapshot{{Image: scaleway.Image{Item: scaleway.Item{Step: "snapshot/x"}}, Pins: []string{byFile}}},
			Objects: []PinnedObject{{StoredImage: store.StoredImage{Key: "images/x.qcow2"}, Pins: []string{byFile}}, {StoredImage: store.StoredImage{Key: "images/y.qcow2"}, Pins: []string{user}}}}
		if goes, err := i.replaced("staging"); err != nil || len(goes.Snapshots) != 1 || len(goes.Objects) != 1 {
			t.Errorf("another image in use: %v, %v", goes, err)
		}
		i.Snapshots[0].Pins = append(i.Snapshots[0].Pins, user)
		if _, err := i.replaced("staging"); outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), user) {
			t.Errorf("used by %s: %v", user, err)
		}
	}
}
