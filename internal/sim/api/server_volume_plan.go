package api

import (
	"bastide/internal/sim/hardware"
)

// newVolume is a checked volume of a server request.
type newVolume struct {
	block    bool
	boot     bool
	existing string
	kind     string // l_ssd or scratch
	name     string
	size     int64
	snapshot string
	image    *hardware.TalosImage
	unused   func() // called when the volume is made from a snapshot of the account
}

// imageSource is what a root volume is made from.
type imageSource struct {
	name     string
	block    bool
	snapshot string
	size     int64
	talos    *hardware.TalosImage
	extra    map[string]string // slot to snapshot
}

// imageSource looks an image up: of the marketplace or of the account.
func (c *call) imageSource(id string) (*imageSource, error) {
	if i, ok := findLocalImage(id); ok && i.Zone == c.zone() {
		return &imageSource{name: i.Name, block: i.Type == "instance_sbs", snapshot: i.volume(), size: i.Size}, nil
	}
	i, ok := c.Images.get(id)
	if !ok || i.Zone != c.zone() {
		return nil, notFound("instance_image", id)
	}
	src := &imageSource{name: i.Name, snapshot: i.Root, extra: i.Extra}
	if s, ok := c.Snapshots.get(i.Root); ok {
		src.block, src.size, src.talos = true, s.Size, s.Image
	} else if s, ok := c.LocalSnapshots.get(i.Root); ok {
		src.size, src.talos = s.Size, s.Image
	}
	return src, nil
}

// planVolume checks one volume of a request and settles what it will be.
func (c *call) planVolume(s *server, t *serverType, key string, spec volumeSpec, root *imageSource) (*newVolume, error) {
	n := &newVolume{boot: spec.Boot, name: spec.Name, size: spec.Size.or(0), kind: spec.Type}
	if spec.ID != "" {
		return n, c.planExisting(n, spec)
	}
	switch {
	case root != nil && key == "0" && spec.BaseSnapshot == "":
		n.block, n.snapshot, n.image = root.block, root.snapshot, root.talos
		if spec.Type == "sbs_volume" {
			n.block = true
		} else if spec.Type == "l_ssd" {
			n.block = false
		} else if root.block || t.LocalMax == 0 {
			n.block = true
		}
		if n.name == "" {
			n.name = root.name
			if n.block {
				n.name += "_sbs_volume_0"
			}
		}
		if n.size == 0 {
			n.size = root.size
			if !n.block && t.LocalMax > 0 && n.size < t.LocalMax && !spec.Size.given {
				n.size = min(t.LocalMax, max(root.size, 20*gigabyte))
			}
		}
		if n.size < root.size {
			return nil, invalid("volumes", "constraint", "the root volume cannot be smaller than its image")
		}
	case spec.BaseSnapshot != "":
		if err := c.planFromSnapshot(n, spec); err != nil {
			return nil, err
		}
	case spec.Type == "sbs_volume":
		n.block = true
		if err := checkVolumeSize(n.size); err != nil {
			return nil, err
		}
	}
	if n.block {
		return n, nil
	}
	switch n.kind {
	case "", "l_ssd":
		n.kind = "l_ssd"
	case "scratch":
	case "b_ssd":
		return nil, invalid("volumes", "constraint", "volume type b_ssd is not available any more")
	default:
		return nil, invalid("volumes", "constraint", "volume type "+n.kind+" does not exist")
	}
	if n.size == 0 {
		return nil, invalid("volumes", "required", "size is required")
	}
	return n, nil
}

// planExisting takes a volume that exists already, and that nothing else uses.
func (c *call) planExisting(n *newVolume, spec volumeSpec) error {
	n.existing = spec.ID
	if v, ok := c.LocalVolumes.get(spec.ID); ok && v.Zone == c.zone() && spec.Type != "sbs_volume" {
		if v.Server != "" {
			return badRequest("volume " + v.ID + " is already attached to a server")
		}
		n.size, n.kind = v.Size, v.Type
		return nil
	}
	v, ok := c.Volumes.get(spec.ID)
	if !ok || v.Zone != c.zone() || spec.Type == "l_ssd" || spec.Type == "scratch" {
		return notFound("instance_volume", spec.ID)
	}
	n.block = true
	if len(v.Refs) > 0 || v.Status == "in_use" {
		return stillInUse("volume " + v.ID + " is already attached to a server")
	}
	if v.Status != "available" {
		return transient("volume", v.ID, v.Status)
	}
	return nil
}

func (c *call) planFromSnapshot(n *newVolume, spec volumeSpec) error {
	n.snapshot = spec.BaseSnapshot
	if s, ok := c.Snapshots.get(spec.BaseSnapshot); ok && s.Zone == c.zone() {
		if s.Status != "available" && s.Status != "in_use" {
			return transient("snapshot", s.ID, s.Status)
		}
		n.block, n.image, n.size = true, s.Image, max(n.size, s.Size)
	} else if s, ok := c.LocalSnapshots.get(spec.BaseSnapshot); ok && s.Zone == c.zone() {
		n.image, n.size = s.Image, max(n.size, s.Size)
		n.kind = "l_ssd"
	} else {
		return notFound("instance_snapshot", spec.BaseSnapshot)
	}
	if n.name == "" {
		n.name = "vol-" + newID()[:8]
	}
	return nil
}
