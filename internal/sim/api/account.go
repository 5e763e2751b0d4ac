package api

import (
	"net/http"
)

// project is an account/v3 project: the owner of everything else.
type project struct {
	record
	Organization string
	Description  string
}

func (r *Region) accountRoutes() {
	const base = "/account/v3/projects"
	r.route("GET "+base, http.StatusOK, listProjects)
	r.route("POST "+base, http.StatusOK, createProject)
	r.route("GET "+base+"/{id}", http.StatusOK, getProject)
	r.route("PATCH "+base+"/{id}", http.StatusOK, updateProject)
	r.route("DELETE "+base+"/{id}", http.StatusNoContent, deleteProject)
}

func (w *world) addProject(id, name string) *project {
	if p, ok := w.Projects.get(id); ok {
		return p
	}
	p := &project{record: newRecord(id, name, nil), Organization: w.opts.Organization}
	p.ID = id
	if p.Organization == "" {
		p.Organization = id
	}
	return add(w, w.Projects, p)
}

// knownProject says whether a project exists; in a region where no project was named
// every UUID is one.
func (w *world) knownProject(id string) bool {
	if _, ok := w.Projects.get(id); ok {
		return true
	}
	return w.Open && uuidPattern.MatchString(id)
}

// organization is the owner of a project.
func (w *world) organization(projectID string) string {
	if p, ok := w.Projects.get(projectID); ok {
		return p.Organization
	}
	if w.opts.Organization != "" {
		return w.opts.Organization
	}
	return projectID
}

// owner settles which project a new resource belongs to: the one given, or the
// one with the organization's id, which is its default project. A project that
// the key cannot see is refused as the product at hand refuses it: 404 for vpc,
// vpc-gw and ipam, 403 for instance, lb and block.
func (c *call) owner(given, organization string, refuse func(id string) error) (string, error) {
	if given == "" {
		given = organization
	}
	if given == "" && len(c.Projects.Order) > 0 {
		given = c.Projects.Order[0]
	}
	if !c.knownProject(given) {
		return "", refuse(given)
	}
	return given, nil
}

func projectNotFound(id string) error { return notFound("project", id) }

func projectForbidden(resource string) func(string) error {
	return func(string) error { return forbidden(resource, "create") }
}

func (c *call) viewProject(p *project) doc {
	return doc{"id": p.ID, "srn": noSRN, "name": p.Name, "organization_id": p.Organization, "description": p.Description,
		"created_at": stamp(p.Created), "updated_at": stamp(p.Updated),
		"status": "active", "qualification": doc{"architecture_type": "unknown_architecture_type"}}
}

func listProjects(c *call) (any, error) {
	ids, name, org := c.values("project_ids"), c.query("name"), c.query("organization_id")
	items := c.Projects.where(func(p *project) bool {
		return oneOf(p.ID, ids) && (name == "" || p.Name == name) && (org == "" || p.Organization == org)
	})
	return paged(c, "projects", items, c.viewProject)
}

func createProject(c *call) (any, error) {
	var in struct {
		Name         string `json:"name"`
		Organization string `json:"organization_id"`
		Description  string `json:"description"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Name == "" {
		in.Name = "prj-" + newID()[:8]
	}
	p := &project{record: newRecord("", in.Name, nil), Organization: in.Organization, Description: in.Description}
	p.Project = p.ID
	if p.Organization == "" {
		p.Organization = c.opts.Organization
	}
	return c.viewProject(add(c.world, c.Projects, p)), nil
}

func (c *call) project() (*project, error) {
	id := c.path("id")
	if p, ok := c.Projects.get(id); ok {
		return p, nil
	}
	return nil, notFound("project_id", id)
}

func getProject(c *call) (any, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	return c.viewProject(p), nil
}

func updateProject(c *call) (any, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	var in struct {
		Name        opt[string] `json:"name"`
		Description opt[string] `json:"description"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	in.Name.set(&p.Name)
	in.Description.set(&p.Description)
	change(c.world, c.Projects, p)
	return c.viewProject(p), nil
}

func deleteProject(c *call) (any, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	for _, o := range c.inventory() {
		if o.Project == p.ID && !o.Implicit {
			return nil, stillInUse("the project still has resources: " + o.Kind + " " + o.ID)
		}
	}
	for _, v := range c.VPCs.where(func(v *vpc) bool { return v.Project == p.ID }) {
		remove(c.world, c.VPCs, v.ID)
	}
	for _, g := range c.SecurityGroups.where(func(g *securityGroup) bool { return g.Project == p.ID }) {
		remove(c.world, c.SecurityGroups, g.ID)
	}
	remove(c.world, c.Projects, p.ID)
	return nil, nil
}
