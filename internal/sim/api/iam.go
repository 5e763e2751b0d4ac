package api

import (
	"crypto/rsa"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/crypto/ssh"
)

// sshKey is a project's public key. Keys have no tags and names need not be
// unique; the comment of a key is dropped.
type sshKey struct {
	record
	PublicKey   string
	Fingerprint string
	Disabled    bool
}

func (r *Region) iamRoutes() {
	const base = "/iam/v1alpha1"
	r.route("GET "+base+"/ssh-keys", http.StatusOK, listSSHKeys)
	r.route("POST "+base+"/ssh-keys", http.StatusOK, createSSHKey)
	r.route("GET "+base+"/ssh-keys/{id}", http.StatusOK, getSSHKey)
	r.route("PATCH "+base+"/ssh-keys/{id}", http.StatusOK, updateSSHKey)
	r.route("DELETE "+base+"/ssh-keys/{id}", http.StatusNoContent, deleteSSHKey)
	r.apiKeyRoutes(base + "/api-keys")
	r.applicationRoutes(base + "/applications")
	r.policyRoutes(base)
	r.route("GET "+base+"/quota", http.StatusOK, listQuotas)
	r.route("GET "+base+"/quota/{name}", http.StatusOK, getQuota)
}

func (c *call) viewSSHKey(k *sshKey) doc {
	return doc{"id": k.ID, "srn": noSRN, "name": k.Name, "public_key": k.PublicKey, "fingerprint": k.Fingerprint,
		"created_at": stamp(k.Created), "updated_at": stamp(k.Updated), "organization_id": c.organization(k.Project),
		"project_id": k.Project, "disabled": k.Disabled}
}

func listSSHKeys(c *call) (any, error) {
	disabled, filter := c.flag("disabled")
	items := c.SSHKeys.where(func(k *sshKey) bool {
		return c.matches(&k.record) && (!filter || k.Disabled == disabled)
	})
	return paged(c, "ssh_keys", items, c.viewSSHKey)
}

func createSSHKey(c *call) (any, error) {
	var in struct {
		Name      string `json:"name"`
		PublicKey string `json:"public_key"`
		Project   string `json:"project_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, "", projectForbidden("ssh_key"))
	if err != nil {
		return nil, err
	}
	k, err := c.addSSHKey(owner, in.Name, in.PublicKey)
	if err != nil {
		return nil, err
	}
	return c.viewSSHKey(k), nil
}

func (w *world) addSSHKey(owner, name, text string) (*sshKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, invalid("public_key", "format", "public key is not a valid SSH public key")
	}
	if name == "" {
		name = "key-" + newID()[:8]
	}
	return add(w, w.SSHKeys, &sshKey{record: newRecord(owner, name, nil), Fingerprint: fingerprint(key),
		PublicKey: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))}), nil
}

// fingerprint is written as "256 MD5:fd:2d:… (ssh-ed25519)".
func fingerprint(key ssh.PublicKey) string {
	bits := 256
	if c, ok := key.(ssh.CryptoPublicKey); ok {
		if r, ok := c.CryptoPublicKey().(*rsa.PublicKey); ok {
			bits = r.N.BitLen()
		}
	}
	return fmt.Sprintf("%d MD5:%s (%s)", bits, ssh.FingerprintLegacyMD5(key), key.Type())
}

func (c *call) sshKey() (*sshKey, error) {
	if k, ok := c.SSHKeys.get(c.path("id")); ok {
		return k, nil
	}
	return nil, notFound("ssh_key", c.path("id"))
}

func getSSHKey(c *call) (any, error) {
	k, err := c.sshKey()
	if err != nil {
		return nil, err
	}
	return c.viewSSHKey(k), nil
}

func updateSSHKey(c *call) (any, error) {
	k, err := c.sshKey()
	if err != nil {
		return nil, err
	}
	var in struct {
		Name     opt[string] `json:"name"`
		Disabled opt[bool]   `json:"disabled"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	in.Name.set(&k.Name)
	in.Disabled.set(&k.Disabled)
	change(c.world, c.SSHKeys, k)
	return c.viewSSHKey(k), nil
}

func deleteSSHKey(c *call) (any, error) {
	k, err := c.sshKey()
	if err != nil {
		return nil, err
	}
	remove(c.world, c.SSHKeys, k.ID)
	return nil, nil
}

// authorizedKeys are the keys of a project that are in force.
func (w *world) authorizedKeys(projectID string) []string {
	var out []string
	for _, k := range w.SSHKeys.all() {
		if k.Project == projectID && !k.Disabled {
			out = append(out, k.PublicKey)
		}
	}
	return out
}

// quotas are the documented ones of an account whose identity is validated.
var quotas = []struct {
	name  string
	limit int
}{
	{"ssh_keys", 50}, {"api_keys", 100}, {"projects", 25}, {"applications", 100},
	{"cp_servers_type_PLAY2_PICO", 15}, {"cp_servers_type_PLAY2_NANO", 10}, {"cp_servers_type_PLAY2_MICRO", 5},
	{"cp_servers_type_DEV1_S", 20}, {"cp_servers_type_DEV1_M", 15}, {"cp_servers_type_PRO2_XXS", 5},
	{"cp_servers_type_POP2_2C_8G", 5}, {"lb_frontends", 300}, {"lb_backends", 300},
}

func viewQuota(name string, limit int) doc {
	return doc{"name": name, "pretty_name": name, "unit": "", "description": "", "locality_type": "global",
		"limit": limit, "limits": []doc{{"global": true, "limit": limit}}}
}

func listQuotas(c *call) (any, error) {
	out := []doc{}
	for _, q := range quotas {
		if oneOf(q.name, c.values("quotum_names")) {
			out = append(out, viewQuota(q.name, q.limit))
		}
	}
	return doc{"quota": page(c, out, "page_size", 20), "total_count": len(out)}, nil
}

func getQuota(c *call) (any, error) {
	for _, q := range quotas {
		if q.name == c.path("name") {
			return viewQuota(q.name, q.limit), nil
		}
	}
	return nil, notFound("quotum", c.path("name"))
}
