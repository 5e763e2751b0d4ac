package api

import (
	"net/http"
	"slices"
)

// placementGroup keeps servers apart or together.
type placementGroup struct {
	record
	Zone   string
	Policy string // max_availability or low_latency
	Mode   string // optional or enforced
}

func (r *Region) placementGroupRoutes(base string) {
	r.route("GET "+base+"/placement_groups", http.StatusOK, listPlacementGroups)
	r.route("POST "+base+"/placement_groups", http.StatusCreated, createPlacementGroup)
	r.route("GET "+base+"/placement_groups/{id}", http.StatusOK, getPlacementGroup)
	r.route("PATCH "+base+"/placement_groups/{id}", http.StatusOK, updatePlacementGroup)
	r.route("PUT "+base+"/placement_groups/{id}", http.StatusOK, updatePlacementGroup)
	r.route("DELETE "+base+"/placement_groups/{id}", http.StatusNoContent, deletePlacementGroup)
	r.route("GET "+base+"/placement_groups/{id}/servers", http.StatusOK, getGroupServers)
	r.route("PUT "+base+"/placement_groups/{id}/servers", http.StatusOK, setGroupServers)
	r.route("PATCH "+base+"/placement_groups/{id}/servers", http.StatusOK, setGroupServers)
}

func (r *Region) placementGroupV2Routes(base string) {
	r.route("GET "+base+"/placement-groups", http.StatusOK, listPlacementGroupsV2)
	r.route("POST "+base+"/placement-groups", http.StatusOK, createPlacementGroupV2)
	r.route("GET "+base+"/placement-groups/{id}", http.StatusOK, getPlacementGroupV2)
	r.route("PATCH "+base+"/placement-groups/{id}", http.StatusOK, updatePlacementGroupV2)
	r.route("DELETE "+base+"/placement-groups/{id}", http.StatusNoContent, deletePlacementGroup)
}

func (c *call) viewPlacementGroup(g *placementGroup) doc {
	return doc{"id": g.ID, "name": g.Name, "organization": c.organization(g.Project), "project": g.Project, "policy_mode": g.Mode,
		"policy_type": g.Policy, "policy_respected": true, "tags": g.Tags, "zone": g.Zone}
}

func viewPlacementGroupV2(g *placementGroup) doc {
	return doc{"project_id": g.Project, "name": g.Name, "id": g.ID, "srn": noSRN, "policy_type": g.Policy, "tags": g.Tags,
		"created_at": stamp(g.Created), "updated_at": stamp(g.Updated), "zone": g.Zone}
}

func listPlacementGroups(c *call) (any, error) {
	items := c.PlacementGroups.where(func(g *placementGroup) bool { return g.Zone == c.zone() && c.matchesV1(&g.record) })
	return pagedV1(c, "placement_groups", items, c.viewPlacementGroup)
}

func listPlacementGroupsV2(c *call) (any, error) {
	ids := c.values("placement_group_ids")
	items := c.PlacementGroups.where(func(g *placementGroup) bool {
		return g.Zone == c.zone() && c.matches(&g.record) && oneOf(g.ID, ids)
	})
	return pagedByToken(c, "placement_groups", items, viewPlacementGroupV2)
}

func (c *call) newPlacementGroup() (*placementGroup, error) {
	var in struct {
		Name         string   `json:"name"`
		Project      string   `json:"project"`
		ProjectID    string   `json:"project_id"`
		Organization string   `json:"organization"`
		Tags         []string `json:"tags"`
		Policy       string   `json:"policy_type"`
		Mode         string   `json:"policy_mode"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project+in.ProjectID, in.Organization, projectForbidden("placement_group"))
	if err != nil {
		return nil, err
	}
	if in.Name == "" {
		in.Name = "pg-" + newID()[:8]
	}
	g := &placementGroup{record: newRecord(owner, in.Name, in.Tags), Zone: c.zone(), Policy: "max_availability", Mode: "optional"}
	if err := g.set(in.Policy, in.Mode); err != nil {
		return nil, err
	}
	return add(c.world, c.PlacementGroups, g), nil
}

// set changes policy and mode where one is given.
func (g *placementGroup) set(policy, mode string) error {
	if policy == "unknown_policy_type" {
		policy = "" // what the SDK sends for a field that is not to change
	}
	if mode == "unknown_policy_mode" {
		mode = ""
	}
	if policy != "" && !slices.Contains([]string{"max_availability", "low_latency"}, policy) {
		return invalid("policy_type", "constraint", "policy type "+policy+" does not exist")
	}
	if mode != "" && !slices.Contains([]string{"optional", "enforced"}, mode) {
		return invalid("policy_mode", "constraint", "policy mode "+mode+" does not exist")
	}
	if policy != "" {
		g.Policy = policy
	}
	if mode != "" {
		g.Mode = mode
	}
	return nil
}

func createPlacementGroup(c *call) (any, error) {
	g, err := c.newPlacementGroup()
	if err != nil {
		return nil, err
	}
	return doc{"placement_group": c.viewPlacementGroup(g)}, nil
}

func createPlacementGroupV2(c *call) (any, error) {
	g, err := c.newPlacementGroup()
	if err != nil {
		return nil, err
	}
	return viewPlacementGroupV2(g), nil
}

func (c *call) placementGroup(id string) (*placementGroup, error) {
	if g, ok := c.PlacementGroups.get(id); ok && g.Zone == c.zone() {
		return g, nil
	}
	return nil, notFound("instance_placement_group", id)
}

func getPlacementGroup(c *call) (any, error) {
	g, err := c.placementGroup(c.path("id"))
	if err != nil {
		return nil, err
	}
	return doc{"placement_group": c.viewPlacementGroup(g)}, nil
}

func getPlacementGroupV2(c *call) (any, error) {
	g, err := c.placementGroup(c.path("id"))
	if err != nil {
		return nil, err
	}
	return viewPlacementGroupV2(g), nil
}

func (c *call) changePlacementGroup() (*placementGroup, error) {
	g, err := c.placementGroup(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Policy opt[string] `json:"policy_type"`
		Mode   opt[string] `json:"policy_mode"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := g.set(in.Policy.or(""), in.Mode.or("")); err != nil {
		return nil, err
	}
	if err := c.rename(&g.record); err != nil {
		return nil, err
	}
	change(c.world, c.PlacementGroups, g)
	return g, nil
}

func updatePlacementGroup(c *call) (any, error) {
	g, err := c.changePlacementGroup()
	if err != nil {
		return nil, err
	}
	return doc{"placement_group": c.viewPlacementGroup(g)}, nil
}

func updatePlacementGroupV2(c *call) (any, error) {
	g, err := c.changePlacementGroup()
	if err != nil {
		return nil, err
	}
	return viewPlacementGroupV2(g), nil
}

// deletePlacementGroup leaves the servers without a group.
func deletePlacementGroup(c *call) (any, error) {
	g, err := c.placementGroup(c.path("id"))
	if err != nil {
		return nil, err
	}
	for _, s := range c.Servers.all() {
		if s.PlacementGroup == g.ID {
			s.PlacementGroup = ""
		}
	}
	remove(c.world, c.PlacementGroups, g.ID)
	return nil, nil
}

func (c *call) groupServers(g *placementGroup) doc {
	out := []doc{}
	for _, s := range c.Servers.all() {
		if s.PlacementGroup == g.ID {
			out = append(out, doc{"id": s.ID, "name": s.Name, "policy_respected": true})
		}
	}
	return doc{"servers": out}
}

func getGroupServers(c *call) (any, error) {
	g, err := c.placementGroup(c.path("id"))
	if err != nil {
		return nil, err
	}
	return c.groupServers(g), nil
}

func setGroupServers(c *call) (any, error) {
	g, err := c.placementGroup(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Servers []string `json:"servers"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	for _, id := range in.Servers {
		if _, err := c.server(id); err != nil {
			return nil, err
		}
	}
	for _, s := range c.Servers.all() {
		switch listed := slices.Contains(in.Servers, s.ID); {
		case listed && s.State == stateStopped:
			s.PlacementGroup = g.ID
		case !listed && s.PlacementGroup == g.ID:
			s.PlacementGroup = ""
		}
	}
	change(c.world, c.PlacementGroups, g)
	return c.groupServers(g), nil
}
