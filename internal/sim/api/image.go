package api

import (
	"net/http"
	"strings"
)

// image is one of the account's own: a root snapshot and maybe others.
type image struct {
	record
	Zone string
	Arch string
	Root string
	// FromServer is the server that it is a backup of, if it is one.
	FromServer string
	Extra      map[string]string // slot to snapshot
	Public     bool
	Refs       map[string]string // SBS snapshot to the reference that the image holds
}

func (r *Region) imageRoutes(base string) {
	r.route("GET "+base+"/images", http.StatusOK, listImages)
	r.route("POST "+base+"/images", http.StatusCreated, createImage)
	r.route("GET "+base+"/images/{id}", http.StatusOK, getImage)
	r.route("PATCH "+base+"/images/{id}", http.StatusOK, updateImage)
	r.route("PUT "+base+"/images/{id}", http.StatusOK, updateImage)
	r.route("DELETE "+base+"/images/{id}", http.StatusNoContent, deleteImage)
}

func (c *call) viewImage(i *image) doc {
	extra := doc{}
	for key, id := range i.Extra {
		extra[key] = c.viewImageVolume(id)
	}
	return doc{"id": i.ID, "name": i.Name, "organization": c.organization(i.Project), "project": i.Project,
		"root_volume": c.viewImageVolume(i.Root), "extra_volumes": extra, "public": i.Public, "arch": i.Arch,
		"creation_date": stampV1(i.Created), "modification_date": stampV1(i.Updated), "default_bootscript": nil, "from_server": i.FromServer,
		"state": "available", "tags": i.Tags, "zone": i.Zone}
}

// viewImageVolume shows a snapshot behind an image; of SBS ones v1 knows nothing.
func (c *call) viewImageVolume(id string) doc {
	if s, ok := c.LocalSnapshots.get(id); ok {
		return doc{"id": s.ID, "name": s.Name, "volume_type": s.Type, "size": s.Size}
	}
	return doc{"volume_type": "sbs_snapshot", "id": id, "size": 0, "name": ""}
}

// viewCatalogueImage shows an image of the marketplace the same way.
func viewCatalogueImage(i localImage) doc {
	const made = "2026-05-12T15:05:46.087080+00:00"
	root := doc{"volume_type": "sbs_snapshot", "id": i.volume(), "size": 0, "name": ""}
	if i.Type == "instance_local" {
		root = doc{"id": i.volume(), "name": i.Name, "volume_type": "l_ssd", "size": i.Size}
	}
	return doc{"id": i.id(), "name": i.Name, "organization": marketplaceOwner, "project": marketplaceOwner, "root_volume": root,
		"extra_volumes": doc{}, "public": true, "arch": i.Arch, "creation_date": made, "modification_date": made,
		"default_bootscript": nil, "from_server": "", "state": "available", "tags": []string{}, "zone": i.Zone}
}

func (c *call) viewImageByID(id string) (doc, bool) {
	if i, ok := findLocalImage(id); ok {
		return viewCatalogueImage(i), true
	}
	if i, ok := c.Images.get(id); ok {
		return c.viewImage(i), true
	}
	return nil, false
}

func listImages(c *call) (any, error) {
	public, filter := c.flag("public")
	arch := c.query("arch")
	out := []doc{}
	for _, i := range c.Images.all() {
		if i.Zone == c.zone() && c.matchesV1(&i.record) && (!filter || i.Public == public) && (arch == "" || i.Arch == arch) {
			out = append(out, c.viewImage(i))
		}
	}
	if c.query("project") == "" && c.query("organization") == "" && len(c.tags()) == 0 && (!filter || public) {
		for _, i := range localImages(c.zone()) {
			if strings.Contains(i.Name, c.query("name")) && (arch == "" || i.Arch == arch) {
				out = append(out, viewCatalogueImage(i))
			}
		}
	}
	c.total(len(out))
	return doc{"images": list(page(c, out, "per_page", 50))}, nil
}

func createImage(c *call) (any, error) {
	var in struct {
		Name         string   `json:"name"`
		Root         string   `json:"root_volume"`
		Arch         string   `json:"arch"`
		Project      string   `json:"project"`
		Organization string   `json:"organization"`
		Tags         []string `json:"tags"`
		Public       bool     `json:"public"`
		Extra        map[string]struct {
			ID string `json:"id"`
		} `json:"extra_volumes"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, in.Organization, projectForbidden("image"))
	if err != nil {
		return nil, err
	}
	if in.Arch == "" {
		in.Arch = "x86_64"
	}
	i := &image{record: newRecord(owner, in.Name, in.Tags), Zone: c.zone(), Arch: in.Arch, Root: in.Root, Public: in.Public,
		Extra: map[string]string{}, Refs: map[string]string{}}
	for key, e := range in.Extra {
		i.Extra[key] = e.ID
	}
	if err := c.holdSnapshots(i); err != nil {
		return nil, err
	}
	return doc{"image": c.viewImage(add(c.world, c.Images, i))}, nil
}

// holdSnapshots marks the SBS snapshots of an image as in use, and lets go of
// those that it has no more; these are free some seconds later.
func (c *call) holdSnapshots(i *image) error {
	needed := map[string]bool{i.Root: true}
	for _, id := range i.Extra {
		needed[id] = true
	}
	for id := range needed {
		if s, ok := c.LocalSnapshots.get(id); ok && s.Zone == i.Zone {
			continue
		}
		s, ok := c.Snapshots.get(id)
		if !ok || s.Zone != i.Zone {
			return notFound("instance_snapshot", id)
		}
		if s.Status != "available" && s.Status != "in_use" {
			return transient("snapshot", s.ID, s.Status)
		}
	}
	for id := range needed {
		if s, ok := c.Snapshots.get(id); ok && i.Refs[id] == "" {
			i.Refs[id] = c.useSnapshot(s, "instance_image", i.ID)
		}
	}
	for id, ref := range i.Refs {
		if !needed[id] {
			c.unuseSnapshot(id, ref, imageReturns)
			delete(i.Refs, id)
		}
	}
	return nil
}

func (w *world) usedByImage(snapshotID string) bool {
	return w.Images.any(func(i *image) bool {
		for _, id := range i.Extra {
			if id == snapshotID {
				return true
			}
		}
		return i.Root == snapshotID
	})
}

func getImage(c *call) (any, error) {
	if v, ok := c.viewImageByID(c.path("id")); ok && v["zone"] == c.zone() {
		return doc{"image": v}, nil
	}
	return nil, notFound("instance_image", c.path("id"))
}

func (c *call) ownImage() (*image, error) {
	if i, ok := c.Images.get(c.path("id")); ok && i.Zone == c.zone() {
		return i, nil
	}
	if _, ok := findLocalImage(c.path("id")); ok {
		return nil, forbidden("image", "write")
	}
	return nil, notFound("instance_image", c.path("id"))
}

func updateImage(c *call) (any, error) {
	i, err := c.ownImage()
	if err != nil {
		return nil, err
	}
	var in struct {
		Arch   opt[string] `json:"arch"`
		Public opt[bool]   `json:"public"`
		Extra  opt[map[string]struct {
			ID string `json:"id"`
		}] `json:"extra_volumes"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Extra.given && !in.Extra.null {
		before := i.Extra
		i.Extra = map[string]string{}
		for key, e := range in.Extra.value {
			i.Extra[key] = e.ID
		}
		if err := c.holdSnapshots(i); err != nil {
			i.Extra = before
			return nil, err
		}
	}
	in.Arch.set(&i.Arch)
	in.Public.set(&i.Public)
	if err := c.rename(&i.record); err != nil {
		return nil, err
	}
	change(c.world, c.Images, i)
	return doc{"image": c.viewImage(i)}, nil
}

func deleteImage(c *call) (any, error) {
	i, err := c.ownImage()
	if err != nil {
		return nil, err
	}
	for id, ref := range i.Refs {
		c.unuseSnapshot(id, ref, imageReturns)
	}
	remove(c.world, c.Images, i.ID)
	return nil, nil
}
