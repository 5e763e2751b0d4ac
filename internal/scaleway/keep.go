package scaleway

import (
	"fmt"

	"bastide/internal/blueprint"
)

// Kept is something of the estate that a teardown leaves.
type Kept struct {
	Item  Item
	Class blueprint.Data // the class of data that it holds; empty when it only carries something kept
	Why   string
}

// keep lists what a teardown leaves: what holds data of a class that was not
// named, and what that stands on, in the order of the items.
func keep(items []Item, named []blueprint.Data) []Kept {
	gone := map[blueprint.Data]bool{"": true}
	for _, d := range named {
		gone[d] = true
	}
	why := map[int]string{}
	stand := map[string]Item{} // step -> what stands on it
	var rest []Item
	for i, it := range items {
		if class := it.Kind.Data(); !gone[class] {
			why[i] = fmt.Sprintf("it holds data (%s)", class)
			rest = append(rest, it)
		}
	}
	for len(rest) > 0 {
		it := rest[0]
		rest = rest[1:]
		for _, step := range blueprint.StandsOn(it.Spec) {
			if _, known := stand[step]; known || step == "" {
				continue
			}
			stand[step] = it
			for i, below := range items {
				if _, kept := why[i]; below.Step != step || kept {
					continue
				}
				why[i] = fmt.Sprintf("the %s %s stands on it", it.Kind, it.Name)
				rest = append(rest, below)
			}
		}
	}
	var out []Kept
	for i, it := range items {
		if reason, kept := why[i]; kept {
			k := Kept{Item: it, Why: reason}
			if class := it.Kind.Data(); !gone[class] {
				k.Class = class
			}
			out = append(out, k)
		}
	}
	return out
}
