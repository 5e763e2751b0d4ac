package api

import (
	"crypto/rand"
	"net/http"
	"time"
)

// apiKey is a key that was made here. Its secret is shown once.
type apiKey struct {
	record        // the id is the access key
	Secret        string
	Application   string
	User          string
	Description   string
	DefaultHome   string // default project
	Expires       *time.Time
	CreatedFromIP string
}

func (r *Region) apiKeyRoutes(base string) {
	r.route("GET "+base, http.StatusOK, listAPIKeys)
	r.route("POST "+base, http.StatusOK, createAPIKey)
	r.route("GET "+base+"/{access_key}", http.StatusOK, getAPIKey)
	r.route("PATCH "+base+"/{access_key}", http.StatusOK, updateAPIKey)
	r.route("DELETE "+base+"/{access_key}", http.StatusNoContent, deleteAPIKey)
}

func viewAPIKey(k *apiKey) doc {
	d := doc{"access_key": k.ID, "secret_key": nil, "description": k.Description, "default_project_id": k.DefaultHome,
		"created_at": stamp(k.Created), "updated_at": stamp(k.Updated), "expires_at": stampOrNull(k.Expires), "editable": true,
		"deletable": true, "managed": false, "creation_ip": k.CreatedFromIP, "srn": noSRN}
	if k.Application != "" {
		d["application_id"] = k.Application
	} else {
		d["user_id"] = k.User
	}
	return d
}

// theirKey shows a key that a person made long ago: the region has no users of
// its own, and takes every access key for one of theirs.
func (c *call) theirKey(accessKey string) *apiKey {
	owner := c.defaultProject()
	long := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &apiKey{record: record{ID: accessKey, Created: long, Updated: long}, User: owner, DefaultHome: owner, CreatedFromIP: "127.0.0.1"}
}

func (c *call) defaultProject() string {
	if len(c.Projects.Order) > 0 {
		return c.Projects.Order[0]
	}
	return c.req.Header.Get("X-Auth-Token")
}

func listAPIKeys(c *call) (any, error) {
	asked, bearer := c.values("access_keys", "access_key"), c.values("application_id", "user_id", "bearer_id")
	items := c.APIKeys.where(func(k *apiKey) bool {
		return oneOf(k.ID, asked) && (oneOf(k.Application, bearer) || oneOf(k.User, bearer))
	})
	for _, a := range asked {
		if _, made := c.APIKeys.get(a); !made && !c.Revoked[a] && len(bearer) == 0 {
			items = append(items, c.theirKey(a))
		}
	}
	return paged(c, "api_keys", items, viewAPIKey)
}

func createAPIKey(c *call) (any, error) {
	var in struct {
		Application string     `json:"application_id"`
		User        string     `json:"user_id"`
		Expires     *time.Time `json:"expires_at"`
		Home        string     `json:"default_project_id"`
		Description string     `json:"description"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if (in.Application == "") == (in.User == "") {
		return nil, invalid("application_id", "required", "one of application_id and user_id is required")
	}
	if _, known := c.Applications.get(in.Application); in.Application != "" && !known {
		return nil, notFound("application", in.Application)
	}
	home, err := c.owner(in.Home, "", projectNotFound)
	if err != nil {
		return nil, err
	}
	k := &apiKey{record: newRecord("", "", nil), Secret: newID(), Application: in.Application, User: in.User, Description: in.Description,
		DefaultHome: home, Expires: in.Expires, CreatedFromIP: "127.0.0.1"}
	k.ID = newAccessKey()
	add(c.world, c.APIKeys, k)
	d := viewAPIKey(k)
	d["secret_key"] = k.Secret // now and never again
	return d, nil
}

func newAccessKey() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, 17)
	_, _ = rand.Read(b) // never fails, by the package's contract
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return "SCW" + string(b)
}

func (c *call) apiKey() (*apiKey, error) {
	id := c.path("access_key")
	if k, ok := c.APIKeys.get(id); ok {
		return k, nil
	}
	if c.Revoked[id] {
		return nil, notFound("api_key", id)
	}
	return c.theirKey(id), nil
}

func getAPIKey(c *call) (any, error) {
	k, err := c.apiKey()
	if err != nil {
		return nil, err
	}
	return viewAPIKey(k), nil
}

func updateAPIKey(c *call) (any, error) {
	k, err := c.apiKey()
	if err != nil {
		return nil, err
	}
	var in struct {
		Home        opt[string]    `json:"default_project_id"`
		Description opt[string]    `json:"description"`
		Expires     opt[time.Time] `json:"expires_at"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	k.DefaultHome, k.Description = in.Home.or(k.DefaultHome), in.Description.or(k.Description)
	if in.Expires.given && !in.Expires.null {
		k.Expires = &in.Expires.value
	}
	change(c.world, c.APIKeys, k)
	return viewAPIKey(k), nil
}

// deleteAPIKey revokes a key: neither half of it is known from then on.
func deleteAPIKey(c *call) (any, error) {
	k, err := c.apiKey()
	if err != nil {
		return nil, err
	}
	if _, made := c.APIKeys.get(k.ID); !made {
		return nil, forbidden("api_key", "write") // somebody else's
	}
	c.Revoked[k.ID], c.Revoked[k.Secret] = true, true
	remove(c.world, c.APIKeys, k.ID)
	return nil, nil
}
