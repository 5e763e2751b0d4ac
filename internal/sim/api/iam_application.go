package api

import "net/http"

// application is somebody who is no person: what owns keys that programs use.
type application struct {
	record
	Description string
}

func (r *Region) applicationRoutes(base string) {
	r.route("GET "+base, http.StatusOK, listApplications)
	r.route("POST "+base, http.StatusOK, createApplication)
	r.route("GET "+base+"/{id}", http.StatusOK, getApplication)
	r.route("PATCH "+base+"/{id}", http.StatusOK, updateApplication)
	r.route("DELETE "+base+"/{id}", http.StatusNoContent, deleteApplication)
}

func (c *call) viewApplication(a *application) doc {
	return doc{"id": a.ID, "name": a.Name, "description": a.Description, "created_at": stamp(a.Created), "updated_at": stamp(a.Updated),
		"organization_id": c.iamOrganization(), "editable": true, "deletable": true, "managed": false, "tags": a.Tags, "srn": noSRN,
		"nb_api_keys": len(c.APIKeys.where(func(k *apiKey) bool { return k.Application == a.ID }))}
}

// iamOrganization owns what belongs to no project.
func (c *call) iamOrganization() string { return c.organization(c.defaultProject()) }

func listApplications(c *call) (any, error) {
	items := c.Applications.where(func(a *application) bool {
		return oneOf(a.ID, c.values("application_ids")) && (c.query("name") == "" || a.Name == c.query("name")) && anyTag(a.Tags, c.values("tag"))
	})
	return paged(c, "applications", items, c.viewApplication)
}

func createApplication(c *call) (any, error) {
	var in struct {
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Tags        []string `json:"tags"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Name == "" {
		in.Name = "app-" + newID()[:8]
	}
	return c.viewApplication(add(c.world, c.Applications, &application{record: newRecord("", in.Name, in.Tags), Description: in.Description})), nil
}

func (c *call) application() (*application, error) {
	if a, ok := c.Applications.get(c.path("id")); ok {
		return a, nil
	}
	return nil, notFound("application", c.path("id"))
}

func getApplication(c *call) (any, error) {
	a, err := c.application()
	if err != nil {
		return nil, err
	}
	return c.viewApplication(a), nil
}

func updateApplication(c *call) (any, error) {
	a, err := c.application()
	if err != nil {
		return nil, err
	}
	var in struct {
		Description opt[string] `json:"description"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := c.rename(&a.record); err != nil {
		return nil, err
	}
	a.Description = in.Description.or(a.Description)
	change(c.world, c.Applications, a)
	return c.viewApplication(a), nil
}

// deleteApplication takes its keys along.
func deleteApplication(c *call) (any, error) {
	a, err := c.application()
	if err != nil {
		return nil, err
	}
	for _, k := range c.APIKeys.where(func(k *apiKey) bool { return k.Application == a.ID }) {
		c.Revoked[k.ID], c.Revoked[k.Secret] = true, true
		remove(c.world, c.APIKeys, k.ID)
	}
	for _, p := range c.Policies.where(func(p *policy) bool { return p.Application == a.ID }) {
		p.Application = ""
	}
	remove(c.world, c.Applications, a.ID)
	return nil, nil
}
