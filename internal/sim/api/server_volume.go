package api

import (
	"strconv"
)

// volumeSpec is a volume in a server request: one that exists, or a new one.
type volumeSpec struct {
	ID           string     `json:"id"`
	Boot         bool       `json:"boot"`
	Name         string     `json:"name"`
	Size         opt[int64] `json:"size"`
	Type         string     `json:"volume_type"`
	BaseSnapshot string     `json:"base_snapshot"`
}

// viewSlots shows volumes by slot. SBS volumes are hardly described here.
func (c *call) viewSlots(s *server) doc {
	out := doc{}
	for key, sl := range s.Volumes {
		if sl.Block {
			out[key] = doc{"boot": sl.Boot, "id": sl.ID, "state": "available", "volume_type": "sbs_volume", "zone": s.Zone}
			continue
		}
		if v, ok := c.LocalVolumes.get(sl.ID); ok {
			d := c.viewLocalVolume(v)
			d["boot"] = sl.Boot
			d["server"] = doc{"id": s.ID, "name": s.Name}
			out[key] = d
		}
	}
	return out
}

// fillSlots gives a new server its volumes: the root from the image, where one
// is named, and what the request lists besides.
func (c *call) fillSlots(s *server, t *serverType, imageID string, specs map[string]volumeSpec) error {
	var root *imageSource
	if imageID != "" {
		var err error
		if root, err = c.imageSource(imageID); err != nil {
			return err
		}
		s.Image = imageID
		if specs == nil {
			specs = map[string]volumeSpec{}
		}
		if _, ok := specs["0"]; !ok {
			specs["0"] = volumeSpec{}
		}
		for key := range root.extra {
			if _, ok := specs[key]; !ok {
				specs[key] = volumeSpec{BaseSnapshot: root.extra[key]}
			}
		}
	}
	if len(specs) > volumesPerMachine {
		return invalid("volumes", "constraint", "a server has 16 volumes at most")
	}
	plan := map[string]*newVolume{}
	for key, spec := range specs {
		if n, err := strconv.Atoi(key); err != nil || n < 0 {
			return invalid("volumes", "format", "volume keys must be numbers")
		}
		n, err := c.planVolume(s, t, key, spec, root)
		if err != nil {
			return err
		}
		plan[key] = n
	}
	var local int64
	for _, n := range plan {
		if !n.block && n.kind == "l_ssd" {
			local += n.size
		}
	}
	if local < t.LocalMin || local > t.LocalMax {
		return invalid("volumes", "constraint", "the total local volume size must be between "+gigabytes(t.LocalMin)+
			" and "+gigabytes(t.LocalMax)+" for "+t.Name)
	}
	for key, n := range plan {
		s.Volumes[key] = c.makeVolume(s, n)
	}
	return nil
}

func gigabytes(n int64) string { return strconv.FormatInt(n/gigabyte, 10) + " GB" }

// makeVolume makes or takes a planned volume and ties it to the server. A new
// SBS volume is in use at once, untagged, with the lowest IOPS.
func (c *call) makeVolume(s *server, n *newVolume) slot {
	sl := slot{ID: n.existing, Block: n.block, Boot: n.boot}
	switch {
	case n.block && n.existing == "":
		v := &blockVolume{record: newRecord(s.Project, n.name, nil), Zone: s.Zone, Size: n.size, IOPS: 5000, Parent: n.snapshot, Image: n.image}
		add(c.world, c.Volumes, v)
		c.attachVolume(v, s.ID)
		sl.ID = v.ID
	case n.block:
		c.attachVolume(c.Volumes.Items[n.existing], s.ID)
	case n.existing == "":
		v := &localVolume{record: newRecord(s.Project, n.name, nil), Zone: s.Zone, Type: n.kind, Size: n.size, State: "available", Image: n.image, Server: s.ID}
		add(c.world, c.LocalVolumes, v)
		sl.ID = v.ID
	default:
		v := c.LocalVolumes.Items[n.existing]
		v.Server = s.ID
		change(c.world, c.LocalVolumes, v)
	}
	return sl
}

// checkLocalStorage says whether a type can carry a server's local volumes.
func (w *world) checkLocalStorage(s *server, t *serverType) error {
	var local int64
	for _, sl := range s.Volumes {
		if v, ok := w.LocalVolumes.get(sl.ID); ok && v.Type == "l_ssd" {
			local += v.Size
		}
	}
	if local < t.LocalMin || local > t.LocalMax {
		return invalid("volumes", "constraint", "the total local volume size must be between "+gigabytes(t.LocalMin)+
			" and "+gigabytes(t.LocalMax)+" for "+t.Name)
	}
	return nil
}

// refillSlots replaces the volumes of a server: what the request leaves out is
// detached.
func (c *call) refillSlots(s *server, specs map[string]volumeSpec) error {
	t, _ := findType(s.Type, s.Zone)
	kept := map[string]bool{}
	slots := map[string]slot{}
	var fresh []string
	for key, spec := range specs {
		old, known := s.slotOf(spec.ID)
		if spec.ID == "" || !known {
			fresh = append(fresh, key)
			continue
		}
		kept[spec.ID] = true
		old.Boot = spec.Boot
		slots[key] = old
	}
	plans := map[string]*newVolume{}
	for _, key := range fresh {
		n, err := c.planVolume(s, t, key, specs[key], nil)
		if err != nil {
			return err
		}
		plans[key] = n
	}
	for _, sl := range s.Volumes {
		if !kept[sl.ID] {
			c.unplug(sl)
		}
	}
	for key, n := range plans {
		slots[key] = c.makeVolume(s, n)
	}
	s.Volumes = slots
	return nil
}

func (s *server) slotOf(volumeID string) (slot, bool) {
	for _, sl := range s.Volumes {
		if sl.ID == volumeID {
			return sl, true
		}
	}
	return slot{}, false
}

func (w *world) unplug(sl slot) {
	if sl.Block {
		w.detachVolume(sl.ID)
	} else if v, ok := w.LocalVolumes.get(sl.ID); ok {
		v.Server = ""
		change(w, w.LocalVolumes, v)
	}
}

func attachServerVolume(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Volume string `json:"volume_id"`
		Type   string `json:"volume_type"`
		Boot   bool   `json:"boot"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if len(s.Volumes) >= volumesPerMachine {
		return nil, invalid("volume_id", "constraint", "a server has 16 volumes at most")
	}
	n := &newVolume{boot: in.Boot}
	if err := c.planExisting(n, volumeSpec{ID: in.Volume, Type: in.Type}); err != nil {
		return nil, err
	}
	key := 1
	if len(s.Volumes) == 0 {
		key = 0
	}
	for ; ; key++ {
		if _, taken := s.Volumes[strconv.Itoa(key)]; !taken {
			break
		}
	}
	s.Volumes[strconv.Itoa(key)] = c.makeVolume(s, n)
	change(c.world, c.Servers, s)
	return doc{"server": c.viewServer(s)}, nil
}

func detachServerVolume(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Volume string `json:"volume_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	for key, sl := range s.Volumes {
		if sl.ID == in.Volume {
			delete(s.Volumes, key)
			c.unplug(sl)
			change(c.world, c.Servers, s)
			return doc{"server": c.viewServer(s)}, nil
		}
	}
	return nil, invalid("volume_id", "constraint", "volume is not attached to this server")
}
