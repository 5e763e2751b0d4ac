package api

import (
	"net/http"
	"time"

	"bastide/internal/sim/hardware"
)

// localVolume is a disk inside a hypervisor: instance v1 knows only these, and
// answers 404 for SBS volumes.
type localVolume struct {
	record
	Zone   string
	Type   string // l_ssd or scratch
	Size   int64
	State  string
	Server string
	Image  *hardware.TalosImage
}

type localSnapshot struct {
	record
	Zone   string
	Type   string
	Size   int64
	State  string // snapshotting, available
	Volume string
	Base   string // name of the volume
	Image  *hardware.TalosImage
}

const localSnapshotTakes = 40 * time.Second

func (r *Region) localVolumeRoutes(base string) {
	r.route("GET "+base+"/volumes", http.StatusOK, listLocalVolumes)
	r.route("POST "+base+"/volumes", http.StatusCreated, createLocalVolume)
	r.route("GET "+base+"/volumes/{id}", http.StatusOK, getLocalVolume)
	r.route("PATCH "+base+"/volumes/{id}", http.StatusOK, updateLocalVolume)
	r.route("DELETE "+base+"/volumes/{id}", http.StatusNoContent, deleteLocalVolume)
	r.route("GET "+base+"/snapshots", http.StatusOK, listLocalSnapshots)
	r.route("POST "+base+"/snapshots", http.StatusCreated, createLocalSnapshot)
	r.route("GET "+base+"/snapshots/{id}", http.StatusOK, getLocalSnapshot)
	r.route("PATCH "+base+"/snapshots/{id}", http.StatusOK, updateLocalSnapshot)
	r.route("PUT "+base+"/snapshots/{id}", http.StatusOK, updateLocalSnapshot)
	r.route("DELETE "+base+"/snapshots/{id}", http.StatusNoContent, deleteLocalSnapshot)
	r.route("POST "+base+"/snapshots/{id}/export", http.StatusAccepted, exportLocalSnapshot)
}

func (c *call) viewLocalVolume(v *localVolume) doc {
	d := doc{"id": v.ID, "name": v.Name, "volume_type": v.Type, "export_uri": nil, "organization": c.organization(v.Project),
		"project": v.Project, "server": nil, "size": v.Size, "state": v.State, "creation_date": stampV1(v.Created),
		"modification_date": stampV1(v.Updated), "tags": v.Tags, "zone": v.Zone}
	if s, ok := c.Servers.get(v.Server); ok {
		d["server"] = doc{"id": s.ID, "name": s.Name}
	}
	return d
}

func listLocalVolumes(c *call) (any, error) {
	kind := c.query("volume_type")
	items := c.LocalVolumes.where(func(v *localVolume) bool {
		return v.Zone == c.zone() && c.matchesV1(&v.record) && (kind == "" || v.Type == kind)
	})
	return pagedV1(c, "volumes", items, c.viewLocalVolume)
}

func createLocalVolume(c *call) (any, error) {
	var in struct {
		Name         string     `json:"name"`
		Project      string     `json:"project"`
		Organization string     `json:"organization"`
		Tags         []string   `json:"tags"`
		Type         string     `json:"volume_type"`
		Size         opt[int64] `json:"size"`
		Base         string     `json:"base_snapshot"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, in.Organization, projectForbidden("volume"))
	if err != nil {
		return nil, err
	}
	v := &localVolume{record: newRecord(owner, in.Name, in.Tags), Zone: c.zone(), Type: in.Type, Size: in.Size.or(0), State: "available"}
	if in.Type == "" {
		v.Type = "l_ssd"
	}
	if v.Type != "l_ssd" && v.Type != "scratch" {
		return nil, invalid("volume_type", "constraint", "volume type "+in.Type+" is not available")
	}
	if in.Base != "" {
		s, ok := c.LocalSnapshots.get(in.Base)
		if !ok || s.Zone != c.zone() {
			return nil, notFound("instance_snapshot", in.Base)
		}
		v.Size, v.Image = max(v.Size, s.Size), s.Image
	}
	if v.Size < gigabyte {
		return nil, invalid("size", "constraint", "size must be at least 1 GB")
	}
	return doc{"volume": c.viewLocalVolume(add(c.world, c.LocalVolumes, v))}, nil
}

func (c *call) localVolume() (*localVolume, error) {
	if v, ok := c.LocalVolumes.get(c.path("id")); ok && v.Zone == c.zone() {
		return v, nil
	}
	return nil, notFound("instance_volume", c.path("id"))
}

func getLocalVolume(c *call) (any, error) {
	v, err := c.localVolume()
	if err != nil {
		return nil, err
	}
	return doc{"volume": c.viewLocalVolume(v)}, nil
}

func updateLocalVolume(c *call) (any, error) {
	v, err := c.localVolume()
	if err != nil {
		return nil, err
	}
	if err := c.rename(&v.record); err != nil {
		return nil, err
	}
	change(c.world, c.LocalVolumes, v)
	return doc{"volume": c.viewLocalVolume(v)}, nil
}

func deleteLocalVolume(c *call) (any, error) {
	v, err := c.localVolume()
	if err != nil {
		return nil, err
	}
	if v.Server != "" {
		return nil, badRequest("a server is attached to this volume")
	}
	c.region.effects.deleteVolume(v.ID)
	remove(c.world, c.LocalVolumes, v.ID)
	return nil, nil
}

func (c *call) viewLocalSnapshot(s *localSnapshot) doc {
	d := doc{"id": s.ID, "name": s.Name, "volume_type": s.Type, "creation_date": stampV1(s.Created),
		"modification_date": stampV1(s.Updated), "organization": c.organization(s.Project), "project": s.Project, "size": s.Size,
		"state": s.State, "base_volume": nil, "tags": s.Tags, "zone": s.Zone, "error_details": nil}
	if s.Volume != "" {
		d["base_volume"] = doc{"id": s.Volume, "name": s.Base}
	}
	return d
}

func listLocalSnapshots(c *call) (any, error) {
	base := c.values("base_volume_id")
	items := c.LocalSnapshots.where(func(s *localSnapshot) bool {
		return s.Zone == c.zone() && c.matchesV1(&s.record) && oneOf(s.Volume, base)
	})
	return pagedV1(c, "snapshots", items, c.viewLocalSnapshot)
}

func createLocalSnapshot(c *call) (any, error) {
	var in struct {
		Name         string   `json:"name"`
		Volume       string   `json:"volume_id"`
		Project      string   `json:"project"`
		Organization string   `json:"organization"`
		Tags         []string `json:"tags"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, in.Organization, projectForbidden("snapshot"))
	if err != nil {
		return nil, err
	}
	v, ok := c.LocalVolumes.get(in.Volume)
	if !ok || v.Zone != c.zone() {
		// The snapshot of an SBS volume is the block API's business.
		return nil, notFound("instance_volume", in.Volume)
	}
	if v.Type == "scratch" {
		return nil, badRequest("scratch volumes cannot be snapshotted")
	}
	s := &localSnapshot{record: newRecord(owner, in.Name, in.Tags), Zone: c.zone(), Type: v.Type, Size: v.Size, State: "snapshotting",
		Volume: v.ID, Base: v.Name, Image: v.Image}
	add(c.world, c.LocalSnapshots, s)
	c.localSnapshotReady(s.ID, localSnapshotTakes)
	return doc{"snapshot": c.viewLocalSnapshot(s),
		"task": task("/snapshots", "snapshots/"+s.ID, s.Zone)}, nil
}

func (w *world) localSnapshotReady(id string, d time.Duration) {
	w.after(d, func(w *world) {
		if s, ok := w.LocalSnapshots.get(id); ok {
			s.State = "available"
			s.touch()
		}
	})
}

func (c *call) localSnapshot() (*localSnapshot, error) {
	if s, ok := c.LocalSnapshots.get(c.path("id")); ok && s.Zone == c.zone() {
		return s, nil
	}
	return nil, notFound("instance_snapshot", c.path("id"))
}

func getLocalSnapshot(c *call) (any, error) {
	s, err := c.localSnapshot()
	if err != nil {
		return nil, err
	}
	return doc{"snapshot": c.viewLocalSnapshot(s)}, nil
}

func updateLocalSnapshot(c *call) (any, error) {
	s, err := c.localSnapshot()
	if err != nil {
		return nil, err
	}
	if err := c.rename(&s.record); err != nil {
		return nil, err
	}
	change(c.world, c.LocalSnapshots, s)
	return doc{"snapshot": c.viewLocalSnapshot(s)}, nil
}

func deleteLocalSnapshot(c *call) (any, error) {
	s, err := c.localSnapshot()
	if err != nil {
		return nil, err
	}
	if s.State != "available" {
		return nil, transient("instance_snapshot", s.ID, s.State)
	}
	if c.usedByImage(s.ID) {
		return nil, badRequest("one or more images are using this snapshot")
	}
	remove(c.world, c.LocalSnapshots, s.ID)
	return nil, nil
}

func exportLocalSnapshot(c *call) (any, error) {
	s, err := c.localSnapshot()
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
	s.State = "exporting"
	change(c.world, c.LocalSnapshots, s)
	c.localSnapshotReady(s.ID, exportTakes)
	return doc{"task": task("/snapshots/"+s.ID+"/export",
		"https://s3."+regionOf(s.Zone)+".scw.cloud/"+in.Bucket+"/"+in.Key, s.Zone)}, nil
}
