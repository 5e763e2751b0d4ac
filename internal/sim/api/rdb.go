package api

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// rdbInstance is a managed database: one leader, perhaps with a standby, and
// all that lives on it. Its users, logical databases and privileges are known
// by name under it and have no identifiers of their own.
type rdbInstance struct {
	record
	Region   string
	Status   string // provisioning, initializing, configuring, restarting, snapshotting, backuping, ready, locked, disk_full, error, deleting
	Engine   string // such as PostgreSQL-17
	NodeType string // as given; shown in lower case
	HA       bool
	Volume   rdbVolume
	// Settings show only when the engine runs for the first time.
	Settings       []rdbSetting
	InitSettings   []rdbSetting
	Schedule       rdbSchedule
	SameRegion     bool // backups stay in the region
	Encrypted      bool
	LogsAge        int
	LogsDisk       *int64
	Endpoints      []rdbEndpoint
	ACLs           []rdbRule
	Users          []rdbUser
	Databases      []rdbDatabase
	Privileges     []rdbPrivilege
	PrivilegesBusy bool // a change of privileges is under way
	// From is the instance whose contents were in it from the start, if any.
	From string
	// Up says that the engine runs, whatever else is going on.
	Up               bool
	Certificate, Key []byte // PEM
}

type rdbVolume struct {
	Type string // lssd, sbs_5k, sbs_15k
	Size int64
}

type rdbSchedule struct {
	Disabled             bool
	Frequency, Retention int // hours, days
	Next                 time.Time
}

// Durations as recorded, in the region's time.
const (
	rdbInitializes = 120 * time.Second // from creation until the engine is set up
	rdbStarts      = 150 * time.Second // until its settings show
	rdbReady       = 180 * time.Second
	rdbConfigures  = 10 * time.Second // settings, access lists, log policy, an endpoint less
	rdbEndpointIn  = 30 * time.Second // an endpoint more
	rdbVolumeGrows = 120 * time.Second
	rdbNodeChanges = 360 * time.Second
	rdbRestarts    = 30 * time.Second
	rdbGoes        = 30 * time.Second
)

func (r *Region) rdbRoutes() {
	const base = "/rdb/v1/regions/{region}"
	const one = base + "/instances/{id}"
	r.route("GET "+base+"/database-engines", http.StatusOK, listEngines)
	r.route("GET "+base+"/node-types", http.StatusOK, listNodeTypes)
	r.route("GET "+base+"/instances", http.StatusOK, listRDB)
	r.route("POST "+base+"/instances", http.StatusOK, createRDB)
	r.route("GET "+one, http.StatusOK, getRDB)
	r.route("PATCH "+one, http.StatusOK, updateRDB)
	r.route("DELETE "+one, http.StatusOK, deleteRDB)
	r.route("POST "+one+"/upgrade", http.StatusOK, upgradeRDB)
	r.route("POST "+one+"/restart", http.StatusOK, restartRDB)
	r.route("POST "+one+"/clone", http.StatusOK, cloneRDB)
	r.route("GET "+one+"/certificate", http.StatusOK, getRDBCertificate)
	r.route("POST "+one+"/renew-certificate", http.StatusNoContent, renewRDBCertificate)
	r.rdbEndpointRoutes(base, one)
	r.rdbUserRoutes(one)
	r.rdbDatabaseRoutes(one)
	r.rdbPrivilegeRoutes(one)
	r.rdbSettingRoutes(one)
	r.rdbACLRoutes(one)
	r.rdbBackupRoutes(base)
	r.rdbSnapshotRoutes(base, one)
	r.rdbReplicaRoutes(base)
	r.rdbLogRoutes(base, one)
}

func (c *call) viewRDB(i *rdbInstance) doc {
	var public any
	for _, e := range i.Endpoints {
		if e.Kind == rdbPublic {
			public = viewRDBEndpoint(e)
			break
		}
	}
	var next any
	if !i.Schedule.Disabled {
		next = stamp(i.Schedule.Next)
	}
	replicas := c.RDBReplicas.where(func(r *rdbReplica) bool { return r.Instance == i.ID })
	return doc{"id": i.ID, "name": i.Name, "organization_id": c.organization(i.Project), "project_id": i.Project, "region": i.Region,
		"status": i.Status, "engine": i.Engine, "node_type": strings.ToLower(i.NodeType), "tags": i.Tags, "is_ha_cluster": i.HA,
		"high_availability_mode": "unknown_high_availability_mode",
		"volume":                 doc{"type": i.Volume.Type, "size": i.Volume.Size, "class": storageClass(i.Volume.Type)},
		"upgradable_version":     views(c.newerEngines(i.Engine), viewUpgrade),
		"endpoint":               public, "endpoints": views(i.Endpoints, viewRDBEndpoint),
		"settings": list(i.Settings), "init_settings": list(i.InitSettings),
		"backup_schedule":    doc{"disabled": i.Schedule.Disabled, "frequency": i.Schedule.Frequency, "retention": i.Schedule.Retention, "next_run_at": next},
		"backup_same_region": i.SameRegion, "encryption": doc{"enabled": i.Encrypted},
		"logs_policy":   doc{"max_age_retention": i.LogsAge, "total_disk_retention": i.LogsDisk},
		"read_replicas": views(replicas, viewRDBReplica), "maintenances": []doc{}, "created_at": stamp(i.Created)}
}

func storageClass(volumeType string) string { return strings.SplitN(volumeType, "_", 2)[0] }

func (i *rdbInstance) orderKey(field string) string {
	switch field {
	case "status":
		return i.Status
	case "region":
		return i.Region
	}
	return ""
}

func listRDB(c *call) (any, error) {
	items := c.RDBInstances.where(func(i *rdbInstance) bool {
		return i.Region == c.regionName() && c.matches(&i.record) && c.agrees("has_maintenances", false)
	})
	return paged(c, "instances", items, c.viewRDB)
}

func (c *call) rdb(id string) (*rdbInstance, error) {
	if i, ok := c.RDBInstances.get(id); ok && i.Region == c.regionName() {
		return i, nil
	}
	return nil, notFound("instance", id)
}

// readyRDB finds an instance that takes changes.
func (c *call) readyRDB(id string) (*rdbInstance, error) {
	i, err := c.rdb(id)
	if err == nil && i.Status != "ready" {
		return nil, transient("instance", i.ID, i.Status)
	}
	return i, err
}

// runningRDB finds an instance whose engine can be asked about what is on it.
func (c *call) runningRDB() (*rdbInstance, error) {
	i, err := c.rdb(c.path("id"))
	if err == nil && (!i.Up || i.Status == "deleting") {
		return nil, transient("instance", i.ID, i.Status)
	}
	return i, err
}

func getRDB(c *call) (any, error) {
	i, err := c.rdb(c.path("id"))
	if err != nil {
		return nil, err
	}
	return c.viewRDB(i), nil
}

func updateRDB(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Disabled   opt[bool] `json:"is_backup_schedule_disabled"`
		Frequency  opt[int]  `json:"backup_schedule_frequency"`
		Retention  opt[int]  `json:"backup_schedule_retention"`
		SameRegion opt[bool] `json:"backup_same_region"`
		Logs       *struct {
			Age  opt[int]   `json:"max_age_retention"`
			Disk opt[int64] `json:"total_disk_retention"`
		} `json:"logs_policy"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Frequency.or(24) < 1 || in.Retention.or(7) < 1 || in.Retention.or(7) > 365 {
		return nil, invalid("backup_schedule_retention", "constraint", "a schedule counts in hours and days, up to 365")
	}
	if err := c.rename(&i.record); err != nil {
		return nil, err
	}
	was := i.Schedule.Disabled
	in.Disabled.set(&i.Schedule.Disabled)
	in.Frequency.set(&i.Schedule.Frequency)
	in.Retention.set(&i.Schedule.Retention)
	in.SameRegion.set(&i.SameRegion)
	if in.Frequency.given || was && !i.Schedule.Disabled {
		i.Schedule.Next = now().Add(time.Duration(i.Schedule.Frequency) * time.Hour)
	}
	if in.Logs != nil {
		i.LogsAge = in.Logs.Age.or(i.LogsAge)
		if in.Logs.Disk.given && !in.Logs.Disk.null {
			i.LogsDisk = &in.Logs.Disk.value
		}
		c.rdbBusy(i, "configuring", rdbConfigures, nil)
	}
	change(c.world, c.RDBInstances, i)
	return c.viewRDB(i), nil
}

// rdbBusy puts an instance into a state that it leaves for ready after a time,
// with a change that shows only then.
func (w *world) rdbBusy(i *rdbInstance, status string, d time.Duration, then func(*world, *rdbInstance)) {
	i.Status = status
	id := i.ID
	w.after(d, func(w *world) {
		i, ok := w.RDBInstances.get(id)
		if !ok || i.Status == "deleting" {
			return
		}
		i.Status = "ready"
		if then != nil {
			then(w, i)
		}
		i.touch()
		w.applyRDB(i)
	})
}

// deleteRDB takes a whole instance away. One that is on its way to another
// state is refused; nobody recorded what the real one does then.
func deleteRDB(c *call) (any, error) {
	i, err := c.rdb(c.path("id"))
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"ready", "error", "locked", "disk_full", "deleting"}, i.Status) {
		return nil, transient("instance", i.ID, i.Status)
	}
	if i.Status == "deleting" {
		return c.viewRDB(i), nil
	}
	i.Status, i.Up = "deleting", false
	change(c.world, c.RDBInstances, i)
	c.region.effects.dropDatabase(i.ID)
	id := i.ID
	c.after(rdbGoes, func(w *world) { w.removeRDB(id) }, allDatabases)
	return c.viewRDB(i), nil
}

// removeRDB takes an instance away with its replicas and addresses. Backups and
// snapshots are things of their own and stay.
func (w *world) removeRDB(id string) {
	i, ok := w.RDBInstances.get(id)
	if !ok {
		return
	}
	for _, r := range w.RDBReplicas.where(func(r *rdbReplica) bool { return r.Instance == id }) {
		w.removeRDBReplica(r)
	}
	for _, e := range i.Endpoints {
		w.releaseRDBEndpoint(e)
	}
	remove(w, w.RDBInstances, id)
}
