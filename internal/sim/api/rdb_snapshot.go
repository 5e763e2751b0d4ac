package api

import (
	"net/http"
	"strings"
	"time"
)

// rdbSnapshot is a copy of an instance's volume, with all that was on it.
type rdbSnapshot struct {
	record
	Region  string
	Status  string // creating, ready, deleting
	Size    int64  // 0 until it is made
	Expires time.Time
	Of      rdbInstance // as it was
}

const (
	rdbSnapshotMade = 8 * time.Second
	rdbSnapshotGoes = 10 * time.Second
)

func (r *Region) rdbSnapshotRoutes(base, one string) {
	r.route("GET "+base+"/snapshots", http.StatusOK, listRDBSnapshots)
	r.route("POST "+one+"/snapshots", http.StatusOK, createRDBSnapshot)
	r.route("GET "+base+"/snapshots/{id}", http.StatusOK, getRDBSnapshot)
	r.route("PATCH "+base+"/snapshots/{id}", http.StatusOK, updateRDBSnapshot)
	r.route("DELETE "+base+"/snapshots/{id}", http.StatusOK, deleteRDBSnapshot)
	r.route("POST "+base+"/snapshots/{id}/create-instance", http.StatusOK, createRDBFromSnapshot)
}

func viewRDBSnapshot(s *rdbSnapshot) doc {
	var updated any
	if s.Size > 0 {
		updated = stamp(s.Updated)
	}
	return doc{"id": s.ID, "name": s.Name, "status": s.Status, "instance_id": s.Of.ID, "instance_name": s.Of.Name,
		"node_type": strings.ToLower(s.Of.NodeType), "size": sizeOrNull(s.Size), "expires_at": stampWhenSet(s.Expires), "created_at": stamp(s.Created),
		"updated_at": updated, "volume_type": doc{"type": s.Of.Volume.Type, "class": storageClass(s.Of.Volume.Type)}, "region": s.Region}
}

func (s *rdbSnapshot) orderKey(string) string { return stamp(s.Expires) }

func listRDBSnapshots(c *call) (any, error) {
	items := c.RDBSnapshots.where(func(s *rdbSnapshot) bool {
		return s.Region == c.regionName() && c.matches(&s.record) && oneOf(s.Of.ID, c.values("instance_id"))
	})
	return paged(c, "snapshots", items, viewRDBSnapshot)
}

// createRDBSnapshot needs block storage: a local volume cannot be copied.
func createRDBSnapshot(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Name    string    `json:"name"`
		Expires time.Time `json:"expires_at"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if i.Volume.Type == "lssd" {
		return nil, precondition("resource_not_usable", "an instance on a local volume has no snapshots")
	}
	if in.Name == "" {
		in.Name = "snp-" + newID()[:8]
	}
	s := &rdbSnapshot{record: newRecord(i.Project, in.Name, nil), Region: i.Region, Status: "creating", Expires: in.Expires, Of: *i}
	s.Of.Users, s.Of.Databases = append([]rdbUser(nil), i.Users...), append([]rdbDatabase(nil), i.Databases...)
	s.Of.Privileges = append([]rdbPrivilege(nil), i.Privileges...)
	if s.Expires.IsZero() {
		s.Expires = lastsYear(s.Created)
	}
	add(c.world, c.RDBSnapshots, s)
	c.rdbBusy(i, "snapshotting", rdbSnapshotMade, nil)
	id := s.ID
	c.after(rdbSnapshotMade, func(w *world) {
		if s, ok := w.RDBSnapshots.get(id); ok && s.Status == "creating" {
			s.Status, s.Size = "ready", s.Of.Volume.Size
			s.touch()
		}
	})
	return viewRDBSnapshot(s), nil
}

func (c *call) rdbSnapshot() (*rdbSnapshot, error) {
	if s, ok := c.RDBSnapshots.get(c.path("id")); ok && s.Region == c.regionName() {
		return s, nil
	}
	return nil, notFound("instance_snapshot", c.path("id"))
}

func (c *call) readyRDBSnapshot() (*rdbSnapshot, error) {
	s, err := c.rdbSnapshot()
	if err == nil && s.Status != "ready" {
		return nil, transient("instance_snapshot", s.ID, s.Status)
	}
	return s, err
}

func getRDBSnapshot(c *call) (any, error) {
	s, err := c.rdbSnapshot()
	if err != nil {
		return nil, err
	}
	return viewRDBSnapshot(s), nil
}

func updateRDBSnapshot(c *call) (any, error) {
	s, err := c.readyRDBSnapshot()
	if err != nil {
		return nil, err
	}
	var in struct {
		Expires opt[time.Time] `json:"expires_at"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := c.rename(&s.record); err != nil {
		return nil, err
	}
	if in.Expires.given && !in.Expires.null {
		s.Expires = in.Expires.value
	}
	change(c.world, c.RDBSnapshots, s)
	return viewRDBSnapshot(s), nil
}

func deleteRDBSnapshot(c *call) (any, error) {
	s, err := c.rdbSnapshot()
	if err != nil {
		return nil, err
	}
	s.Status = "deleting"
	id := s.ID
	c.effect("changed", c.RDBSnapshots.Kind, id)
	c.after(rdbSnapshotGoes, func(w *world) { remove(w, w.RDBSnapshots, id) })
	return viewRDBSnapshot(s), nil
}

// createRDBFromSnapshot always makes a public endpoint, also when the first
// instance had none: nothing in the request could say otherwise.
func createRDBFromSnapshot(c *call) (any, error) {
	s, err := c.readyRDBSnapshot()
	if err != nil {
		return nil, err
	}
	var in struct {
		Name     string `json:"instance_name"`
		NodeType string `json:"node_type"`
		HA       bool   `json:"is_ha_cluster"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.NodeType != "" {
		if _, ok := findNodeType(in.NodeType); !ok {
			return nil, invalid("node_type", "constraint", "node type "+in.NodeType+" does not exist")
		}
	}
	if in.Name == "" {
		in.Name = "rdb-" + newID()[:8]
	}
	i := c.copyRDB(&s.Of, in.Name)
	i.HA, i.From = in.HA, "" // what is in it now is not what was in it then
	if in.NodeType != "" {
		i.NodeType = in.NodeType
	}
	c.raiseRDB(i, (*world).exposeRDB)
	return c.viewRDB(i), nil
}
