package api

import (
	"net/http"
	"regexp"
	"time"
)

// registryNamespace is a container registry of a project. Its name is taken for
// all customers of the region. It has no tags and its errors no type.
type registryNamespace struct {
	record
	Region      string
	Description string
	Public      bool
	Status      string // ready, deleting
}

const (
	registryGoes = time.Second
	registryBase = "/registry/v1/regions/{region}"
)

// registryName is what a namespace may be called: it is a part of a URL.
var registryName = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{2,48}[a-z0-9])$`)

func (r *Region) registryRoutes() {
	const one = registryBase + "/namespaces/{id}"
	r.route("GET "+registryBase+"/namespaces", http.StatusOK, listNamespaces)
	r.route("POST "+registryBase+"/namespaces", http.StatusOK, createNamespace)
	r.route("GET "+one, http.StatusOK, getNamespace)
	r.route("PATCH "+one, http.StatusOK, updateNamespace)
	r.route("DELETE "+one, http.StatusOK, deleteNamespace)
	r.registryImageRoutes()
}

func (c *call) viewNamespace(n *registryNamespace) doc {
	size, images := int64(0), c.RegistryImages.where(func(i *registryImage) bool { return i.Namespace == n.ID })
	for _, i := range images {
		size += i.Size
	}
	return doc{"id": n.ID, "name": n.Name, "description": n.Description, "organization_id": c.organization(n.Project), "project_id": n.Project,
		"status": n.Status, "status_message": "", "endpoint": registryEndpoint(n), "is_public": n.Public, "size": size,
		"created_at": stamp(n.Created), "updated_at": stamp(n.Updated), "image_count": len(images), "region": n.Region}
}

func registryEndpoint(n *registryNamespace) string { return "rg." + n.Region + ".scw.cloud/" + n.Name }

func listNamespaces(c *call) (any, error) {
	items := c.Namespaces.where(func(n *registryNamespace) bool { return n.Region == c.regionName() && c.matches(&n.record) })
	return paged(c, "namespaces", items, c.viewNamespace)
}

func createNamespace(c *call) (any, error) {
	var in struct {
		Name         string `json:"name"`
		Description  string `json:"description"`
		Project      string `json:"project_id"`
		Organization string `json:"organization_id"`
		Public       bool   `json:"is_public"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, in.Organization, func(string) error { return forbidden("api_namespace", "write") })
	if err != nil {
		return nil, err
	}
	if !registryName.MatchString(in.Name) {
		return nil, untyped(http.StatusBadRequest, "namespace name must begin with a letter or number, followed by letters, numbers or hyphens, and end with a letter or number")
	}
	if c.namespaceTaken(c.regionName(), in.Name) {
		return nil, untyped(http.StatusConflict, "Namespace already exist")
	}
	n := &registryNamespace{record: newRecord(owner, in.Name, nil), Region: c.regionName(), Description: in.Description, Public: in.Public, Status: "ready"}
	return c.viewNamespace(add(c.world, c.Namespaces, n)), nil
}

// namespaceTaken says whether anybody has a name: this account, also while its
// own goes away, or another customer.
func (w *world) namespaceTaken(region, name string) bool {
	return w.NamesTaken[region+"/"+name] || w.Namespaces.any(func(n *registryNamespace) bool { return n.Region == region && n.Name == name })
}

func (c *call) namespace() (*registryNamespace, error) {
	if n, ok := c.Namespaces.get(c.path("id")); ok && n.Region == c.regionName() {
		return n, nil
	}
	return nil, untyped(http.StatusNotFound, "Namespace was not found")
}

func getNamespace(c *call) (any, error) {
	n, err := c.namespace()
	if err != nil {
		return nil, err
	}
	return c.viewNamespace(n), nil
}

func updateNamespace(c *call) (any, error) {
	n, err := c.namespace()
	if err != nil {
		return nil, err
	}
	var in struct {
		Description opt[string] `json:"description"`
		Public      opt[bool]   `json:"is_public"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	n.Description, n.Public = in.Description.or(n.Description), in.Public.or(n.Public)
	change(c.world, c.Namespaces, n)
	return c.viewNamespace(n), nil
}

// deleteNamespace takes the images along.
func deleteNamespace(c *call) (any, error) {
	n, err := c.namespace()
	if err != nil {
		return nil, err
	}
	n.Status = "deleting"
	n.touch()
	c.effect("deleted", c.Namespaces.Kind, n.ID)
	c.after(registryGoes, func(w *world) {
		for _, i := range w.RegistryImages.where(func(i *registryImage) bool { return i.Namespace == n.ID }) {
			remove(w, w.RegistryImages, i.ID)
		}
		remove(w, w.Namespaces, n.ID)
	})
	return c.viewNamespace(n), nil
}
