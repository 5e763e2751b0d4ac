// Package store is the estate's own bucket in object storage: it holds the lock
// that keeps two runs apart, the journals of runs, images, copies of the secrets
// bundle where the file names a replica for them, and later backups.
// Nothing in it is needed to know what is live; an estate whose bucket is lost
// is raised, looked at and taken down as before.
//
// What may be read by whoever can read the bucket is in the clear: the lock, with
// who runs what where since when, so that it can be read by anybody who has to
// decide whether it may go; and the proof that the store enforces conditions,
// which says nothing. Everything else is encrypted to the file's recipients.
package store

import (
	"strings"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/scaleway"
)

// Where things are in the bucket.
const (
	lockKey       = "lock.json"
	proofKey      = "conditions.json"
	journalPrefix = "journal/"
	copiesPrefix  = "secrets/"
)

// The mark that a bucket of the estate carries, as a tag.
var markKey = strings.TrimSuffix(blueprint.TagEstate, "=")

// Options says which bucket, of which estate.
type Options struct {
	Objects *scaleway.ObjectStorage
	Bucket  string
	Estate  string // its name
	// Seal encrypts to the file's recipients.
	Seal func(plain []byte) ([]byte, error)
	// Notice tells a person what is worth knowing and no error.
	Notice func(string)
	// Terms of the lock; zero fields take their defaults.
	Terms Terms
	// Settle is how long a listing may lag behind a change; default 2 s.
	Settle time.Duration
}

// Terms are the times of a lock.
type Terms struct {
	// Life is how long a lock is good for without being renewed; default 2
	// minutes. It is also how long a run that died elsewhere is in the way.
	Life time.Duration
	// Renew is how often it is renewed; default a quarter of Life.
	Renew time.Duration
}

func (t Terms) orDefaults() Terms {
	if t.Life == 0 {
		t.Life = 2 * time.Minute
	}
	if t.Renew == 0 {
		t.Renew = t.Life / 4
	}
	return t
}

// Store is an estate's bucket. It is safe for concurrent use.
type Store struct {
	*Bucket
	o Options
}

// New makes no call.
func New(o Options) *Store {
	o.Terms = o.Terms.orDefaults()
	if o.Settle == 0 {
		o.Settle = 2 * time.Second
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	return &Store{Bucket: NewBucket(o.Objects, o.Bucket), o: o}
}
