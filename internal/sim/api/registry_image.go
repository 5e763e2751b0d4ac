package api

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"
)

// registryImage is what somebody pushed. Nothing can be pushed to the simulated
// region: images come from seeds.
type registryImage struct {
	record
	Namespace  string
	Region     string
	Status     string // ready, deleting
	Visibility string
	Size       int64
	Labels     []registryTag // what the registry calls tags
}

type registryTag struct {
	ID      string
	Name    string
	Status  string
	Digest  string
	Created time.Time
	Updated time.Time
}

const registryImageGoes = 10 * time.Second

func (r *Region) registryImageRoutes() {
	r.route("GET "+registryBase+"/images", http.StatusOK, listRegistryImages)
	r.route("GET "+registryBase+"/images/{id}", http.StatusOK, getRegistryImage)
	r.route("PATCH "+registryBase+"/images/{id}", http.StatusOK, updateRegistryImage)
	r.route("DELETE "+registryBase+"/images/{id}", http.StatusOK, deleteRegistryImage)
	r.route("GET "+registryBase+"/images/{id}/tags", http.StatusOK, listRegistryTags)
	r.route("GET "+registryBase+"/tags/{id}", http.StatusOK, getRegistryTag)
	r.route("DELETE "+registryBase+"/tags/{id}", http.StatusOK, deleteRegistryTag)
}

func viewRegistryImage(i *registryImage) doc {
	names := []string{}
	for _, t := range i.Labels {
		names = append(names, t.Name)
	}
	return doc{"id": i.ID, "name": i.Name, "namespace_id": i.Namespace, "status": i.Status, "status_message": "", "visibility": i.Visibility,
		"size": i.Size, "created_at": stamp(i.Created), "updated_at": stamp(i.Updated), "tags": names}
}

func viewRegistryTag(i *registryImage, t registryTag) doc {
	return doc{"id": t.ID, "name": t.Name, "image_id": i.ID, "status": t.Status, "digest": t.Digest, "created_at": stamp(t.Created), "updated_at": stamp(t.Updated)}
}

func listRegistryImages(c *call) (any, error) {
	within := c.values("namespace_id")
	items := c.RegistryImages.where(func(i *registryImage) bool {
		return i.Region == c.regionName() && c.matches(&i.record) && oneOf(i.Namespace, within)
	})
	return paged(c, "images", items, viewRegistryImage)
}

func (c *call) registryImage() (*registryImage, error) {
	if i, ok := c.RegistryImages.get(c.path("id")); ok && i.Region == c.regionName() {
		return i, nil
	}
	return nil, untyped(http.StatusNotFound, "Image was not found")
}

func getRegistryImage(c *call) (any, error) {
	i, err := c.registryImage()
	if err != nil {
		return nil, err
	}
	return viewRegistryImage(i), nil
}

func updateRegistryImage(c *call) (any, error) {
	i, err := c.registryImage()
	if err != nil {
		return nil, err
	}
	var in struct {
		Visibility opt[string] `json:"visibility"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	i.Visibility = in.Visibility.or(i.Visibility)
	change(c.world, c.RegistryImages, i)
	return viewRegistryImage(i), nil
}

func deleteRegistryImage(c *call) (any, error) {
	i, err := c.registryImage()
	if err != nil {
		return nil, err
	}
	i.Status = "deleting"
	i.touch()
	c.effect("deleted", c.RegistryImages.Kind, i.ID)
	c.after(registryImageGoes, func(w *world) { remove(w, w.RegistryImages, i.ID) })
	return viewRegistryImage(i), nil
}

func listRegistryTags(c *call) (any, error) {
	i, err := c.registryImage()
	if err != nil {
		return nil, err
	}
	found := []doc{}
	for _, t := range i.Labels {
		if name := c.query("name"); name == "" || t.Name == name {
			found = append(found, viewRegistryTag(i, t))
		}
	}
	return doc{"tags": list(page(c, found, "page_size", 20)), "total_count": len(found)}, nil
}

// registryTag finds a tag and the image that has it.
func (c *call) registryTag() (*registryImage, int, error) {
	for _, i := range c.RegistryImages.where(func(i *registryImage) bool { return i.Region == c.regionName() }) {
		for n, t := range i.Labels {
			if t.ID == c.path("id") {
				return i, n, nil
			}
		}
	}
	return nil, 0, untyped(http.StatusNotFound, "Tag was not found")
}

func getRegistryTag(c *call) (any, error) {
	i, n, err := c.registryTag()
	if err != nil {
		return nil, err
	}
	return viewRegistryTag(i, i.Labels[n]), nil
}

// deleteRegistryTag takes a name off an image, which stays.
func deleteRegistryTag(c *call) (any, error) {
	i, n, err := c.registryTag()
	if err != nil {
		return nil, err
	}
	gone := i.Labels[n]
	gone.Status, gone.Updated = "deleting", now()
	i.Labels = append(i.Labels[:n:n], i.Labels[n+1:]...)
	c.effect("deleted", "registry_tag", gone.ID)
	return viewRegistryTag(i, gone), nil
}

// pushed makes an image as if somebody had pushed it.
func (w *world) pushed(n *registryNamespace, name string, size int64, tags []string) {
	i := &registryImage{record: newRecord(n.Project, name, nil), Namespace: n.ID, Region: n.Region, Status: "ready", Visibility: "inherit", Size: size}
	for _, t := range tags {
		digest := sha256.Sum256([]byte(registryEndpoint(n) + "/" + name + ":" + t))
		i.Labels = append(i.Labels, registryTag{ID: newID(), Name: t, Status: "ready", Digest: fmt.Sprintf("sha256:%x", digest),
			Created: i.Created, Updated: i.Updated})
	}
	add(w, w.RegistryImages, i)
	n.touch()
}
