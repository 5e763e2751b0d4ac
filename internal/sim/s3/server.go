// Package s3 is the object storage of the simulated region: a store that real
// S3 clients take for Scaleway's. It verifies signatures, checksums and
// conditions as the real one does, keeps content on disk, and forgets
// everything when the region does.
//
// Buckets are addressed by path, or by a host name BUCKET.s3.REGION.scw.cloud.
// A bucket lives in the region of the host name or, without one, of the
// signature, and is not found from another.
package s3

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"time"

	"bastide/internal/sim/clock"
	"bastide/internal/sim/fault"
	"bastide/internal/sim/hardware"
	"bastide/internal/sim/host"
)

// regions are those that have object storage.
var regions = []string{"fr-par", "nl-ams", "pl-waw", "it-mil"}

// Effect is one thing that a call did.
type Effect struct{ Verb, Kind, ID string }

// Watch is the region around the store: its fault script and its request log.
type Watch interface {
	Faults() *fault.Engine
	// Begin notes a call in the request log by its path /bucket/key, whichever
	// way the client wrote it, and its query without signatures. End is called
	// once.
	Begin(r *http.Request, path, query string) (end func(End))
}

// End is what became of a call.
type End struct {
	Status  int // 0 means that the connection was cut
	Effects []Effect
	Fault   *fault.HTTP
	Ruled   string // the rule that took a right from the caller's key
	// Killed says when the fault script ended the caller, "" where it did not.
	Killed Killed
}

// Killed is when a caller was killed: around the moment at which its call took
// effect.
type Killed string

// The moments.
const (
	KilledBefore Killed = "before"
	KilledAfter  Killed = "after"
)

// Options configures a store.
type Options struct {
	// Dir is where the content lives; it is made, and emptied first.
	Dir string
	// Region is taken where neither host name nor signature name one.
	Region string
	// Clock is the region's time: lifecycle days pass at its speed.
	Clock clock.Clock
	// Keys finds a key by its access key, without a project behind it.
	Keys func(accessKey string) (Key, bool)
	// Watch may be nil: no faults, no log.
	Watch Watch
	// Log hears of what goes wrong inside the store; nil is silent.
	Log *slog.Logger
	// Host is told of what goes wrong as well; nil tells nobody.
	Host *host.Host
}

// Server is the store. It is an http.Handler.
type Server struct {
	opts Options
	end  context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	buckets map[string]*bucket
	past    []moment
}

// New returns an empty store whose lifecycle rules run until Close.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Region == "" {
		o.Region = regions[0]
	}
	if o.Watch == nil {
		o.Watch = unwatched{fault.NewEngine(o.Clock)}
	}
	o.Dir = filepath.Join(o.Dir, "objects")
	if err := errors.Join(os.RemoveAll(o.Dir), os.MkdirAll(o.Dir, 0o700)); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	s := &Server{opts: o, end: end, buckets: map[string]*bucket{}}
	s.done.Go(func() { s.sweepForever(ctx) })
	return s, nil
}

// unwatched is a store outside a region.
type unwatched struct{ engine *fault.Engine }

func (u unwatched) Faults() *fault.Engine { return u.engine }

func (unwatched) Begin(*http.Request, string, string) func(End) { return func(End) {} }

// Close ends the lifecycle rules. What is on disk stays.
func (s *Server) Close() error {
	s.end()
	s.done.Wait()
	return nil
}

// Reset empties the store.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.buckets {
		for _, vs := range b.keys {
			for _, v := range vs {
				discard(v.content)
			}
		}
		for _, u := range b.uploads {
			discard(u.blobs())
		}
	}
	s.buckets, s.past = map[string]*bucket{}, nil
}

// Buckets lists all buckets by name.
func (s *Server) Buckets() []hardware.Bucket {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []hardware.Bucket{}
	for _, b := range s.buckets {
		out = append(out, b.summary())
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

func (b *bucket) summary() hardware.Bucket {
	v := hardware.Bucket{Name: b.name, Region: b.region, Project: b.owner, Versioning: b.versioning, ObjectLock: b.lock != nil, Uploads: len(b.uploads)}
	for _, t := range b.tags {
		v.Tags = append(v.Tags, t.Key+"="+t.Value)
	}
	for _, vs := range b.keys {
		v.Versions += len(vs)
		if !vs[0].marker {
			v.Objects++
		}
		for _, one := range vs {
			v.Bytes += one.size
		}
	}
	for _, u := range b.uploads {
		for _, p := range u.parts {
			v.Bytes += p.size
		}
	}
	return v
}

// Object is an object's content, read in order or from any place.
type Object interface {
	io.ReadCloser
	io.ReaderAt
}

// Open reads an object's current version from inside the region, as a block
// snapshot import does. The error is fs.ErrNotExist where there is none.
func (s *Server) Open(region, bucket, key string) (Object, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[bucket]
	if b == nil || b.region != region {
		return nil, 0, os.ErrNotExist
	}
	v := b.current(key)
	if v == nil || v.marker {
		return nil, 0, os.ErrNotExist
	}
	content, err := openBlobs(v.content, 0, v.size)
	if err != nil {
		return nil, 0, err
	}
	return content, v.size, nil
}

// moment is the store as it was until a time; kept while a fault asks for stale
// reads.
type moment struct {
	until   time.Time
	buckets map[string]*bucket
}

// Make puts a bucket there that a person made before.
func (s *Server) Make(name, region, owner string) error {
	if !validBucketName(name) {
		return errors.New(name + " cannot be the name of a bucket")
	}
	private, err := canned("", owner)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[name] = &bucket{name: name, region: region, owner: owner, created: now(), acl: private, keys: map[string][]*version{}, uploads: map[string]*upload{}}
	return nil
}
