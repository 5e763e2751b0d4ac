package api

import (
	"slices"
	"time"
)

// upgradeRDB changes one thing about an instance: its node type, its volume,
// whether it has a standby or is encrypted, or its major version.
func upgradeRDB(c *call) (any, error) {
	i, err := c.rdb(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		NodeType   string `json:"node_type"`
		HA         bool   `json:"enable_ha"`
		HAMode     string `json:"high_availability_mode"`
		VolumeSize int64  `json:"volume_size"`
		VolumeType string `json:"volume_type"`
		Encrypt    bool   `json:"enable_encryption"`
		Minor      string `json:"upgradable_version_id"`
		Major      *struct {
			Version       string `json:"upgradable_version_id"`
			WithEndpoints bool   `json:"with_endpoints"`
		} `json:"major_upgrade_workflow"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	// A full volume is what a larger one is for; nothing else is taken meanwhile.
	if cure := i.Status == "disk_full" && in.VolumeSize > i.Volume.Size; i.Status != "ready" && !cure {
		return nil, transient("instance", i.ID, i.Status)
	}
	asked := 0
	for _, is := range []bool{in.NodeType != "", in.HA, in.VolumeSize != 0, in.VolumeType != "", in.Encrypt, in.Minor != "", in.Major != nil} {
		if is {
			asked++
		}
	}
	if asked != 1 && !(asked == 2 && in.VolumeSize != 0 && in.VolumeType != "") {
		return nil, invalid("upgrade", "constraint", "exactly one thing can be upgraded at a time")
	}
	takes := rdbVolumeGrows
	switch {
	case in.Major != nil:
		return c.majorUpgrade(i, in.Major.Version, in.Major.WithEndpoints)
	case in.Minor != "":
		return nil, invalid("upgradable_version_id", "constraint", "a major version is upgraded with major_upgrade_workflow")
	case in.NodeType != "":
		if err := i.changeNode(in.NodeType); err != nil {
			return nil, err
		}
		takes = rdbNodeChanges
	case in.VolumeSize != 0 || in.VolumeType != "":
		if err := i.changeVolume(in.VolumeType, in.VolumeSize); err != nil {
			return nil, err
		}
	case in.HA:
		i.HA = true
	case in.Encrypt:
		i.Encrypted = true
	}
	c.rdbBusy(i, "initializing", takes, nil)
	change(c.world, c.RDBInstances, i)
	return c.viewRDB(i), nil
}

// changeNode keeps the volume: a type whose local volume has another size needs
// block storage first.
func (i *rdbInstance) changeNode(name string) error {
	t, ok := findNodeType(name)
	if !ok {
		return invalid("node_type", "constraint", "node type "+name+" does not exist")
	}
	if i.Volume.Type == "lssd" {
		if t.Local < i.Volume.Size {
			return invalid("node_type", "constraint", "the volume does not fit on "+t.Name)
		}
		i.Volume.Size = t.Local
	}
	i.NodeType = name
	return nil
}

// changeVolume moves to another kind of volume, which keeps its size, or to a
// larger one; volumes never shrink.
func (i *rdbInstance) changeVolume(kind string, size int64) error {
	if kind == "" {
		kind = i.Volume.Type
	}
	if size == 0 && kind != "lssd" {
		size = i.Volume.Size
	}
	t, ok := findNodeType(i.NodeType)
	if !ok {
		return invalid("node_type", "constraint", "node type "+i.NodeType+" does not exist")
	}
	v, err := t.volume(kind, size)
	if err != nil {
		return err
	}
	if v.Size < i.Volume.Size {
		return invalid("volume_size", "constraint", "a volume cannot shrink")
	}
	i.Volume = v
	return nil
}

// majorUpgrade makes a second instance with the newer engine, which takes over
// the endpoints when it is ready. The first stays, without them; the second has
// no standby, and the rules of the access list do not come along.
func (c *call) majorUpgrade(i *rdbInstance, version string, withEndpoints bool) (any, error) {
	newer := c.newerEngines(i.Engine)
	n := slices.IndexFunc(newer, func(e *rdbEngine) bool { return e.ID == version })
	if n < 0 {
		return nil, invalid("upgradable_version_id", "constraint", "the instance cannot be upgraded to this version")
	}
	second := c.copyRDB(i, i.Name)
	second.Engine = newer[n].name()
	arrive := (*world).exposeRDB
	if withEndpoints {
		from := i.ID
		arrive = func(w *world, to *rdbInstance) {
			if a, ok := w.RDBInstances.get(from); ok {
				for _, e := range slices.Clone(a.Endpoints) {
					w.moveRDBEndpoint(a, to, e)
				}
			}
		}
	}
	c.raiseRDB(second, arrive)
	return c.viewRDB(second), nil
}

func restartRDB(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	c.rdbBusy(i, "restarting", rdbRestarts, nil)
	change(c.world, c.RDBInstances, i)
	return c.viewRDB(i), nil
}

func cloneRDB(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Name     string `json:"name"`
		NodeType string `json:"node_type"`
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
	second := c.copyRDB(i, in.Name)
	if in.NodeType != "" {
		second.NodeType = in.NodeType
	}
	c.raiseRDB(second, (*world).exposeRDB)
	return c.viewRDB(second), nil
}

// lastsYear is when something expires that nobody gave a date.
func lastsYear(t time.Time) time.Time { return t.AddDate(1, 0, 0) }
