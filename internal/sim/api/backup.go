package api

// backup makes an image of a server's disks: a snapshot of each, named after the
// backup and the volume's slot. Those of SBS volumes are there at once and in
// use by the image; scratch volumes are left out.
func (c *call) backup(s *server, name string) (*image, error) {
	if name == "" {
		name = s.Name + "-backup"
	}
	for _, sl := range s.Volumes {
		if v, ok := c.Volumes.get(sl.ID); ok && v.Status != "in_use" {
			return nil, transient("volume", v.ID, v.Status)
		}
	}
	i := &image{record: newRecord(s.Project, name, nil), Zone: s.Zone, Arch: "x86_64", FromServer: s.ID, Extra: map[string]string{},
		Refs: map[string]string{}}
	if t, ok := findType(s.Type, s.Zone); ok {
		i.Arch = t.Arch
	}
	for _, key := range s.slots() {
		snapshot := c.backupVolume(i, s.Volumes[key], name+"_snap_"+key)
		switch {
		case snapshot == "":
		case i.Root == "":
			i.Root = snapshot
		default:
			i.Extra[key] = snapshot
		}
	}
	if i.Root == "" {
		return nil, badRequest("server has no volume that can be backed up")
	}
	return add(c.world, c.Images, i), nil
}

// backupVolume snapshots one volume for an image and returns the snapshot's id.
func (c *call) backupVolume(i *image, sl slot, name string) string {
	if v, ok := c.Volumes.get(sl.ID); ok {
		s := add(c.world, c.Snapshots, &blockSnapshot{record: newRecord(i.Project, name, nil), Zone: i.Zone, Size: v.Size, Volume: v.ID,
			Status: "available", Image: v.Image})
		i.Refs[s.ID] = c.useSnapshot(s, "instance_image", i.ID)
		return s.ID
	}
	v, ok := c.LocalVolumes.get(sl.ID)
	if !ok || v.Type == "scratch" {
		return ""
	}
	s := add(c.world, c.LocalSnapshots, &localSnapshot{record: newRecord(i.Project, name, nil), Zone: i.Zone, Type: v.Type, Size: v.Size,
		State: "snapshotting", Volume: v.ID, Base: v.Name, Image: v.Image})
	c.localSnapshotReady(s.ID, localSnapshotTakes)
	return s.ID
}
