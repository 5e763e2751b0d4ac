package session

import (
	"context"
	"fmt"

	"bastide/internal/blueprint"
	"bastide/internal/scaleway"
)

// proveSnapshots has the inventory tell, by the proof of the image's file, which
// snapshot is the step's. It reads the bucket only where that makes a difference:
// where one is needed, or several claim the step. An estate that runs can be
// planned while its bucket cannot be read.
func (s *Session) proveSnapshots(ctx context.Context, g *blueprint.Graph, inv *scaleway.Inventory, needed func(*blueprint.Graph, string) bool) error {
	for _, step := range g.Steps {
		want, ok := step.Spec.(blueprint.Snapshot)
		if !ok {
			continue
		}
		claims := inv.Claims(step.ID)
		if claims == 0 || claims == 1 && !needed(g, step.ID) {
			continue
		}
		file, _ := g.Step(want.Object)
		kept, err := s.Store()
		if err != nil {
			return err
		}
		digest := ""
		found, _, err := kept.Image(ctx, file.Spec.(blueprint.ImageObject).Key)
		if err != nil {
			return err
		}
		if found != nil {
			digest = found.Digest
		}
		inv.Prove(step.ID, want.Object, digest)
	}
	return nil
}

// Made says in one sentence which image there is: its file, its snapshot and the
// content of both.
func (b *Build) Made() string {
	file, snapshot, digest := "its file, which is not needed any more", "", b.Digest
	for _, a := range b.Plan.Actions {
		o, there := b.live.Steps[a.Step.ID]
		if b.known != nil {
			o, there = b.known.Get(a.Step.ID)
		}
		switch want := a.Step.Spec.(type) {
		case blueprint.ImageObject:
			if there && o.CloudID != "" {
				file, digest = want.Key, o.Digest
			}
		case blueprint.Snapshot:
			snapshot = fmt.Sprintf("the snapshot %s (%s)", want.Name, o.CloudID)
		}
	}
	return fmt.Sprintf("the image is there: %s, of %s, content %s%s", snapshot, file, short(digest), madeFrom(b.Source))
}

// short is as much of a digest as people compare.
func short(digest string) string { return digest[:min(len("sha256:")+12, len(digest))] }
