package api

import (
	"net/http"
	"time"

	"bastide/internal/sim/hardware"
)

// blockSnapshot is an SBS snapshot: of a volume, or imported from a QCOW2 object.
type blockSnapshot struct {
	record
	Zone   string
	Size   int64
	Volume string // parent, empty once that is gone
	Status string // creating, available, in_use, exporting, error
	Refs   []blockRef
	Public bool
	Image  *hardware.TalosImage
}

// export is what a snapshot left in object storage.
type export struct {
	Size  int64
	Image *hardware.TalosImage
}

const (
	snapshotStarts = 3 * time.Second
	snapshotPerGB  = 500 * time.Millisecond
	exportTakes    = 30 * time.Second
	imageReturns   = 10 * time.Second
)

func (r *Region) snapshotRoutes(base string) {
	r.route("GET "+base+"/snapshots", http.StatusOK, listSnapshots)
	r.route("POST "+base+"/snapshots", http.StatusOK, createSnapshot)
	r.route("GET "+base+"/snapshots/{id}", http.StatusOK, getSnapshot)
	r.route("PATCH "+base+"/snapshots/{id}", http.StatusOK, updateSnapshot)
	r.route("DELETE "+base+"/snapshots/{id}", http.StatusNoContent, deleteSnapshot)
	r.route("POST "+base+"/snapshots/import-from-object-storage", http.StatusOK, importSnapshot)
	r.route("POST "+base+"/snapshots/{id}/export-to-object-storage", http.StatusOK, exportSnapshot)
}

func (w *world) viewSnapshot(s *blockSnapshot) doc {
	d := doc{"id": s.ID, "srn": noSRN, "name": s.Name, "parent_volume": nil, "size": s.Size, "project_id": s.Project,
		"created_at": stamp(s.Created), "updated_at": stamp(s.Updated), "references": views(s.Refs, viewRef),
		"status": s.Status, "tags": s.Tags, "zone": s.Zone, "class": "sbs", "public": s.Public, "kms_key_id": nil}
	if v, ok := w.Volumes.get(s.Volume); ok {
		d["parent_volume"] = doc{"id": v.ID, "name": v.Name, "type": volumeType(v.IOPS), "status": v.Status}
	}
	return d
}

func listSnapshots(c *call) (any, error) {
	items := c.Snapshots.where(func(s *blockSnapshot) bool {
		return s.Zone == c.zone() && c.matches(&s.record) && oneOf(s.Volume, c.values("volume_id"))
	})
	return paged(c, "snapshots", items, c.viewSnapshot)
}

func createSnapshot(c *call) (any, error) {
	var in struct {
		Volume  string   `json:"volume_id"`
		Name    string   `json:"name"`
		Project string   `json:"project_id"`
		Tags    []string `json:"tags"`
		Public  bool     `json:"public"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, "", projectForbidden("snapshot"))
	if err != nil {
		return nil, err
	}
	v, err := c.volume(in.Volume)
	if err != nil {
		return nil, err
	}
	if v.Status != "available" && v.Status != "in_use" {
		return nil, transient("volume", v.ID, v.Status)
	}
	if in.Name == "" {
		in.Name = "snap-" + newID()[:8]
	}
	s := &blockSnapshot{record: newRecord(owner, in.Name, in.Tags), Zone: c.zone(), Size: v.Size, Volume: v.ID,
		Status: "creating", Public: in.Public, Image: v.Image}
	add(c.world, c.Snapshots, s)
	view := c.viewSnapshot(s)
	// While it is copied, something internal refers to it.
	s.Refs = []blockRef{{ID: newID(), Kind: "internal", Of: "00000000-0000-0000-0000-000000000000", Type: "unknown_type",
		Status: "attached", Created: now()}}
	c.snapshotBecomes(s.ID, snapshotStarts+time.Duration(v.Size/gigabyte)*snapshotPerGB, "creating", "available")
	return view, nil
}

func (w *world) snapshotBecomes(id string, d time.Duration, from, to string) {
	w.after(d, func(w *world) {
		if s, ok := w.Snapshots.get(id); ok && s.Status == from {
			s.Status = to
			s.Refs = nil
			s.touch()
		}
	})
}

// snapshot finds a snapshot. Those behind catalogue images exist but are
// somebody else's.
func (c *call) snapshot(id string) (*blockSnapshot, error) {
	if s, ok := c.Snapshots.get(id); ok && s.Zone == c.zone() {
		return s, nil
	}
	if isCatalogueSnapshot(id) {
		return nil, forbidden("snapshot", "read")
	}
	return nil, notFound("snapshot", id)
}

func getSnapshot(c *call) (any, error) {
	s, err := c.snapshot(c.path("id"))
	if err != nil {
		return nil, err
	}
	return c.viewSnapshot(s), nil
}

func updateSnapshot(c *call) (any, error) {
	s, err := c.snapshot(c.path("id"))
	if err != nil {
		return nil, err
	}
	if err := c.rename(&s.record); err != nil {
		return nil, err
	}
	change(c.world, c.Snapshots, s)
	return c.viewSnapshot(s), nil
}

func deleteSnapshot(c *call) (any, error) {
	s, err := c.snapshot(c.path("id"))
	if err != nil {
		return nil, err
	}
	switch {
	case len(s.Refs) > 0 || s.Status == "in_use":
		return nil, stillInUse("Snapshot is in use")
	case s.Status != "available" && s.Status != "error":
		return nil, transient("snapshot", s.ID, s.Status)
	}
	remove(c.world, c.Snapshots, s.ID)
	return nil, nil
}

// useSnapshot marks a snapshot as in use and returns the reference's id.
func (w *world) useSnapshot(s *blockSnapshot, kind, of string) string {
	ref := blockRef{ID: newID(), Kind: kind, Of: of, Type: "link", Status: "attached", Created: now()}
	s.Refs = append(s.Refs, ref)
	s.Status = "in_use"
	change(w, w.Snapshots, s)
	return ref.ID
}

// unuseSnapshot takes a reference away; the snapshot is free only later.
func (w *world) unuseSnapshot(id, ref string, delay time.Duration) {
	s, ok := w.Snapshots.get(id)
	if !ok {
		return
	}
	kept := []blockRef{}
	for _, r := range s.Refs {
		if r.ID != ref {
			kept = append(kept, r)
		}
	}
	s.Refs = kept
	s.touch()
	w.after(delay, func(w *world) {
		if s, ok := w.Snapshots.get(id); ok && len(s.Refs) == 0 && s.Status == "in_use" {
			s.Status = "available"
			s.touch()
		}
	})
}

func exportSnapshot(c *call) (any, error) {
	s, err := c.snapshot(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Bucket string `json:"bucket"`
		Key    string `json:"key"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if s.Status != "available" {
		return nil, transient("snapshot", s.ID, s.Status)
	}
	c.Exports[in.Bucket+"/"+in.Key] = export{s.Size, s.Image}
	s.Status = "exporting"
	change(c.world, c.Snapshots, s)
	c.snapshotBecomes(s.ID, exportTakes, "exporting", "available")
	return c.viewSnapshot(s), nil
}
