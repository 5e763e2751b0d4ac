package api

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// secret is a named place for values, which are its versions. What it says of
// itself and what it holds are two rights.
type secret struct {
	record
	Region      string
	Path        string // the folder, without a slash at the end
	Description string
	Type        string
	Protected   bool
	Policy      *ephemeralPolicy
	UsedBy      []string
	Key         string
	Leaving     *time.Time // deletion was asked for
	Versions    []*secretVersion
}

const (
	secretStays   = 7 * 24 * time.Hour // between the deletion and the end
	secretLargest = 64 << 10           // bytes of a value
	secretBase    = "/secret-manager/v1beta1/regions/{region}"
)

var (
	secretName  = regexp.MustCompile(`^[\w.-]{1,255}$`)
	secretTypes = []string{"opaque", "certificate", "key_value", "basic_credentials", "database_credentials", "ssh_key"}
)

func (r *Region) secretRoutes() {
	const one = secretBase + "/secrets/{id}"
	r.route("GET "+secretBase+"/secrets", http.StatusOK, listSecrets)
	r.route("POST "+secretBase+"/secrets", http.StatusOK, createSecret)
	r.route("GET "+secretBase+"/secrets/browse", http.StatusOK, browseSecrets)
	r.route("GET "+one, http.StatusOK, getSecret)
	r.route("PATCH "+one, http.StatusOK, updateSecret)
	r.route("DELETE "+one, http.StatusNoContent, deleteSecret)
	r.route("POST "+one+"/protect", http.StatusOK, protectSecret(true))
	r.route("POST "+one+"/unprotect", http.StatusOK, protectSecret(false))
	r.route("POST "+one+"/restore", http.StatusOK, restoreSecret)
	r.route("POST "+one+"/add-owner", http.StatusNoContent, addSecretOwner)
	r.route("GET "+secretBase+"/tags", http.StatusOK, listSecretTags)
	r.route("GET "+secretBase+"/secret-types", http.StatusOK, listSecretTypes)
	r.secretVersionRoutes(one + "/versions")
}

func viewSecret(s *secret) doc {
	return doc{"id": s.ID, "srn": noSRN, "project_id": s.Project, "name": s.Name, "status": "ready", "created_at": stamp(s.Created),
		"updated_at": stamp(s.Updated), "tags": s.Tags, "version_count": s.count(), "description": s.Description, "managed": false,
		"type": s.Type, "protected": s.Protected, "path": s.Path, "ephemeral_policy": viewPolicy(s.Policy), "used_by": list(s.UsedBy),
		"deletion_requested_at": stampOrNull(s.Leaving), "key_id": orNull(s.Key), "region": s.Region}
}

// stateOfSecret tells a secret that is on its way out from others at a glance,
// for the simulator's own pages: what an estate leaves behind is looked up there.
func stateOfSecret(s *secret) doc {
	d := viewSecret(s)
	if s.Leaving != nil {
		d["status"] = versionLeaving
	}
	return d
}

// stampOrNull writes a time that may be missing.
func stampOrNull(t *time.Time) any {
	if t == nil {
		return nil
	}
	return stamp(*t)
}

// count is how many versions there are; those on their way out count, as recorded.
func (s *secret) count() int {
	n := 0
	for _, v := range s.Versions {
		if v.Status != versionDeleted {
			n++
		}
	}
	return n
}

// visible are the secrets of the call's region that a listing may show.
func (c *call) visibleSecrets(keep func(*secret) bool) []*secret {
	return c.Secrets.where(func(s *secret) bool { return s.Region == c.regionName() && keep(s) })
}

func listSecrets(c *call) (any, error) {
	leaving, _ := c.flag("scheduled_for_deletion") // false when not given
	path, kinds := c.query("path"), c.known("type")
	items := c.visibleSecrets(func(s *secret) bool {
		return c.matches(&s.record) && (path == "" || s.Path == path) && oneOf(s.Type, kinds) &&
			c.agrees("ephemeral", s.Policy != nil) && (s.Leaving != nil) == leaving
	})
	return pagedFrom(c, "secrets", items, viewSecret, "name_asc")
}

func createSecret(c *call) (any, error) {
	var in struct {
		Project     string       `json:"project_id"`
		Name        string       `json:"name"`
		Tags        []string     `json:"tags"`
		Description string       `json:"description"`
		Type        string       `json:"type"`
		Path        string       `json:"path"`
		Policy      *policyInput `json:"ephemeral_policy"`
		Protected   bool         `json:"protected"`
		Key         string       `json:"key_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, "", func(string) error { return forbidden("secret", "write") })
	if err != nil {
		return nil, err
	}
	if in.Type == "" || in.Type == "unknown_type" {
		in.Type = "opaque"
	}
	if !slices.Contains(secretTypes, in.Type) {
		return nil, invalid("type", "constraint", "type "+in.Type+" does not exist")
	}
	policy, err := in.Policy.read()
	if err != nil {
		return nil, err
	}
	s := &secret{record: newRecord(owner, in.Name, in.Tags), Region: c.regionName(), Description: in.Description, Type: in.Type,
		Protected: in.Protected, Policy: policy, Key: in.Key}
	if err := c.place(s, in.Name, in.Path); err != nil {
		return nil, err
	}
	return viewSecret(add(c.world, c.Secrets, s)), nil
}

// place gives a secret its name and folder. A name is taken within its folder,
// also by a secret that is scheduled for deletion: nobody knows whether the real
// one frees it at once, and a client that counts on it would lose.
func (c *call) place(s *secret, name, path string) error {
	if !secretName.MatchString(name) {
		return invalid("name", "format", "name must be 1 to 255 letters, digits, dots, dashes or underscores")
	}
	if path != "" && !strings.HasPrefix(path, "/") {
		return invalid("path", "format", "path must begin with /")
	}
	if path = strings.TrimRight(path, "/"); path == "" {
		path = "/"
	}
	if c.Secrets.any(func(o *secret) bool {
		return o.ID != s.ID && o.Region == s.Region && o.Project == s.Project && o.Name == name && o.Path == path
	}) {
		return invalid("name", "format", "cannot have same secret name in same path")
	}
	s.Name, s.Path = name, path
	return nil
}

func (c *call) secret() (*secret, error) {
	if s, ok := c.Secrets.get(c.path("id")); ok && s.Region == c.regionName() {
		return s, nil
	}
	return nil, notFound("secret", c.path("id"))
}

// living is the secret of a call that changes it or reads its values, which
// cannot be done to one that is scheduled for deletion.
func (c *call) livingSecret() (*secret, error) {
	s, err := c.secret()
	if err != nil {
		return nil, err
	}
	if s.Leaving != nil {
		return nil, precondition("resource_not_usable", "the secret is scheduled for deletion")
	}
	return s, nil
}

func getSecret(c *call) (any, error) {
	s, err := c.secret()
	if err != nil {
		return nil, err
	}
	return viewSecret(s), nil
}

func updateSecret(c *call) (any, error) {
	s, err := c.livingSecret()
	if err != nil {
		return nil, err
	}
	var in struct {
		Name        opt[string]   `json:"name"`
		Tags        opt[[]string] `json:"tags"`
		Description opt[string]   `json:"description"`
		Path        opt[string]   `json:"path"`
		Policy      *policyInput  `json:"ephemeral_policy"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	policy, err := in.Policy.read()
	if err != nil {
		return nil, err
	}
	if policy != nil && s.Policy == nil {
		return nil, invalid("ephemeral_policy", "constraint", "an ephemeral policy can only be given to a new secret")
	}
	if err := c.place(s, in.Name.or(s.Name), in.Path.or(s.Path)); err != nil {
		return nil, err
	}
	if policy != nil {
		s.Policy = policy // for versions to come
	}
	s.Description, s.Tags = in.Description.or(s.Description), list(in.Tags.or(s.Tags))
	change(c.world, c.Secrets, s)
	return viewSecret(s), nil
}

// deleteSecret schedules the deletion. A secret with an ephemeral policy goes at
// once, as recorded.
func deleteSecret(c *call) (any, error) {
	s, err := c.secret()
	switch {
	case err != nil:
		return nil, err
	case s.Protected:
		return nil, precondition("protected_resource", "cannot delete a protected secret")
	case s.Leaving != nil:
		return nil, notFound("secret", s.ID)
	case s.Policy != nil:
		remove(c.world, c.Secrets, s.ID)
		return nil, nil
	}
	t := now()
	s.Leaving, s.Updated = &t, t
	c.effect("deleted", c.Secrets.Kind, s.ID)
	c.after(secretStays, func(w *world) {
		if s, ok := w.Secrets.get(s.ID); ok && s.Leaving != nil && s.Leaving.Equal(t) {
			remove(w, w.Secrets, s.ID)
		}
	})
	return nil, nil
}

func restoreSecret(c *call) (any, error) {
	s, err := c.secret()
	if err != nil {
		return nil, err
	}
	if s.Leaving == nil {
		return nil, precondition("resource_not_usable", "the secret is not scheduled for deletion")
	}
	s.Leaving = nil
	change(c.world, c.Secrets, s)
	return viewSecret(s), nil
}

// protectSecret leaves the time of the last change alone, as recorded.
func protectSecret(on bool) handler {
	return func(c *call) (any, error) {
		s, err := c.livingSecret()
		if err != nil {
			return nil, err
		}
		s.Protected = on
		c.effect("changed", c.Secrets.Kind, s.ID)
		return viewSecret(s), nil
	}
}

func addSecretOwner(c *call) (any, error) {
	s, err := c.livingSecret()
	if err != nil {
		return nil, err
	}
	var in struct {
		Product string `json:"product"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Product == "" || in.Product == "unknown_product" {
		return nil, invalid("product", "required", "product is required")
	}
	if !slices.Contains(s.UsedBy, in.Product) {
		s.UsedBy = append(s.UsedBy, in.Product)
		c.effect("changed", c.Secrets.Kind, s.ID)
	}
	return nil, nil
}
