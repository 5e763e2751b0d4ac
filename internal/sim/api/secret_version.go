package api

import (
	"encoding/base64"
	"hash/crc32"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// secretVersion is a value of a secret. Revisions are never used twice.
type secretVersion struct {
	Revision    int
	Status      string
	Description string
	Created     time.Time
	Updated     time.Time
	Deleted     *time.Time
	Leaving     *time.Time
	Ephemeral   *ephemeralProperties
	Data        []byte
	CRC         *uint32 // given by the client that made it
}

const (
	versionEnabled  = "enabled"
	versionDisabled = "disabled"
	versionLeaving  = "scheduled_for_deletion"
	versionDeleted  = "deleted"
)

func (r *Region) secretVersionRoutes(base string) {
	r.route("GET "+base, http.StatusOK, listSecretVersions)
	r.route("POST "+base, http.StatusOK, createSecretVersion)
	r.route("GET "+base+"/{revision}", http.StatusOK, getSecretVersion)
	r.route("PATCH "+base+"/{revision}", http.StatusOK, updateSecretVersion)
	r.route("DELETE "+base+"/{revision}", http.StatusNoContent, deleteSecretVersion)
	r.route("POST "+base+"/{revision}/enable", http.StatusOK, switchSecretVersion(versionEnabled))
	r.route("POST "+base+"/{revision}/disable", http.StatusOK, switchSecretVersion(versionDisabled))
	r.route("POST "+base+"/{revision}/restore", http.StatusOK, restoreSecretVersion)
	r.route("GET "+base+"/{revision}/access", http.StatusOK, accessSecretVersion)
	r.route("GET "+secretBase+"/secrets-by-path/versions/{revision}/access", http.StatusOK, accessSecretByPath)
}

func (s *secret) view(v *secretVersion) doc {
	return doc{"revision": v.Revision, "srn": noSRN, "secret_id": s.ID, "status": v.Status, "created_at": stamp(v.Created),
		"updated_at": stamp(v.Updated), "deleted_at": stampOrNull(v.Deleted), "description": v.Description,
		"latest": v.Revision == s.latest(), "ephemeral_properties": viewProperties(v.Ephemeral),
		"deletion_requested_at": stampOrNull(v.Leaving), "region": s.Region}
}

// latest is the highest revision that still exists; one on its way out counts,
// as recorded.
func (s *secret) latest() int {
	for _, v := range slices.Backward(s.Versions) {
		if v.Status != versionDeleted {
			return v.Revision
		}
	}
	return 0
}

// find is a version by number, "latest" or "latest_enabled".
func (s *secret) find(revision string) (*secretVersion, error) {
	n, err := strconv.Atoi(revision)
	switch {
	case revision == "latest":
		n = s.latest()
	case revision == "latest_enabled":
		for i, v := range s.Versions {
			if v.Status == versionEnabled {
				n = i + 1
			}
		}
	case err != nil:
		return nil, invalid("revision", "format", "revision must be a number, latest or latest_enabled")
	}
	if n < 1 || n > len(s.Versions) || s.Versions[n-1].Status == versionDeleted {
		return nil, notFound("secret_version", s.ID+"/"+revision)
	}
	return s.Versions[n-1], nil
}

// version is the one that a call names, of a secret that is not on its way out.
func (c *call) secretVersion() (*secret, *secretVersion, error) {
	s, err := c.livingSecret()
	if err != nil {
		return nil, nil, err
	}
	v, err := s.find(c.path("revision"))
	return s, v, err
}

func listSecretVersions(c *call) (any, error) {
	s, err := c.secret()
	if err != nil {
		return nil, err
	}
	var found []*secretVersion
	for _, v := range slices.Backward(s.Versions) { // the newest first
		if oneOf(v.Status, c.known("status")) && v.Status != versionDeleted {
			found = append(found, v)
		}
	}
	total := len(found)
	return doc{"versions": views(page(c, found, "page_size", 20), s.view), "total_count": total}, nil
}

func createSecretVersion(c *call) (any, error) {
	s, err := c.livingSecret()
	if err != nil {
		return nil, err
	}
	var in struct {
		Data            string  `json:"data"`
		Description     string  `json:"description"`
		DisablePrevious bool    `json:"disable_previous"`
		CRC             *uint32 `json:"data_crc32"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(in.Data)
	switch {
	case in.Data == "":
		return nil, invalid("data", "required", "data is required")
	case err != nil:
		return nil, invalid("data", "format", "data must be encoded in base64")
	case len(data) > secretLargest:
		return nil, invalid("data", "constraint", "data must not be larger than 65536 bytes")
	case in.CRC != nil && *in.CRC != crc32.ChecksumIEEE(data):
		return nil, invalid("data_crc32", "constraint", "data does not have this checksum")
	}
	if err := checkSecretData(s.Type, data); err != nil {
		return nil, err
	}
	if in.DisablePrevious {
		if last, err := s.find("latest"); err == nil && last.Status == versionEnabled {
			last.Status, last.Updated = versionDisabled, now()
		}
	}
	t := now()
	v := &secretVersion{Revision: len(s.Versions) + 1, Status: versionEnabled, Description: in.Description, Created: t, Updated: t,
		Data: data, CRC: in.CRC, Ephemeral: s.Policy.properties(t)}
	s.Versions = append(s.Versions, v)
	c.effect("created", "secret_version", s.ID+"/"+strconv.Itoa(v.Revision))
	if s.Policy != nil && s.Policy.TTL > 0 {
		c.expireSecretVersion(s.ID, v.Revision, s.Policy.TTL)
	}
	return s.view(v), nil
}

// changed tells the world of a change to a version.
func (c *call) changedVersion(verb string, s *secret, v *secretVersion) {
	c.effect(verb, "secret_version", s.ID+"/"+strconv.Itoa(v.Revision))
}

func getSecretVersion(c *call) (any, error) {
	s, err := c.secret()
	if err != nil {
		return nil, err
	}
	v, err := s.find(c.path("revision"))
	if err != nil {
		return nil, err
	}
	return s.view(v), nil
}

func updateSecretVersion(c *call) (any, error) {
	s, v, err := c.secretVersion()
	if err != nil {
		return nil, err
	}
	var in struct {
		Description opt[string]      `json:"description"`
		Ephemeral   *propertiesInput `json:"ephemeral_properties"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Ephemeral != nil {
		if v.Ephemeral == nil {
			return nil, invalid("ephemeral_properties", "constraint", "the version is not ephemeral")
		}
		if err := in.Ephemeral.into(v.Ephemeral); err != nil {
			return nil, err
		}
		if at := v.Ephemeral.Expires; at != nil {
			c.expireSecretVersion(s.ID, v.Revision, time.Until(*at))
		}
	}
	v.Description, v.Updated = in.Description.or(v.Description), now()
	c.changedVersion("changed", s, v)
	return s.view(v), nil
}

// deleteSecretVersion schedules the deletion; the time of the last change stays,
// as recorded. An ephemeral version goes at once, as its secret does.
func deleteSecretVersion(c *call) (any, error) {
	s, v, err := c.secretVersion()
	if err != nil {
		return nil, err
	}
	if v.Status == versionLeaving {
		return nil, notFound("secret_version", s.ID+"/"+c.path("revision"))
	}
	c.changedVersion("deleted", s, v)
	if v.Ephemeral != nil {
		v.wipe()
		return nil, nil
	}
	t := now()
	v.Status, v.Leaving = versionLeaving, &t
	c.after(secretStays, func(*world) {
		if v.Leaving != nil && v.Leaving.Equal(t) {
			v.wipe()
		}
	})
	return nil, nil
}

// wipe ends a version; only its number remains.
func (v *secretVersion) wipe() {
	t := now()
	v.Status, v.Deleted, v.Data = versionDeleted, &t, nil
}

func switchSecretVersion(to string) handler {
	return func(c *call) (any, error) {
		s, v, err := c.secretVersion()
		if err != nil {
			return nil, err
		}
		if v.Status == versionLeaving {
			return nil, precondition("resource_not_usable", "the version is scheduled for deletion")
		}
		if v.Status != to {
			v.Status, v.Updated = to, now()
			c.changedVersion("changed", s, v)
		}
		return s.view(v), nil
	}
}

func restoreSecretVersion(c *call) (any, error) {
	s, v, err := c.secretVersion()
	if err != nil {
		return nil, err
	}
	if v.Status != versionLeaving {
		return nil, precondition("resource_not_usable", "the version is not scheduled for deletion")
	}
	v.Status, v.Leaving, v.Updated = versionEnabled, nil, now()
	c.changedVersion("changed", s, v)
	return s.view(v), nil
}

func accessSecretVersion(c *call) (any, error) {
	s, v, err := c.secretVersion()
	if err != nil {
		return nil, err
	}
	return c.reveal(s, v)
}

func accessSecretByPath(c *call) (any, error) {
	name, path := c.query("secret_name"), c.query("secret_path")
	for _, s := range c.visibleSecrets(func(s *secret) bool {
		return s.Leaving == nil && s.Name == name && s.Path == path && s.Project == c.query("project_id")
	}) {
		v, err := s.find(c.path("revision"))
		if err != nil {
			return nil, err
		}
		return c.reveal(s, v)
	}
	return nil, notFound("secret", "")
}

// reveal answers with a value, and acts on a version that may be seen but once.
func (c *call) reveal(s *secret, v *secretVersion) (any, error) {
	if v.Status != versionEnabled {
		return nil, precondition("resource_not_usable", "the version is not enabled")
	}
	var crc any
	if v.CRC != nil {
		crc = *v.CRC
	}
	out := doc{"secret_id": s.ID, "revision": v.Revision, "data": base64.StdEncoding.EncodeToString(v.Data), "data_crc32": crc, "type": s.Type}
	if v.Ephemeral != nil && v.Ephemeral.Once {
		v.expire()
	}
	return out, nil
}
