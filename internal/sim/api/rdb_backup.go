package api

import (
	"net/http"
	"time"
)

// rdbBackup is an export of one logical database, kept apart from its instance.
type rdbBackup struct {
	record
	Region         string
	Status         string // creating, ready, exporting, restoring, deleting
	Instance       string
	InstanceName   string
	Database       string
	Size           int64 // 0 until it is made
	SameRegion     bool
	Expires, Until time.Time // of the backup, and of its download
	Download       string
}

const (
	rdbBackupMade    = 3 * time.Second
	rdbBackupExports = 25 * time.Second
	rdbBackupGoes    = 2 * time.Second
)

func (r *Region) rdbBackupRoutes(base string) {
	r.route("GET "+base+"/backups", http.StatusOK, listRDBBackups)
	r.route("POST "+base+"/backups", http.StatusOK, createRDBBackup)
	r.route("GET "+base+"/backups/{id}", http.StatusOK, getRDBBackup)
	r.route("PATCH "+base+"/backups/{id}", http.StatusOK, updateRDBBackup)
	r.route("DELETE "+base+"/backups/{id}", http.StatusOK, deleteRDBBackup)
	r.route("POST "+base+"/backups/{id}/export", http.StatusOK, exportRDBBackup)
	r.route("POST "+base+"/backups/{id}/restore", http.StatusOK, restoreRDBBackup)
}

// stampWhenSet writes a time that somebody gave: whole seconds without a fraction.
func stampWhenSet(t time.Time) any {
	switch {
	case t.IsZero():
		return nil
	case t.Nanosecond() == 0:
		return t.UTC().Format(time.RFC3339)
	}
	return stamp(t.UTC())
}

func sizeOrNull(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

func viewRDBBackup(b *rdbBackup) doc {
	var updated any
	if b.Size > 0 {
		updated = stamp(b.Updated)
	}
	return doc{"id": b.ID, "name": b.Name, "status": b.Status, "instance_id": b.Instance, "instance_name": b.InstanceName, "database_name": b.Database,
		"size": sizeOrNull(b.Size), "expires_at": stampWhenSet(b.Expires), "created_at": stamp(b.Created), "updated_at": updated,
		"download_url": orNull(b.Download), "download_url_expires_at": stampWhenSet(b.Until), "same_region": b.SameRegion, "region": b.Region}
}

func (b *rdbBackup) orderKey(string) string { return b.Status }

func listRDBBackups(c *call) (any, error) {
	items := c.RDBBackups.where(func(b *rdbBackup) bool {
		return b.Region == c.regionName() && c.matches(&b.record) && oneOf(b.Instance, c.values("instance_id"))
	})
	return paged(c, "database_backups", items, viewRDBBackup)
}

func (c *call) rdbBackup(id string) (*rdbBackup, error) {
	if b, ok := c.RDBBackups.get(id); ok && b.Region == c.regionName() {
		return b, nil
	}
	return nil, notFound("database_backup", id)
}

func (c *call) readyRDBBackup() (*rdbBackup, error) {
	b, err := c.rdbBackup(c.path("id"))
	if err == nil && b.Status != "ready" {
		return nil, transient("database_backup", b.ID, b.Status)
	}
	return b, err
}

func createRDBBackup(c *call) (any, error) {
	var in struct {
		Instance string    `json:"instance_id"`
		Database string    `json:"database_name"`
		Name     string    `json:"name"`
		Expires  time.Time `json:"expires_at"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	i, err := c.readyRDB(in.Instance)
	if err != nil {
		return nil, err
	}
	if i.database(in.Database) == nil {
		return nil, notFound("database", in.Database)
	}
	if in.Name == "" {
		in.Name = "bkp-" + newID()[:8]
	}
	b := &rdbBackup{record: newRecord(i.Project, in.Name, nil), Region: i.Region, Status: "creating", Instance: i.ID, InstanceName: i.Name,
		Database: in.Database, SameRegion: i.SameRegion, Expires: in.Expires}
	add(c.world, c.RDBBackups, b)
	c.rdbBusy(i, "backuping", rdbBackupMade, nil)
	c.backupBecomes(b, "creating", rdbBackupMade, func(_ *world, b *rdbBackup) {
		b.Size = 1255
		b.touch()
	})
	return viewRDBBackup(b), nil
}

// backupBecomes makes a backup ready again after a time.
func (w *world) backupBecomes(b *rdbBackup, from string, d time.Duration, then func(*world, *rdbBackup)) {
	b.Status = from
	id := b.ID
	w.after(d, func(w *world) {
		if b, ok := w.RDBBackups.get(id); ok && b.Status == from {
			b.Status = "ready"
			then(w, b)
		}
	})
}

func getRDBBackup(c *call) (any, error) {
	b, err := c.rdbBackup(c.path("id"))
	if err != nil {
		return nil, err
	}
	return viewRDBBackup(b), nil
}

func updateRDBBackup(c *call) (any, error) {
	b, err := c.readyRDBBackup()
	if err != nil {
		return nil, err
	}
	var in struct {
		Expires opt[time.Time] `json:"expires_at"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := c.rename(&b.record); err != nil {
		return nil, err
	}
	in.Expires.set(&b.Expires)
	change(c.world, c.RDBBackups, b)
	return viewRDBBackup(b), nil
}

func deleteRDBBackup(c *call) (any, error) {
	b, err := c.rdbBackup(c.path("id"))
	if err != nil {
		return nil, err
	}
	b.Status = "deleting"
	id := b.ID
	c.effect("changed", c.RDBBackups.Kind, id)
	c.after(rdbBackupGoes, func(w *world) { remove(w, w.RDBBackups, id) })
	return viewRDBBackup(b), nil
}

// exportRDBBackup makes a link for a download. It leads nowhere here.
func exportRDBBackup(c *call) (any, error) {
	b, err := c.readyRDBBackup()
	if err != nil {
		return nil, err
	}
	c.effect("changed", c.RDBBackups.Kind, b.ID)
	c.backupBecomes(b, "exporting", rdbBackupExports, func(_ *world, b *rdbBackup) {
		b.Until = now().Add(24 * time.Hour)
		b.Download = "https://s3." + b.Region + ".scw.cloud/" + b.Project + "/" + b.Instance + "/" + b.ID + ".custom"
	})
	return viewRDBBackup(b), nil
}

func restoreRDBBackup(c *call) (any, error) {
	b, err := c.readyRDBBackup()
	if err != nil {
		return nil, err
	}
	var in struct {
		Database string `json:"database_name"`
		Instance string `json:"instance_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	i, err := c.readyRDB(in.Instance)
	if err != nil {
		return nil, err
	}
	if in.Database == "" {
		in.Database = b.Database
	}
	if i.database(in.Database) == nil {
		return nil, notFound("database", in.Database)
	}
	c.effect("changed", c.RDBBackups.Kind, b.ID)
	c.backupBecomes(b, "restoring", rdbBackupExports, func(*world, *rdbBackup) {})
	return viewRDBBackup(b), nil
}
