package api

import "net/http"

// policy gives an application the rights of its rules.
type policy struct {
	record
	Description string
	Application string
	User        string
	Rules       []policyRule
}

type policyRule struct {
	ID           string
	Sets         []string
	Projects     []string
	Organization string
	Condition    string
}

type policyRuleInput struct {
	Sets         []string `json:"permission_set_names"`
	Projects     []string `json:"project_ids"`
	Organization string   `json:"organization_id"`
	Condition    string   `json:"condition"`
}

func (r *Region) policyRoutes(base string) {
	r.route("GET "+base+"/policies", http.StatusOK, listPolicies)
	r.route("POST "+base+"/policies", http.StatusOK, createPolicy)
	r.route("GET "+base+"/policies/{id}", http.StatusOK, getPolicy)
	r.route("PATCH "+base+"/policies/{id}", http.StatusOK, updatePolicy)
	r.route("DELETE "+base+"/policies/{id}", http.StatusNoContent, deletePolicy)
	r.route("GET "+base+"/rules", http.StatusOK, listPolicyRules)
	r.route("PUT "+base+"/rules", http.StatusOK, setPolicyRules)
	r.route("GET "+base+"/permission-sets", http.StatusOK, listPermissionSets)
}

func (c *call) viewPolicy(p *policy) doc {
	scopes, sets := 0, map[string]bool{}
	for _, r := range p.Rules {
		scopes += max(len(r.Projects), 1)
		for _, s := range r.Sets {
			sets[s] = true
		}
	}
	d := doc{"id": p.ID, "name": p.Name, "description": p.Description, "organization_id": c.iamOrganization(), "created_at": stamp(p.Created),
		"updated_at": stamp(p.Updated), "editable": true, "deletable": true, "managed": false, "nb_rules": len(p.Rules), "nb_scopes": scopes,
		"nb_permission_sets": len(sets), "tags": p.Tags, "srn": noSRN}
	switch {
	case p.Application != "":
		d["application_id"] = p.Application
	case p.User != "":
		d["user_id"] = p.User
	default:
		d["no_principal"] = true
	}
	return d
}

func viewPolicyRule(r policyRule) doc {
	d := doc{"id": r.ID, "permission_set_names": list(r.Sets), "permission_sets_scope_type": scopeOf(r.Sets), "condition": r.Condition, "srn": noSRN}
	if len(r.Projects) > 0 {
		d["project_ids"] = r.Projects
	} else {
		d["organization_id"] = r.Organization
	}
	return d
}

// scopeOf is what permission sets are about, whatever the rule covers.
func scopeOf(sets []string) string {
	for _, name := range sets {
		if s, ok := permissionSetNamed(name); ok {
			return s.scope
		}
	}
	return "unknown_scope_type"
}

// rules checks what a client wrote.
func (c *call) rules(in []policyRuleInput) ([]policyRule, error) {
	var out []policyRule
	for _, r := range in {
		if len(r.Projects) == 0 && r.Organization == "" {
			return nil, invalid("rules", "required", "a rule needs project_ids or organization_id")
		}
		for _, s := range r.Sets {
			if _, ok := permissionSetNamed(s); !ok {
				return nil, invalid("permission_set_names", "constraint", "permission set "+s+" does not exist")
			}
		}
		for _, p := range r.Projects {
			if !c.knownProject(p) {
				return nil, notFound("project", p)
			}
		}
		out = append(out, policyRule{ID: newID(), Sets: r.Sets, Projects: r.Projects, Organization: r.Organization, Condition: r.Condition})
	}
	return out, nil
}

func listPolicies(c *call) (any, error) {
	apps, users := c.values("application_ids"), c.values("user_ids")
	items := c.Policies.where(func(p *policy) bool {
		return oneOf(p.ID, c.values("policy_ids")) && (c.query("policy_name") == "" || p.Name == c.query("policy_name")) &&
			oneOf(p.Application, apps) && oneOf(p.User, users) &&
			len(c.values("group_ids")) == 0 && anyTag(p.Tags, c.values("tag"))
	})
	return paged(c, "policies", items, c.viewPolicy)
}

func createPolicy(c *call) (any, error) {
	var in struct {
		Name        string            `json:"name"`
		Description string            `json:"description"`
		Rules       []policyRuleInput `json:"rules"`
		Tags        []string          `json:"tags"`
		Application string            `json:"application_id"`
		User        string            `json:"user_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if _, known := c.Applications.get(in.Application); in.Application != "" && !known {
		return nil, notFound("application", in.Application)
	}
	rules, err := c.rules(in.Rules)
	if err != nil {
		return nil, err
	}
	if in.Name == "" {
		in.Name = "pol-" + newID()[:8]
	}
	return c.viewPolicy(add(c.world, c.Policies, &policy{record: newRecord("", in.Name, in.Tags), Description: in.Description,
		Application: in.Application, User: in.User, Rules: rules})), nil
}

func (c *call) policy(id string) (*policy, error) {
	if p, ok := c.Policies.get(id); ok {
		return p, nil
	}
	return nil, notFound("policy", id)
}

func getPolicy(c *call) (any, error) {
	p, err := c.policy(c.path("id"))
	if err != nil {
		return nil, err
	}
	return c.viewPolicy(p), nil
}

func updatePolicy(c *call) (any, error) {
	p, err := c.policy(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Description opt[string] `json:"description"`
		Application opt[string] `json:"application_id"`
		Nobody      opt[bool]   `json:"no_principal"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := c.rename(&p.record); err != nil {
		return nil, err
	}
	p.Description, p.Application = in.Description.or(p.Description), in.Application.or(p.Application)
	if in.Nobody.or(false) {
		p.Application, p.User = "", ""
	}
	change(c.world, c.Policies, p)
	return c.viewPolicy(p), nil
}

func deletePolicy(c *call) (any, error) {
	p, err := c.policy(c.path("id"))
	if err != nil {
		return nil, err
	}
	remove(c.world, c.Policies, p.ID)
	return nil, nil
}

func listPolicyRules(c *call) (any, error) {
	p, err := c.policy(c.query("policy_id"))
	if err != nil {
		return nil, err
	}
	return doc{"rules": views(page(c, p.Rules, "page_size", 20), viewPolicyRule), "total_count": len(p.Rules)}, nil
}

func setPolicyRules(c *call) (any, error) {
	var in struct {
		Policy string            `json:"policy_id"`
		Rules  []policyRuleInput `json:"rules"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	p, err := c.policy(in.Policy)
	if err != nil {
		return nil, err
	}
	rules, err := c.rules(in.Rules)
	if err != nil {
		return nil, err
	}
	p.Rules = rules
	change(c.world, c.Policies, p)
	return doc{"rules": views(p.Rules, viewPolicyRule)}, nil
}

func listPermissionSets(c *call) (any, error) {
	all := []doc{}
	for _, s := range permissionSets {
		all = append(all, doc{"id": s.id(), "name": s.name, "scope_type": s.scope, "description": s.name, "categories": []string{}})
	}
	return doc{"permission_sets": page(c, all, "page_size", 20), "total_count": len(all)}, nil
}
