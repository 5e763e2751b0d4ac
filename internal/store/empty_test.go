package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"bastide/internal/outcome"
	"bastide/internal/sim/api"
)

// full puts old versions, a delete marker and a half upload into a bucket.
func (p *place) full(b *Bucket) {
	p.Helper()
	c := b.objects.Client
	for range 3 {
		for _, key := range []string{"a", "folder/b"} {
			if _, err := b.put(p.Context(), key, []byte("x"), "text/plain"); err != nil {
				p.Fatal(err)
			}
		}
	}
	if err := c.RemoveObject(p.Context(), b.Name, "a", minio.RemoveObjectOptions{}); err != nil {
		p.Fatal(err)
	}
	for _, key := range []string{"half", "folder/half"} {
		if _, err := c.NewMultipartUpload(p.Context(), b.Name, key, minio.PutObjectOptions{}); err != nil {
			p.Fatal(err)
		}
	}
}

// Field report 47: a bucket is gone only when its old versions, delete markers
// and half uploads are, and the header for locked buckets is refused by others.
func TestFieldReport47AllVersionsGo(t *testing.T) {
	p := newPlace(t)
	s := p.store(Terms{})
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.full(s.Bucket)
	if got := p.keys(s.Bucket); len(got) != 7 || !slices.Contains(got, "a*") {
		t.Fatalf("%v", got)
	}
	if err := s.Empty(t.Context(), EmptyOptions{Bypass: true, Keep: func(key string) bool { return strings.HasPrefix(key, "folder/") }}); err != nil {
		t.Fatal(err)
	}
	uploads, err := s.uploads(t.Context(), nil)
	if got := p.keys(s.Bucket); err != nil || len(got) != 3 || slices.Contains(got, "a") || len(uploads) != 1 {
		t.Errorf("what was to be kept: %v, %v, %v", got, uploads, err)
	}
	if err := s.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if there, err := s.Exists(t.Context()); there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	for range 2 { // what is gone is gone
		if err := s.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	p.made(otherProject, nil, "") // the name is free again
}

// Field report 47: what object lock keeps stays, and the message says until when.
func TestFieldReport47ObjectLockIsRespected(t *testing.T) {
	until := time.Now().Add(24 * time.Hour).UTC()
	for name, c := range map[string]struct {
		mode   minio.RetentionMode
		hold   bool
		bypass bool
		says   []string // nil: it goes
	}{
		"compliance":          {minio.Compliance, false, true, []string{"object lock keeps", "COMPLIANCE", until.Format("2006-01-02"), "nobody can remove"}},
		"governance":          {minio.Governance, false, false, []string{"object lock keeps", "GOVERNANCE"}},
		"governance bypassed": {minio.Governance, false, true, nil},
		"legal hold":          {"", true, true, []string{"legal hold"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			b := NewBucket(p.objects(project), "locked")
			client := b.objects.Client
			if err := client.MakeBucket(t.Context(), b.Name, minio.MakeBucketOptions{Region: "fr-par", ObjectLocking: true}); err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"free", "kept"} {
				if _, err := b.put(t.Context(), key, []byte("x"), "text/plain"); err != nil {
					t.Fatal(err)
				}
			}
			if c.mode != "" {
				if err := client.PutObjectRetention(t.Context(), b.Name, "kept", minio.PutObjectRetentionOptions{Mode: &c.mode, RetainUntilDate: &until}); err != nil {
					t.Fatal(err)
				}
			}
			if c.hold {
				on := minio.LegalHoldEnabled
				if err := client.PutObjectLegalHold(t.Context(), b.Name, "kept", minio.PutObjectLegalHoldOptions{Status: &on}); err != nil {
					t.Fatal(err)
				}
			}
			err := b.Empty(t.Context(), EmptyOptions{Bypass: c.bypass})
			if c.says == nil {
				if got := p.keys(b); err != nil || len(got) != 0 {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			wantError(t, err, outcome.Failed, append(c.says, "the bucket locked was not emptied", "1 versions", "kept")...)
			if got := p.keys(b); !slices.Equal(got, []string{"kept"}) {
				t.Errorf("left: %v", got)
			}
		})
	}
}

// A listing that is cut or refused is never an empty bucket.
func TestAnUnreadableListingIsNotEmpty(t *testing.T) {
	t.Parallel() // it waits for patience to end
	p := newPlace(t)
	s := p.store(Terms{})
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.full(s.Bucket)
	for _, trouble := range []string{"status: 403", "status: 503", "truncate: 200", `status: 200, body: "<html></html>", headers: {Content-Type: text/html}`} {
		before := len(p.keys(s.Bucket))
		p.faults(`{http: [{method: GET, path: /bastide-staging, query: {versions: "*"}, ` + trouble + `}]}`)
		err := s.Remove(t.Context())
		wantError(t, err, outcome.Unknown, "was not emptied")
		p.faults(`{}`)
		if after := len(p.keys(s.Bucket)); after != before {
			t.Errorf("%s: %d of %d left", trouble, after, before)
		}
	}
}

// The bucket ends with the estate, its lock last, unless there is more in it.
func TestTheBucketEndsWithTheEstate(t *testing.T) {
	p := newPlace(t)
	s := p.store(Terms{})
	h := p.acquire(s)
	s.Journal(t.Context(), h, "bastide destroy envs/staging").Close(t.Context(), nil)
	if _, err := s.put(t.Context(), "etcd/2026-11-30", []byte("a backup"), "application/age"); err != nil {
		t.Fatal(err)
	}
	if kept, err := s.Retire(t.Context(), h, false); !kept || err != nil {
		t.Fatalf("%v, %v", kept, err)
	}
	if got := p.keys(s.Bucket); len(got) != 4 {
		t.Errorf("with a backup in it the bucket holds %v", got)
	}
	h.Release(t.Context())
	if kept, err := s.Retire(t.Context(), p.acquire(s), true); kept || err != nil {
		t.Fatalf("%v, %v", kept, err)
	}
	var log []api.Request
	p.page("GET", "/sim/requests", "", &log)
	var last []string
	for _, r := range log {
		if r.Mutating && r.Status < 300 {
			last = append(last, r.Method+" "+r.Path)
		}
	}
	if want := []string{"DELETE /bastide-staging/lock.json", "DELETE /bastide-staging"}; !slices.Equal(last[len(last)-2:], want) {
		t.Errorf("the last calls are %v, want %v", last[len(last)-4:], want)
	}
}

// Field report 47: the bucket with backups and their old versions is kept, and
// goes whole when its data is named.
func TestFieldReport47TheEstatesBucketIsKeptUnlessNamed(t *testing.T) {
	p := newPlace(t)
	s := p.store(Terms{})
	h := p.acquire(s)
	p.full(s.Bucket)
	before := p.keys(s.Bucket)
	if kept, err := s.Retire(t.Context(), h, false); !kept || err != nil {
		t.Fatalf("%v, %v", kept, err)
	}
	if after := p.keys(s.Bucket); !slices.Equal(after, before) {
		t.Errorf("kept %v of %v", after, before)
	}
	if kept, err := s.Retire(t.Context(), h, true); kept || err != nil {
		t.Fatalf("%v, %v", kept, err)
	}
	if there, err := s.Exists(t.Context()); there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	p.made(otherProject, nil, "") // the name is free again
}
