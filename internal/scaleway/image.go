package scaleway

import (
	"context"
	"fmt"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

func (c *Cloud) listImages(ctx context.Context, tags []string) ([]*block.Snapshot, error) {
	return c.snapshotsBy(ctx, block.ListSnapshotsRequest{Tags: tags})
}

// images are the snapshots that bastide imported. One in error claims no step:
// nothing is ever made of it, and the step's next attempt removes it.
func (r *reader) images() {
	all := r.f.images
	if r.f.remains != nil {
		all = r.f.remains.snapshots
	}
	for _, s := range all {
		if !r.marked(s.Tags) || !strings.HasPrefix(stepOf(s.Tags), string(blueprint.KindSnapshot)+"/") || leaving(s) {
			continue
		}
		v := snapshotVerdict(s)
		it := Item{Kind: blueprint.KindSnapshot, Step: stepOf(s.Tags), Name: s.Name, CloudID: s.ID, Zone: string(s.Zone), Status: string(s.Status),
			Settled: v.done, Broken: v.failed, Created: moment(s.CreatedAt), tags: s.Tags, Spec: snapshotSpec(s)}
		if s.Status == block.SnapshotStatusError {
			it.Step, it.useless = "", true
		}
		r.add(it)
	}
}

func leaving(s *block.Snapshot) bool {
	return s.Status == block.SnapshotStatusDeleting || s.Status == block.SnapshotStatusDeleted
}

func snapshotSpec(s *block.Snapshot) blueprint.Snapshot {
	return blueprint.Snapshot{Name: s.Name, Zone: string(s.Zone), Talos: tagged(s.Tags, blueprint.TagTalos), Schematic: tagged(s.Tags, blueprint.TagSchematic), Size: estate.Size(s.Size)}
}

// tagged is what a tag of the form KEY=VALUE says; "" without one.
func tagged(tags []string, key string) string {
	for _, t := range tags {
		if value, ok := strings.CutPrefix(t, key); ok {
			return value
		}
	}
	return ""
}

func snapshotVerdict(s *block.Snapshot) verdict {
	v := verdict{status: string(s.Status)}
	switch s.Status {
	case block.SnapshotStatusAvailable, block.SnapshotStatusInUse, block.SnapshotStatusExporting:
		v.done = true
	case block.SnapshotStatusError:
		v.failed = fmt.Sprintf("Scaleway says that %s is in error: it could not make a disk of the object", s.ID)
	case block.SnapshotStatusLocked:
		v.failed = fmt.Sprintf("Scaleway has locked %s", s.ID)
	}
	return v
}

// needless takes the image for settled where nothing will be made of it: an
// estate that runs lives on when its image is gone, and a snapshot needs no object.
func (inv *Inventory) needless(g *blueprint.Graph, live *plan.Live) {
	for _, s := range g.Steps {
		if want, ok := s.Spec.(blueprint.Snapshot); ok && !wanting(g, live, s.ID) {
			live.Steps[s.ID] = plan.Observed{Step: s.ID, CloudID: live.Steps[s.ID].CloudID, Status: "not needed: every volume of it exists", Settled: true, Spec: want}
		}
	}
	for _, s := range g.Steps {
		want, ok := s.Spec.(blueprint.ImageObject)
		if !ok {
			continue
		}
		needed := false
		for _, other := range g.Steps {
			snapshot, is := other.Spec.(blueprint.Snapshot)
			_, there := live.Steps[other.ID]
			needed = needed || is && snapshot.Object == s.ID && !there
		}
		if !needed {
			live.Steps[s.ID] = plan.Observed{Step: s.ID, Status: "not needed: its snapshot was made", Settled: true, Spec: want, Digest: inv.proven[s.ID]}
		}
	}
}

// wanting says that a volume is still to be made of a snapshot.
func wanting(g *blueprint.Graph, live *plan.Live, snapshot string) bool {
	for _, s := range g.Steps {
		if v, ok := s.Spec.(blueprint.Volume); ok && v.Image == snapshot {
			if _, there := live.Steps[s.ID]; !there {
				return true
			}
		}
	}
	return false
}

// applySnapshot imports the object that holds the disk, or waits for the import
// that an earlier run began. One that failed is removed first; one that another
// content went into is not used.
func (c *Cloud) applySnapshot(ctx context.Context, j job, want blueprint.Snapshot) (plan.Observed, error) {
	digest := ""
	if o, ok := j.known.Get(want.Object); ok {
		digest = o.Digest
	}
	s, fresh, err := ensureNew(ctx, c, forImport,
		func(ctx context.Context) (*block.Snapshot, bool, error) { return c.usableImage(ctx, j.step, digest) },
		func(ctx context.Context) (*block.Snapshot, error) { return c.importImage(ctx, j, want, digest) })
	if err != nil {
		return plan.Observed{}, err
	}
	s, err = until(ctx, c, waiting{what: fmt.Sprintf("%s (%s)", j.name(), s.ID), to: "become available", limit: forImport, fresh: fresh}, c.readSnapshot(s.ID), snapshotVerdict)
	if err != nil {
		return plan.Observed{}, failedImport(s, err)
	}
	have := snapshotSpec(s)
	have.Object = want.Object
	return j.done(s.ID, string(s.Zone), string(s.Status), have), nil
}

// failedImport says what becomes of an import that ended in error.
func failedImport(s *block.Snapshot, err error) error {
	if s == nil || s.Status != block.SnapshotStatusError {
		return err
	}
	return outcome.Fail(fmt.Sprintf("the import of the snapshot %s (%s) failed", s.Name, s.ID), "Scaleway says that it is in error, and not why: no disk could be made of the object",
		"run the command again: it removes this snapshot and imports the object once more; if that fails too, remove the object with an S3 client, so that it is made again").Because(err)
}

func (c *Cloud) readSnapshot(id string) func(context.Context) (*block.Snapshot, error) {
	return func(ctx context.Context) (*block.Snapshot, error) {
		return c.blocks.GetSnapshot(&block.GetSnapshotRequest{Zone: c.zone, SnapshotID: id}, scw.WithContext(ctx))
	}
}

// usableImage is the oldest snapshot of the step that may become or is a disk, of
// the content that is wanted where that is known. The step's own failed ones
// are removed: they are billed, and nobody can use them.
func (c *Cloud) usableImage(ctx context.Context, step blueprint.Step, digest string) (*block.Snapshot, bool, error) {
	all, err := c.listImages(ctx, stepTag(step))
	if err != nil {
		return nil, false, err
	}
	for _, s := range all {
		switch {
		case !c.ours(s.Tags, step) || leaving(s):
		case s.Status == block.SnapshotStatusError:
			it := Item{Kind: blueprint.KindSnapshot, Name: s.Name, CloudID: s.ID, Zone: string(s.Zone)}
			if err := c.removeSnapshot(ctx, it); err != nil && !notFound(err) {
				return nil, false, err
			}
		case contentDoubt(s.Tags, digest) == "":
			return s, true, nil
		}
	}
	return nil, false, nil
}

func (c *Cloud) importImage(ctx context.Context, j job, want blueprint.Snapshot, digest string) (*block.Snapshot, error) {
	if digest == "" {
		return nil, outcome.Fail(fmt.Sprintf("the snapshot %s was not made", want.Name), "no object is proven to hold the disk", "run the command again: it looks for the object, or makes it")
	}
	object, ok := j.known.Get(want.Object)
	file, is := object.Spec.(blueprint.ImageObject)
	if !ok || !is {
		return nil, fmt.Errorf("%s is not made yet", want.Object)
	}
	tags := append(c.tags(j.step), blueprint.TagTalos+want.Talos, blueprint.TagSchematic+want.Schematic, blueprint.TagDigest+digest)
	return c.blocks.ImportSnapshotFromObjectStorage(&block.ImportSnapshotFromObjectStorageRequest{Zone: c.zone, ProjectID: c.project,
		Bucket: file.Bucket, Key: file.Key, Name: want.Name, Tags: tags}, scw.WithContext(ctx))
}

// removeImage waits for an import that still runs: until it ends it cannot be
// deleted.
func (c *Cloud) removeImage(ctx context.Context, it Item) error {
	_, err := until(ctx, c, waiting{what: "the snapshot " + it.Name, to: "come to rest", limit: forImport}, c.readSnapshot(it.CloudID), func(s *block.Snapshot) verdict {
		return verdict{status: string(s.Status), done: s.Status != block.SnapshotStatusCreating}
	})
	if err != nil {
		return err
	}
	return c.removeSnapshot(ctx, it)
}

// madeOf says that a volume of the estate was made from a snapshot.
func (inv *Inventory) madeOf(snapshot string) bool {
	for _, parent := range inv.parents {
		if parent == snapshot {
			return true
		}
	}
	return false
}
