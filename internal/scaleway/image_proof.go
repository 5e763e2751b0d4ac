package scaleway

import (
	"fmt"

	"bastide/internal/blueprint"
	"bastide/internal/plan"
)

// Claims is how many snapshots claim a step.
func (inv *Inventory) Claims(step string) int {
	n := 0
	for _, it := range inv.Items {
		if it.Kind == blueprint.KindSnapshot && it.Step == step {
			n++
		}
	}
	return n
}

// Needed says that a volume is still to be made of a snapshot.
func (inv *Inventory) Needed(g *blueprint.Graph, snapshot string) bool {
	live := plan.Live{Steps: map[string]plan.Observed{}}
	for _, it := range inv.Items {
		live.Steps[it.Step] = plan.Observed{Step: it.Step}
	}
	return wanting(g, &live, snapshot)
}

// Prove settles which of the snapshots that claim a step has it, by what went into
// them: the oldest whose digest is that of the proven file. digest is empty where
// there is no proven file; then the word of a digest's tag is all there is, and a
// snapshot without one is doubted. Doubted ones are beside the step, as if they
// were not there, but for one case: where no file is left to import again, the
// step is broken, because making an image anew would be a guess that nobody asked for.
func (inv *Inventory) Prove(step, object, digest string) {
	if inv.proven == nil {
		inv.proven = map[string]string{}
	}
	inv.proven[object] = digest
	first, doubted := -1, -1
	for i := range inv.Items {
		it := &inv.Items[i]
		if it.Kind != blueprint.KindSnapshot || it.Step != step {
			continue
		}
		it.Second, it.Doubt = true, contentDoubt(it.tags, digest)
		switch {
		case it.Doubt == "" && (first < 0 || before(*it, inv.Items[first])):
			first = i
		case it.Doubt != "" && (doubted < 0 || before(*it, inv.Items[doubted])):
			doubted = i
		}
	}
	switch {
	case first >= 0:
		inv.Items[first].Second = false
	case doubted >= 0 && digest == "":
		it := &inv.Items[doubted]
		it.Second = false
		it.Broken = fmt.Sprintf("nothing is made of the snapshot %s: %s; bastide image prune removes it if no volume is of it, and the next run makes the image anew; if you know what went into it, give it the tag %sDIGEST", it.CloudID, it.Doubt, blueprint.TagDigest)
	}
}

// contentDoubt says why a snapshot is not made of the content that is wanted;
// empty when it is. An empty digest stands for any that is known.
func contentDoubt(tags []string, digest string) string {
	switch have := tagged(tags, blueprint.TagDigest); {
	case have == "" && digest == "":
		return fmt.Sprintf("no tag %s says what went into it, and no proven file of it is left", blueprint.TagDigest)
	case have == "":
		return fmt.Sprintf("no tag %s says what went into it, and its file's content is %s", blueprint.TagDigest, digest)
	case digest != "" && have != digest:
		return fmt.Sprintf("its content is %s, and its file's is %s", have, digest)
	}
	return ""
}
