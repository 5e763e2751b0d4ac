package s3

import (
	"os"
	"slices"
	"strconv"
	"time"
)

// Limits of the real store.
const (
	maxParts     = 1000          // AWS has 10 000
	minPart      = 5 << 20       // all parts but the last
	maxPut       = 5_000_000_000 // one PUT, one part, one copy: "5 GB"
	maxObject    = 5_000_000_000_000
	maxVersions  = 1000 // of one key
	maxKey       = 1024 // bytes
	maxUserMeta  = 2048 // bytes of names and values together
	maxConfig    = 1 << 20
	maxListing   = 1000
	maxDelete    = 1000
	nullVersion  = "null"
	stateOn      = "Enabled"
	stateOff     = "Suspended"
	modeGoverned = "GOVERNANCE"
	modeComplied = "COMPLIANCE"
)

// bucket is a bucket with all that is in it. Versions and uploads are replaced,
// never changed in place, but for the fields of a version that calls of their
// own set (tags, ACL, retention, hold).
type bucket struct {
	name, region, owner string // the owner is a project's id
	created             time.Time
	versioning          string // "", Enabled, Suspended
	acl                 []grant
	tags                []tag
	cors                *corsConfig
	lifecycle           *lifecycleConfig
	policy              *policy
	website             *websiteConfig
	encryption          *encryptionConfig
	lock                *lockConfig // nil where object lock is off
	keys                map[string][]*version
	uploads             map[string]*upload
}

// version is one version of an object, or a delete marker.
type version struct {
	key, id  string
	marker   bool
	modified time.Time
	etag     string // without quotes
	size     int64
	content  []blob            // in order; several after a multipart upload
	headers  map[string]string // content type and its kin, and x-amz-meta-*
	sums     checksums
	tags     []tag
	acl      []grant
	seal     seal
	retain   retention
	hold     bool
}

// blob is a file that holds bytes of an object.
type blob struct {
	file string
	size int64
	sums checksums // of a part
	etag string
}

// upload is a multipart upload that has not ended.
type upload struct {
	id, key   string
	started   time.Time
	owner     string
	template  version // what the object will have besides its content
	algorithm string  // of checksums, "" for none
	whole     bool    // the checksum is over the object, not over the parts' checksums
	parts     map[int]part
}

type part struct {
	blob
	modified time.Time
}

// retention is a WORM lock until a time; without a mode there is none.
type retention struct {
	mode  string
	until time.Time
}

// seal is how an object is encrypted.
type seal struct {
	algorithm   string // x-amz-server-side-encryption
	kmsKey      string
	customerMD5 string // of a key that the client keeps; the object is unreadable without it
}

// locked says whether a version may not go away at a time.
func (v *version) locked(now time.Time, bypass bool) bool {
	if v.hold {
		return true
	}
	if v.retain.mode == "" || !v.retain.until.After(now) {
		return false
	}
	return v.retain.mode == modeComplied || !bypass
}

// current is the newest version of a key, delete markers too; nil without any.
func (b *bucket) current(key string) *version {
	if vs := b.keys[key]; len(vs) > 0 {
		return vs[0]
	}
	return nil
}

// find is a version by its id.
func (b *bucket) find(key, id string) *version {
	for _, v := range b.keys[key] {
		if v.id == id {
			return v
		}
	}
	return nil
}

// empty says whether a bucket can be deleted; uploads are in the way too.
func (b *bucket) empty() bool { return len(b.keys) == 0 && len(b.uploads) == 0 }

// place makes v the current version, as the bucket's versioning asks for. A
// null version that it replaces is gone for good.
func (s *Server) place(b *bucket, v *version) {
	v.id = nullVersion
	if b.versioning == stateOn {
		v.id = newVersionID(b.keys[v.key], v.modified)
	} else if gone := b.remove(v.key, nullVersion); gone != nil {
		s.discard(gone.content)
	}
	b.keys[v.key] = append([]*version{v}, b.keys[v.key]...)
}

// marker is a delete marker.
func marker(key string, at time.Time) *version {
	return &version{key: key, marker: true, modified: at.UTC()}
}

// newVersionID is the time in microseconds, as recorded, and later than that of
// every version the key has.
func newVersionID(have []*version, now time.Time) string {
	id := now.UnixMicro()
	for _, v := range have {
		if n, err := strconv.ParseInt(v.id, 10, 64); err == nil && n >= id {
			id = n + 1
		}
	}
	return strconv.FormatInt(id, 10)
}

// remove takes a version out and returns it; nil where there is none.
func (b *bucket) remove(key, id string) *version {
	vs := b.keys[key]
	i := slices.IndexFunc(vs, func(v *version) bool { return v.id == id })
	if i < 0 {
		return nil
	}
	gone := vs[i]
	if len(vs) == 1 {
		delete(b.keys, key)
	} else {
		b.keys[key] = slices.Delete(slices.Clone(vs), i, i+1)
	}
	return gone
}

// discard removes the files of blobs. Readers that have them open read on.
func discard(blobs []blob) {
	for _, p := range blobs {
		_ = os.Remove(p.file) // what cannot be removed goes with the region's folder
	}
}

func (u *upload) blobs() []blob {
	var out []blob
	for _, p := range u.parts {
		out = append(out, p.blob)
	}
	return out
}
