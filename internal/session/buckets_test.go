package session_test

import (
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/tags"

	"bastide/internal/run"
	"bastide/internal/session"
	"bastide/internal/sim"
)

// Field report 47: a bucket that keeps versions is left by a teardown, which says
// so; with its class named, old versions, delete markers and half uploads go, and
// then the bucket.
func TestFieldReport47ApplicationBuckets(t *testing.T) {
	p := newPlace(t)
	r, err := sim.Start(sim.Options{Listen: "127.0.0.1:0", Dir: t.TempDir(), Speed: 1000, Access: sim.Access{
		AccessKey: sim.AccessKey, SecretKey: secret, Project: project, Region: "fr-par", Zone: "fr-par-1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, kv := range r.Access.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		p.vars[k] = v
	}
	m, err := minio.NewCore(strings.TrimPrefix(r.Access.S3, "http://"), &minio.Options{Region: "fr-par", BucketLookup: minio.BucketLookupPath,
		Creds: credentials.NewStaticV4(sim.AccessKey+"@"+project, secret, "")})
	if err != nil {
		t.Fatal(err)
	}
	const bucket = "staging-app"
	marks, err := tags.NewTags(map[string]string{"bastide:estate": "staging", "bastide:step": "bucket/" + bucket}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{m.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{}), m.SetBucketTagging(t.Context(), bucket, marks), m.EnableVersioning(t.Context(), bucket)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"one", "two"} {
		if _, err := m.Client.PutObject(t.Context(), bucket, "x", strings.NewReader(text), int64(len(text)), minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.RemoveObject(t.Context(), bucket, "x", minio.RemoveObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.NewMultipartUpload(t.Context(), bucket, "y", minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}

	there := func() bool {
		t.Helper()
		exists, err := m.BucketExists(t.Context(), bucket)
		if err != nil {
			t.Fatal(err)
		}
		return exists
	}
	raze(t, p, func(d session.Demolition) {
		if len(d.Kept) != 1 || d.Kept[0].Item.Name != bucket || d.Kept[0].Class != "buckets" {
			t.Errorf("kept %+v", d.Kept)
		}
	})
	if !there() {
		t.Fatal("the bucket went although nobody named it")
	}
	raze(t, p, func(d session.Demolition) {
		if len(d.Kept) != 0 {
			t.Errorf("kept %+v", d.Kept)
		}
	}, "buckets")
	if there() {
		t.Error("the bucket is left")
	}
}

// raze takes the estate down under its lock.
func raze(t *testing.T, p *place, look func(session.Demolition), data ...string) {
	t.Helper()
	s := p.open()
	if _, err := s.Teardown(t.Context(), data); err != nil {
		t.Fatal(err)
	}
	ctx, h, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Teardown(ctx, data)
	if err != nil {
		t.Fatal(err)
	}
	look(d)
	left, err := s.Destroy(ctx, &d, func(run.Event) {})
	h.Release(t.Context(), err)
	if err != nil || len(left) > 0 {
		t.Fatalf("%v, left %+v", err, left)
	}
}
