package api

import (
	"strings"
	"time"
)

func createRDB(c *call) (any, error) {
	var in struct {
		Project      string            `json:"project_id"`
		Organization string            `json:"organization_id"`
		Name         string            `json:"name"`
		Engine       string            `json:"engine"`
		User         string            `json:"user_name"`
		Password     string            `json:"password"`
		NodeType     string            `json:"node_type"`
		HA           bool              `json:"is_ha_cluster"`
		HAMode       string            `json:"high_availability_mode"`
		NoBackup     bool              `json:"disable_backup"`
		Tags         []string          `json:"tags"`
		InitSettings []rdbSetting      `json:"init_settings"`
		VolumeType   string            `json:"volume_type"`
		VolumeSize   int64             `json:"volume_size"`
		Endpoints    []rdbEndpointSpec `json:"init_endpoints"`
		SameRegion   bool              `json:"backup_same_region"`
		Encryption   struct {
			Enabled bool `json:"enabled"`
		} `json:"encryption"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, in.Organization, projectForbidden("rdb"))
	if err != nil {
		return nil, err
	}
	if in.Name == "" {
		in.Name = "rdb-" + newID()[:8]
	}
	i := &rdbInstance{record: newRecord(owner, in.Name, in.Tags), Region: c.regionName(), Status: "provisioning", Engine: in.Engine,
		NodeType: in.NodeType, HA: in.HA || strings.HasSuffix(in.HAMode, "_zone"), InitSettings: in.InitSettings,
		SameRegion: in.SameRegion, Encrypted: in.Encryption.Enabled, LogsAge: 30,
		Schedule: rdbSchedule{Disabled: in.NoBackup, Frequency: 24, Retention: 7, Next: now().Add(24 * time.Hour)}}
	engine, known := c.engine(in.Engine)
	if !known || engine.Disabled {
		return nil, invalid("engine", "constraint", "engine "+in.Engine+" is not available")
	}
	if err := engine.check(in.InitSettings, true); err != nil {
		return nil, err
	}
	t, known := findNodeType(in.NodeType)
	if !known {
		return nil, invalid("node_type", "constraint", "node type "+in.NodeType+" does not exist")
	}
	if i.Volume, err = t.volume(in.VolumeType, in.VolumeSize); err != nil {
		return nil, err
	}
	i.Databases = []rdbDatabase{{Name: "rdb", Made: now()}}
	if in.User != "" {
		u, err := newRDBUser(in.User, in.Password, true)
		if err != nil {
			return nil, err
		}
		i.Users = append(i.Users, u)
		i.Privileges = []rdbPrivilege{{Database: "rdb", User: in.User, Permission: "all"}}
	}
	public, err := c.firstEndpoints(i, in.Endpoints)
	if err != nil {
		return nil, err
	}
	add(c.world, c.RDBInstances, i)
	var arrive func(*world, *rdbInstance)
	if public {
		arrive = (*world).exposeRDB
	}
	c.raiseRDB(i, arrive)
	return c.viewRDB(i), nil
}

// firstEndpoints gives a new instance the private endpoints that it is to have
// from the start, and says whether it gets a public one: if asked for, or if
// nothing at all was asked for.
func (c *call) firstEndpoints(i *rdbInstance, specs []rdbEndpointSpec) (public bool, err error) {
	public = len(specs) == 0
	if err := checkRDBEndpoints(specs); err != nil {
		return false, err
	}
	for _, s := range specs {
		if s.Private == nil {
			public = true
			continue
		}
		e, err := c.privateRDBEndpoint(s.Private, ipamResource{"rdb_instance", i.ID, c.mac("02:00:00"), i.Name})
		if err != nil {
			return false, err
		}
		i.Endpoints = append(i.Endpoints, e)
	}
	return public, nil
}

// raiseRDB takes a new instance through its states until it is ready. What
// arrives then, such as a public endpoint, is the last thing that shows; it may
// be nil.
func (w *world) raiseRDB(i *rdbInstance, arrive func(*world, *rdbInstance)) {
	id := i.ID
	during := func(status string, do func(*world, *rdbInstance)) func(*world) bool {
		return func(w *world) bool {
			i, ok := w.RDBInstances.get(id)
			if !ok || i.Status != "provisioning" && i.Status != "initializing" {
				return false
			}
			i.Status = status
			do(w, i)
			i.touch()
			return true
		}
	}
	w.stages(
		stage{at: rdbInitializes, do: during("initializing", func(*world, *rdbInstance) {})},
		stage{at: rdbStarts, do: during("initializing", func(_ *world, i *rdbInstance) {
			if i.Settings == nil {
				i.Settings = defaultSettings(i.Engine, i.NodeType)
			}
		})},
		stage{at: rdbReady, do: during("ready", func(w *world, i *rdbInstance) {
			if arrive != nil {
				arrive(w, i)
			}
			w.finishRDB(i)
		})})
}

// finishRDB makes an instance one that can be logged in to.
func (w *world) finishRDB(i *rdbInstance) {
	i.Status, i.Up = "ready", true
	w.certifyRDB(i)
	for _, e := range w.RDBTrouble[i.Name] {
		w.troubleRDB(i, e)
	}
	delete(w.RDBTrouble, i.Name)
	w.applyRDB(i)
}

// copyRDB is a new instance with the users, databases, settings and contents of
// another, in no network.
func (w *world) copyRDB(from *rdbInstance, name string) *rdbInstance {
	i := *from
	i.record = newRecord(from.Project, name, append([]string(nil), from.Tags...))
	i.Status, i.Up, i.HA, i.From = "provisioning", false, false, from.ID
	i.Certificate, i.Key, i.Endpoints, i.ACLs, i.PrivilegesBusy = nil, nil, nil, nil, false
	i.Settings = append([]rdbSetting(nil), from.Settings...)
	i.Users = append([]rdbUser(nil), from.Users...)
	i.Databases = append([]rdbDatabase(nil), from.Databases...)
	i.Privileges = append([]rdbPrivilege(nil), from.Privileges...)
	if !i.Schedule.Disabled {
		i.Schedule.Next = now().Add(time.Duration(i.Schedule.Frequency) * time.Hour)
	}
	return add(w, w.RDBInstances, &i)
}
