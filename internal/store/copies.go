package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"bastide/internal/outcome"
	"bastide/internal/scaleway"

	"github.com/minio/minio-go/v7"
)

// Shelf is a place for copies of the environment's encrypted bundle: one object
// for every bundle that there ever was, named by its number and its digest. An
// object is never written over by another one, so that no mistake about which
// bundle is the right one loses the other.
type Shelf struct {
	*Bucket
	Title   string // for messages, such as "the estate's bucket bastide-staging-1a2b3c4d"
	prefix  string
	foreign bool // its bucket is made by a person
}

// Copy is one bundle that was kept.
type Copy struct {
	Number int    // in the order in which they were kept, from 1
	Digest string // SHA-256 of the encrypted bundle, in hexadecimal
	Size   int64  // bytes
	Key    string
}

// Copies is the shelf in the estate's own bucket. It makes no call.
func (s *Store) Copies() *Shelf {
	return &Shelf{Bucket: s.Bucket, Title: "the estate's bucket " + s.Name, prefix: copiesPrefix}
}

// Replica is the shelf in a store elsewhere. Several estates can share its bucket:
// each has what is under the name of its own bucket, which no other estate has. It
// makes no call.
func Replica(objects *scaleway.ObjectStorage, bucket, own, address string) *Shelf {
	return &Shelf{Bucket: NewBucket(objects, bucket), Title: fmt.Sprintf("the replica %s at %s", bucket, address), prefix: own + "/" + copiesPrefix, foreign: true}
}

var copyName = regexp.MustCompile(`^([0-9]{6})-([0-9a-f]{64})\.age$`)

// List is what is on the shelf, the newest last: one call. Without the estate's
// bucket there is nothing yet; without the replica's it is refused.
func (s *Shelf) List(ctx context.Context) ([]Copy, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var out []Copy
	for o := range s.objects.Client.Client.ListObjects(ctx, s.Name, minio.ListObjectsOptions{Prefix: s.prefix, Recursive: true}) {
		switch {
		case has(o.Err, "NoSuchBucket") && s.foreign:
			return nil, outcome.Refuse("there is no bucket for "+s.Title, "bastide makes no bucket outside of Scaleway, as it cannot know whose it would be and who could read it",
				"make a private bucket of that name there, or correct store.replica").Because(o.Err)
		case has(o.Err, "NoSuchBucket"):
			return nil, nil
		case o.Err != nil:
			return nil, s.objects.CannotTell("which copies of the secrets bundle are in "+s.Title+" could not be read", o.Err)
		}
		if c, ok := s.parse(o); ok {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Copy) int { return a.Number - b.Number })
	return out, nil
}

func (s *Shelf) parse(o minio.ObjectInfo) (Copy, bool) {
	if len(o.Key) < len(s.prefix) {
		return Copy{}, false
	}
	m := copyName.FindStringSubmatch(o.Key[len(s.prefix):])
	if m == nil {
		return Copy{}, false // somebody else's
	}
	n, err := strconv.Atoi(m[1])
	return Copy{Number: n, Digest: m[2], Size: o.Size, Key: o.Key}, err == nil
}

// Standing is how a bundle stands to the copies of a shelf.
type Standing int

// The standings.
const (
	Lacking Standing = iota // it is not there, or not whole
	Kept                    // it is the newest copy
	Behind                  // it is there, and a newer one is
)

// Stand compares the encrypted bundle with a shelf's copies, the newest last. The
// next number is what it is kept under if it is new.
func Stand(copies []Copy, sealed []byte) (s Standing, next int) {
	sum := sha256.Sum256(sealed)
	digest := hex.EncodeToString(sum[:])
	if len(copies) == 0 {
		return Lacking, 1
	}
	newest := copies[len(copies)-1]
	switch {
	case newest.Digest == digest && newest.Size == int64(len(sealed)):
		return Kept, newest.Number
	case newest.Digest == digest: // a write that was cut, where the store lets one
		return Lacking, newest.Number
	case slices.ContainsFunc(copies, func(c Copy) bool { return c.Digest == digest }):
		return Behind, newest.Number
	}
	return Lacking, newest.Number + 1
}

// Keep writes the bundle as the copy of a number. A second time is the same as
// once.
func (s *Shelf) Keep(ctx context.Context, number int, sealed []byte) error {
	sum := sha256.Sum256(sealed)
	key := fmt.Sprintf("%s%06d-%s.age", s.prefix, number, hex.EncodeToString(sum[:]))
	if _, err := s.put(ctx, key, sealed, "application/age"); err != nil {
		return s.objects.Failed("the secrets bundle was not copied to "+s.Title, err)
	}
	return nil
}

// Fetch reads a copy and checks it against the digest in its name.
func (s *Shelf) Fetch(ctx context.Context, c Copy) ([]byte, error) {
	o, _, err := s.read(ctx, c.Key)
	if err != nil {
		return nil, s.objects.CannotTell(fmt.Sprintf("the copy %s in %s could not be read", c.Key, s.Title), err)
	}
	if sum := sha256.Sum256(o.body); hex.EncodeToString(sum[:]) != c.Digest {
		return nil, &DamagedError{Key: c.Key, Where: s.Title}
	}
	return o.body, nil
}

// DamagedError is a copy whose content is not what its name says.
type DamagedError struct{ Key, Where string }

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the copy %s in %s is damaged: its content does not have the digest that is its name", e.Key, e.Where)
}

// Clear removes all copies of this estate, in all versions that the store tells of.
func (s *Shelf) Clear(ctx context.Context) error {
	what := "the copies of the secrets bundle in " + s.Title + " were not all removed"
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var things []minio.ObjectInfo
	for o := range s.objects.Client.Client.ListObjects(ctx, s.Name, minio.ListObjectsOptions{Prefix: s.prefix, Recursive: true, WithVersions: true}) {
		if has(o.Err, "NoSuchBucket") {
			return nil
		}
		if o.Err != nil {
			return s.objects.Failed(what, o.Err)
		}
		if _, ok := s.parse(o); ok {
			things = append(things, o)
		}
	}
	for _, o := range things {
		if err := s.erase(ctx, o.Key, o.VersionID); err != nil && !has(err, "NoSuchVersion", "NoSuchKey") {
			return s.objects.Failed(what, err)
		}
	}
	return nil
}
