package session

import (
	"context"

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
		claims := inv.Claims(step.ID)
		if !ok || claims == 0 || claims == 1 && !needed(g, step.ID) {
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
