package scaleway

import (
	"context"
	"fmt"
	"regexp"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

func (c *Cloud) listVolumes(ctx context.Context, tags []string) ([]*block.Volume, error) {
	return list(ctx, c, "volumes", func(v *block.Volume) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*block.Volume, uint64, error) {
		r, err := c.blocks.ListVolumes(&block.ListVolumesRequest{Zone: c.zone, ProjectID: &c.project, Tags: tags, Page: n, PageSize: size,
			OrderBy: block.ListVolumesRequestOrderByCreatedAtAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Volumes, r.TotalCount, nil
	})
}

// listSnapshots lists the project's snapshots whose name contains a text.
func (c *Cloud) listSnapshots(ctx context.Context, name string) ([]*block.Snapshot, error) {
	return c.snapshotsBy(ctx, block.ListSnapshotsRequest{Name: &name})
}

func (c *Cloud) snapshotsBy(ctx context.Context, filter block.ListSnapshotsRequest) ([]*block.Snapshot, error) {
	return list(ctx, c, "snapshots", func(v *block.Snapshot) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*block.Snapshot, uint64, error) {
		r, err := c.blocks.ListSnapshots(&block.ListSnapshotsRequest{Zone: c.zone, ProjectID: &c.project, Name: filter.Name, Tags: filter.Tags, Page: n, PageSize: size,
			OrderBy: block.ListSnapshotsRequestOrderByCreatedAtAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Snapshots, r.TotalCount, nil
	})
}

var uuid = regexp.MustCompile(`(?i)^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$`)

// Snapshot is a block snapshot that volumes can be made from.
type Snapshot struct {
	ID, Name string
	Size     estate.Size
}

// ResolveSnapshot finds the snapshot that the file names, by name or UUID, and
// refuses one that is missing, ambiguous, unfinished or broken. It is called
// before anything is made, and never when an estate is taken down.
func (c *Cloud) ResolveSnapshot(ctx context.Context) (Snapshot, error) {
	ref := c.estate.Talos.Snapshot
	s, err := c.findSnapshot(ctx, ref)
	if err != nil {
		return Snapshot{}, err
	}
	what := fmt.Sprintf("no volume can be made from the snapshot %s", ref)
	switch s.Status {
	case block.SnapshotStatusAvailable, block.SnapshotStatusInUse:
		return Snapshot{s.ID, s.Name, estate.Size(s.Size)}, nil
	case block.SnapshotStatusCreating:
		return Snapshot{}, outcome.Refuse(what, "it is still being made", "run the command again when it is available; an import takes some minutes")
	}
	return Snapshot{}, outcome.Refuse(what, fmt.Sprintf("it is %s (%s)", s.Status, s.ID), "import the Talos disk again and name the new snapshot in talos.snapshot")
}

func (c *Cloud) findSnapshot(ctx context.Context, ref string) (*block.Snapshot, error) {
	what := fmt.Sprintf("no volume can be made from the snapshot %s", ref)
	if uuid.MatchString(ref) {
		s, err := c.blocks.GetSnapshot(&block.GetSnapshotRequest{Zone: c.zone, SnapshotID: ref}, scw.WithContext(ctx))
		if notFound(err) {
			return nil, outcome.Refuse(what, fmt.Sprintf("%s has no such snapshot", c.zone), "correct talos.snapshot or import the Talos disk in that zone").Because(err)
		}
		if err != nil {
			return nil, c.cannotTell(what, err)
		}
		return s, nil
	}
	all, err := c.snapshotsNamed(ctx, ref)
	if err != nil {
		return nil, err
	}
	switch len(all) {
	case 0:
		return nil, outcome.Refuse(what, fmt.Sprintf("the project has no snapshot of that name in %s", c.zone), "correct talos.snapshot or import the Talos disk in that zone")
	case 1:
		return all[0], nil
	}
	return nil, outcome.Refuse(what, fmt.Sprintf("%d snapshots in %s have that name: %s and %s", len(all), c.zone, all[0].ID, all[1].ID), "put the ID of one of them into talos.snapshot")
}

// snapshotsNamed filters exactly; the API's own name filter matches parts.
func (c *Cloud) snapshotsNamed(ctx context.Context, name string) ([]*block.Snapshot, error) {
	all, err := c.listSnapshots(ctx, name)
	if err != nil {
		return nil, err
	}
	var exact []*block.Snapshot
	for _, s := range all {
		if s.Name == name {
			exact = append(exact, s)
		}
	}
	return exact, nil
}

// applyVolume makes a volume from the snapshot or blank. It is made before its
// server, because only so can it have tags and its own IOPS from the start.
func (c *Cloud) applyVolume(ctx context.Context, j job, want blueprint.Volume) (plan.Observed, error) {
	v, fresh, err := ensureNew(ctx, c, forVolume,
		func(ctx context.Context) (*block.Volume, bool, error) {
			all, err := c.listVolumes(ctx, stepTag(j.step))
			return claimed(c, j.step, all, err, func(v *block.Volume) []string { return v.Tags })
		},
		func(ctx context.Context) (*block.Volume, error) { return c.createVolume(ctx, j, want) })
	if err != nil {
		return plan.Observed{}, err
	}
	if v, err = c.volumeSettled(ctx, j.name(), v.ID, fresh); err != nil {
		return plan.Observed{}, err
	}
	if change := volumeChange(v, want); change != nil {
		change.Zone, change.VolumeID = c.zone, v.ID
		if err := c.steady(ctx, forVolume, func(ctx context.Context) error {
			_, err := c.blocks.UpdateVolume(change, scw.WithContext(ctx))
			return err
		}); err != nil {
			return plan.Observed{}, err
		}
		if v, err = c.volumeAs(ctx, j.name(), v.ID, want); err != nil {
			return plan.Observed{}, err
		}
	}
	return j.done(v.ID, want.Zone, string(v.Status), want), nil
}

func (c *Cloud) createVolume(ctx context.Context, j job, want blueprint.Volume) (*block.Volume, error) {
	size := scw.Size(want.Size)
	req := &block.CreateVolumeRequest{Zone: c.zone, ProjectID: c.project, Name: j.step.Name, Tags: c.tags(j.step), PerfIops: scw.Uint32Ptr(uint32(want.IOPS))}
	switch {
	case want.Image != "":
		id, err := j.id(want.Image)
		if err != nil {
			return nil, err
		}
		req.FromSnapshot = &block.CreateVolumeRequestFromSnapshot{SnapshotID: id, Size: &size}
	case want.Snapshot == "":
		req.FromEmpty = &block.CreateVolumeRequestFromEmpty{Size: size}
	default:
		s, err := c.findSnapshot(ctx, want.Snapshot)
		if err != nil {
			return nil, err
		}
		req.FromSnapshot = &block.CreateVolumeRequestFromSnapshot{SnapshotID: s.ID, Size: &size}
	}
	return c.blocks.CreateVolume(req, scw.WithContext(ctx))
}

// volumeChange is what can and must be changed in place: IOPS either way, size
// only upwards.
func volumeChange(v *block.Volume, want blueprint.Volume) *block.UpdateVolumeRequest {
	change := &block.UpdateVolumeRequest{}
	if iopsOf(v) != want.IOPS {
		change.PerfIops = scw.Uint32Ptr(uint32(want.IOPS))
	}
	if estate.Size(v.Size) < want.Size {
		size := scw.Size(want.Size)
		change.Size = &size
	}
	if v.Name != want.Name {
		change.Name = &want.Name
	}
	if change.PerfIops == nil && change.Size == nil && change.Name == nil {
		return nil
	}
	return change
}

func (c *Cloud) volumeSettled(ctx context.Context, name, id string, fresh bool) (*block.Volume, error) {
	return until(ctx, c, waiting{what: name, to: "become available", limit: forVolume, fresh: fresh}, c.readVolume(id), volumeVerdict)
}

// volumeFree waits until a server can have the volume: one that is still being
// made is refused, and so is one that a deleted server has not let go of yet.
func (c *Cloud) volumeFree(ctx context.Context, name, id string) error {
	_, err := until(ctx, c, waiting{what: name, to: "become free for a server", limit: forVolume}, c.readVolume(id), func(v *block.Volume) verdict {
		j := volumeVerdict(v)
		if v.Status == block.VolumeStatusInUse {
			j.done, j.status = false, "in use by the server "+serverOf(v)
		}
		return j
	})
	return err
}

// volumeAs waits until a change has come into force: right after it the volume
// may still show what it was.
func (c *Cloud) volumeAs(ctx context.Context, name, id string, want blueprint.Volume) (*block.Volume, error) {
	return until(ctx, c, waiting{what: name, to: "take its new settings", limit: forVolume}, c.readVolume(id), func(v *block.Volume) verdict {
		j := volumeVerdict(v)
		j.done = j.done && volumeChange(v, want) == nil
		return j
	})
}

func (c *Cloud) readVolume(id string) func(context.Context) (*block.Volume, error) {
	return func(ctx context.Context) (*block.Volume, error) {
		return c.blocks.GetVolume(&block.GetVolumeRequest{Zone: c.zone, VolumeID: id}, scw.WithContext(ctx))
	}
}

func volumeVerdict(v *block.Volume) verdict {
	j := verdict{status: string(v.Status)}
	switch v.Status {
	case block.VolumeStatusAvailable, block.VolumeStatusInUse, block.VolumeStatusSnapshotting:
		j.done = true
	case block.VolumeStatusError:
		j.failed = "Scaleway says that it is in error"
	case block.VolumeStatusLocked:
		j.failed = "Scaleway has locked it"
	}
	return j
}

func iopsOf(v *block.Volume) int {
	if v.Specs == nil || v.Specs.PerfIops == nil {
		return 0
	}
	return int(*v.Specs.PerfIops)
}

// volumeSpec leaves out the snapshot, which only means something beside the one
// that is wanted: see Inventory.origin.
func (r refs) volumeSpec(v *block.Volume) blueprint.Volume {
	return blueprint.Volume{Name: v.Name, Zone: string(v.Zone), Size: estate.Size(v.Size), IOPS: iopsOf(v)}
}
