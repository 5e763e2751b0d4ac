package api

import (
	"fmt"
	"net/http"
	"time"

	"bastide/internal/sim/hardware"
)

// blockVolume is an SBS volume: a disk of its own that outlives every server.
type blockVolume struct {
	record
	Zone         string
	Size         int64 // bytes
	IOPS         int
	Status       string // creating, available, in_use, updating, …
	Refs         []blockRef
	Parent       string // snapshot that it was made from
	Image        *hardware.TalosImage
	LastDetached *time.Time
}

// blockRef says what uses a volume or snapshot; an attachment shows nowhere else.
type blockRef struct {
	ID      string
	Kind    string // product_resource_type: instance_server, instance_image
	Of      string // product_resource_id
	Type    string // exclusive or link
	Status  string // attached, detaching, …
	Created time.Time
}

const (
	gigabyte = int64(1_000_000_000)

	volumeCreates     = 3 * time.Second
	volumeFromCopy    = 5 * time.Second
	volumeUpdates     = 5 * time.Second
	volumeDetaches    = 5 * time.Second
	smallestVolume    = 1 * gigabyte
	largestVolume     = 10_000 * gigabyte
	volumesPerMachine = 16
)

func (r *Region) blockRoutes() {
	// v1alpha1 is an alias that scw still uses.
	for _, version := range []string{"v1", "v1alpha1"} {
		base := "/block/" + version + "/zones/{zone}"
		r.route("GET "+base+"/volumes", http.StatusOK, listVolumes)
		r.route("POST "+base+"/volumes", http.StatusOK, createVolume)
		r.route("GET "+base+"/volumes/{id}", http.StatusOK, getVolume)
		r.route("PATCH "+base+"/volumes/{id}", http.StatusOK, updateVolume)
		r.route("DELETE "+base+"/volumes/{id}", http.StatusNoContent, deleteVolume)
		r.route("GET "+base+"/volume-types", http.StatusOK, listVolumeTypes)
		r.snapshotRoutes(base)
	}
}

func (w *world) viewVolume(v *blockVolume) doc {
	var detached any
	if v.LastDetached != nil {
		detached = stamp(*v.LastDetached)
	}
	return doc{"id": v.ID, "srn": noSRN, "name": v.Name, "type": volumeType(v.IOPS), "size": v.Size, "project_id": v.Project,
		"created_at": stamp(v.Created), "updated_at": stamp(v.Updated), "references": views(v.Refs, viewRef),
		"parent_snapshot_id": orNull(v.Parent), "status": v.Status, "tags": v.Tags, "zone": v.Zone,
		"specs": doc{"perf_iops": v.IOPS, "class": "sbs"}, "last_detached_at": detached, "kms_key_id": nil}
}

func viewRef(r blockRef) doc {
	return doc{"id": r.ID, "product_resource_type": r.Kind, "product_resource_id": r.Of, "created_at": stamp(r.Created),
		"type": r.Type, "status": r.Status}
}

func volumeType(iops int) string {
	if iops == 15000 {
		return "sbs_15k"
	}
	return "sbs_5k"
}

func listVolumes(c *call) (any, error) {
	of, ids, kind := c.query("product_resource_id"), c.values("volume_ids"), c.known("volume_type")
	items := c.Volumes.where(func(v *blockVolume) bool {
		used := of == ""
		for _, r := range v.Refs {
			used = used || r.Of == of
		}
		return v.Zone == c.zone() && c.matches(&v.record) && used && oneOf(v.ID, ids) && oneOf(volumeType(v.IOPS), kind)
	})
	return paged(c, "volumes", items, c.viewVolume)
}

func createVolume(c *call) (any, error) {
	var in struct {
		Name      string   `json:"name"`
		IOPS      opt[int] `json:"perf_iops"`
		Project   string   `json:"project_id"`
		Tags      []string `json:"tags"`
		FromEmpty *struct {
			Size int64 `json:"size"`
		} `json:"from_empty"`
		FromSnapshot *struct {
			Snapshot string     `json:"snapshot_id"`
			Size     opt[int64] `json:"size"`
		} `json:"from_snapshot"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, "", projectForbidden("volume"))
	if err != nil {
		return nil, err
	}
	iops := in.IOPS.or(5000)
	if iops != 5000 && iops != 15000 {
		return nil, invalid("perf_iops", "constraint", "perf_iops must be 5000 or 15000")
	}
	if in.Name == "" {
		in.Name = "vol-" + newID()[:8]
	}
	v := &blockVolume{record: newRecord(owner, in.Name, in.Tags), Zone: c.zone(), IOPS: iops, Status: "creating"}
	switch {
	case in.FromSnapshot != nil && in.FromEmpty != nil:
		return nil, invalid("from_empty", "constraint", "from_empty and from_snapshot exclude each other")
	case in.FromSnapshot != nil:
		err = c.fillFromSnapshot(v, in.FromSnapshot.Snapshot, in.FromSnapshot.Size.or(0))
	case in.FromEmpty != nil:
		v.Size = in.FromEmpty.Size
		err = checkVolumeSize(v.Size)
		c.volumeBecomes(v.ID, volumeCreates, "creating", "available")
	default:
		err = invalid("from_empty", "required", "one of from_empty and from_snapshot is required")
	}
	if err != nil {
		return nil, err
	}
	return c.viewVolume(add(c.world, c.Volumes, v)), nil
}

func checkVolumeSize(size int64) error {
	if size < smallestVolume || size > largestVolume {
		return invalid("size", "constraint", "size must be between 1 GB and 10 TB")
	}
	if size%gigabyte != 0 {
		return invalid("size", "constraint", "size must be a multiple of 1 GB")
	}
	return nil
}

// fillFromSnapshot makes a volume a copy of a snapshot, which counts as in use
// while it is copied.
func (c *call) fillFromSnapshot(v *blockVolume, snapshotID string, size int64) error {
	s, err := c.snapshot(snapshotID)
	if err != nil {
		return err
	}
	if s.Status != "available" && s.Status != "in_use" {
		return transient("snapshot", s.ID, s.Status)
	}
	v.Parent, v.Image, v.Size = s.ID, s.Image, s.Size
	if size != 0 {
		if size < s.Size {
			return precondition("resource_not_usable", fmt.Sprintf("size %d is smaller than the size of the source snapshot, %d", size, s.Size))
		}
		if err := checkVolumeSize(size); err != nil {
			return err
		}
		v.Size = size
	}
	ref := c.useSnapshot(s, "internal", v.ID)
	c.volumeBecomes(v.ID, volumeFromCopy, "creating", "available")
	c.after(volumeFromCopy, func(w *world) { w.unuseSnapshot(s.ID, ref, 0) })
	return nil
}

// volumeBecomes changes a volume's status later, if it still is what it was.
func (w *world) volumeBecomes(id string, d time.Duration, from, to string) {
	w.after(d, func(w *world) {
		if v, ok := w.Volumes.get(id); ok && v.Status == from {
			v.Status = to
			v.touch()
		}
	})
}

func (c *call) volume(id string) (*blockVolume, error) {
	if v, ok := c.Volumes.get(id); ok && v.Zone == c.zone() {
		return v, nil
	}
	return nil, notFound("volume", id)
}

func getVolume(c *call) (any, error) {
	v, err := c.volume(c.path("id"))
	if err != nil {
		return nil, err
	}
	return c.viewVolume(v), nil
}

func updateVolume(c *call) (any, error) {
	v, err := c.volume(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Size opt[int64] `json:"size"`
		IOPS opt[int]   `json:"perf_iops"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	size, iops := in.Size.or(v.Size), in.IOPS.or(v.IOPS)
	if size != v.Size || iops != v.IOPS {
		if v.Status != "available" && v.Status != "in_use" {
			return nil, transient("volume", v.ID, v.Status)
		}
		if size < v.Size {
			return nil, invalid("size", "constraint", "size cannot be decreased")
		}
		if size != v.Size {
			if err := checkVolumeSize(size); err != nil {
				return nil, err
			}
		}
		if iops != 5000 && iops != 15000 {
			return nil, invalid("perf_iops", "constraint", "perf_iops must be 5000 or 15000")
		}
		before := v.Status
		v.Status = "updating"
		c.after(volumeUpdates, func(w *world) {
			if v, ok := w.Volumes.get(v.ID); ok {
				v.Size, v.IOPS = size, iops // visible only now
				if v.Status == "updating" {
					v.Status = before
				}
				v.touch()
			}
		})
	}
	if err := c.rename(&v.record); err != nil {
		return nil, err
	}
	change(c.world, c.Volumes, v)
	return c.viewVolume(v), nil
}

func deleteVolume(c *call) (any, error) {
	v, err := c.volume(c.path("id"))
	if err != nil {
		return nil, err
	}
	switch {
	case len(v.Refs) > 0 || v.Status == "in_use":
		return nil, stillInUse("Volume must be detached to be deleted")
	case v.Status != "available" && v.Status != "error":
		return nil, transient("volume", v.ID, v.Status)
	}
	for _, s := range c.Snapshots.all() {
		if s.Volume == v.ID {
			s.Volume = "" // snapshots outlive their volume, without a parent
		}
	}
	c.region.effects.deleteVolume(v.ID)
	remove(c.world, c.Volumes, v.ID)
	return nil, nil
}

// attachVolume gives a volume to a server, at once.
func (w *world) attachVolume(v *blockVolume, serverID string) {
	v.Status = "in_use"
	v.Refs = append(v.Refs, blockRef{ID: newID(), Kind: "instance_server", Of: serverID, Type: "exclusive",
		Status: "attached", Created: now()})
	change(w, w.Volumes, v)
}

// detachVolume takes a volume from a server; it stays in use for some seconds.
func (w *world) detachVolume(id string) {
	v, ok := w.Volumes.get(id)
	if !ok {
		return
	}
	for i := range v.Refs {
		v.Refs[i].Status = "detaching"
	}
	change(w, w.Volumes, v)
	w.after(volumeDetaches, func(w *world) {
		if v, ok := w.Volumes.get(id); ok && len(v.Refs) > 0 && v.Refs[0].Status == "detaching" {
			t := now()
			v.Refs, v.LastDetached = nil, &t
			if v.Status == "in_use" {
				v.Status = "available"
			}
			v.touch()
		}
	})
}

func listVolumeTypes(c *call) (any, error) {
	price := func(nanos int) doc { return doc{"currency_code": "EUR", "units": 0, "nanos": nanos} }
	types := []doc{}
	for _, t := range []struct {
		iops, nanos int
	}{{5000, 136000}, {15000, 204000}} {
		types = append(types, doc{"type": volumeType(t.iops), "pricing": price(t.nanos), "snapshot_pricing": price(44000),
			"specs": doc{"perf_iops": t.iops, "class": "sbs"}, "zone": c.zone()})
	}
	return doc{"volume_types": types, "total_count": len(types)}, nil
}
