package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bastide/internal/outcome"
	"bastide/internal/scaleway"

	"github.com/minio/minio-go/v7"
)

const (
	imageKey = "images/talos-v1.13.5-bc9d9abefb95.qcow2"
	testHead = 196608
)

// disk is a file of three parts and a bit, the same each time.
func disk() []byte {
	data := make([]byte, 3*PartSize+12345)
	src := rand.NewChaCha8([32]byte{1})
	_, _ = src.Read(data)
	return data
}

// upload writes a file in the pieces in which a converter does.
func upload(ctx context.Context, s *Store, data []byte) (*Image, *Upload, error) {
	u, err := s.StartImage(ctx, imageKey, testHead)
	if err != nil {
		return nil, nil, err
	}
	for at := testHead; at < len(data); at += 1_000_003 {
		if _, err := u.Write(data[at:min(at+1_000_003, len(data))]); err != nil {
			return nil, u, errors.Join(err, u.Stop(ctx, true))
		}
	}
	if err := u.Head(data[:testHead]); err != nil {
		return nil, u, errors.Join(err, u.Stop(ctx, true))
	}
	i, err := u.Finish(ctx, Image{Talos: "v1.13.5", Schematic: "bc9d", Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data)), VirtualSize: 4 << 30})
	if err != nil {
		err = errors.Join(err, u.Stop(ctx, true))
	}
	return i, u, err
}

// wantWhole wants the file in the bucket, once, as it was sent, and no upload.
func (p *place) wantWhole(s *Store, data []byte) {
	p.Helper()
	found, unproven, err := s.Image(p.Context(), imageKey)
	if err != nil || found == nil {
		p.Fatalf("the image is not there: %v, %q, %v", found, unproven, err)
	}
	content, _, _, err := s.objects.Client.GetObject(p.Context(), s.Name, imageKey, minio.GetObjectOptions{})
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	var have bytes.Buffer
	if _, err := have.ReadFrom(content); err != nil || !bytes.Equal(have.Bytes(), data) {
		p.Fatalf("the file has %d bytes, %v, and is not what was sent", have.Len(), err)
	}
	left, err := s.uploadsOf(p.Context(), imageKey)
	if err != nil || len(left) > 0 {
		p.Errorf("%d uploads are left, %v", len(left), err)
	}
	for _, key := range []string{imageKey, proofOf(imageKey)} {
		if all, err := s.versions(p.Context(), key); err != nil || len(all) != 1 {
			p.Errorf("%d versions of %s, %v", len(all), key, err)
		}
	}
}

// patient is a store whose calls may take as long as a part does.
func (p *place) patient(decorators ...scaleway.Decorator) *Store {
	p.Helper()
	s := p.store(Terms{}, decorators...)
	s.objects = p.objectsWithin(time.Minute, time.Minute, project, decorators...) // parts of 8 MiB, and a race detector
	s.o.Settle = 50 * time.Millisecond
	if err := s.Ensure(p.Context()); err != nil {
		p.Fatal(err)
	}
	return s
}

func TestAnImageIsWrittenOnce(t *testing.T) {
	p := newPlace(t)
	s, data := p.patient(), disk()
	if _, unproven, err := s.Image(t.Context(), imageKey); err != nil || unproven != "" {
		t.Fatalf("before: %q, %v", unproven, err)
	}
	i, u, err := upload(t.Context(), s, data)
	if err != nil {
		t.Fatal(err)
	}
	if sent, reused := u.Sent(); sent != 4 || reused != 0 || i.Size != int64(len(data)) || !strings.HasSuffix(i.ETag, "-4") {
		t.Errorf("sent %d, reused %d, %+v", sent, reused, i)
	}
	p.wantWhole(s, data)
}

// killed ends a run at its nth call that changes something: before it is sent, or
// once it was carried out. Nothing gets out afterwards.
func killed(nth int64, after bool, die context.CancelFunc) scaleway.Decorator {
	var count atomic.Int64
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet || r.Method == http.MethodHead {
				return next.RoundTrip(r)
			}
			n := count.Add(1)
			if n == nth && after {
				res, err := next.RoundTrip(r)
				die()
				if err == nil {
					_ = res.Body.Close()
				}
				return nil, context.Canceled
			}
			if n >= nth {
				die()
				return nil, context.Canceled
			}
			return next.RoundTrip(r)
		})
	}
}

// A run that is killed at any call is finished by the next one, which sends only
// what is missing; whatever is left in between is never taken for the image.
func TestAnUploadIsFinishedAfterAKillAtEachCall(t *testing.T) {
	data := disk()
	p := newPlace(t)
	s := p.patient()
	for _, after := range []bool{false, true} {
		for nth := int64(1); ; nth++ {
			if err := s.RemoveImage(t.Context(), imageKey); err != nil {
				t.Fatal(err)
			}
			ctx, die := context.WithCancel(t.Context())
			dying := p.store(Terms{}, killed(nth, after, die))
			dying.o.Settle = 50 * time.Millisecond
			_, _, err := upload(ctx, dying, data)
			die()
			if err == nil {
				if nth < 7 {
					t.Errorf("an upload makes %d calls only", nth-1)
				}
				break
			}
			found, _, err := s.Image(t.Context(), imageKey)
			if err != nil {
				t.Fatalf("after a kill at call %d: %v", nth, err)
			}
			if found == nil {
				_, u, err := upload(t.Context(), s, data)
				if err != nil {
					t.Fatalf("after a kill at call %d (after it: %v): %v", nth, after, err)
				}
				if sent, reused := u.Sent(); sent+reused != 4 || nth > 6 && sent > 0 {
					t.Errorf("after a kill at call %d: %d parts sent, %d reused", nth, sent, reused)
				}
			}
			p.wantWhole(s, data)
		}
	}
}

// Each call fails once in each way; the same run gets through, or the next.
func TestAnUploadSurvivesTroubleWithEachCall(t *testing.T) {
	data := disk()
	for name, fault := range map[string]string{
		"lost answers":  `{http: [{method: mutating, path: "/bastide-staging/images/**", per: request, nth: 1, applyThenDrop: true}]}`,
		"lost calls":    `{http: [{method: mutating, path: "/bastide-staging/images/**", per: request, nth: 1, drop: true}]}`,
		"server errors": `{http: [{method: mutating, path: "/bastide-staging/images/**", per: request, nth: 1, status: 503}]}`,
		"cut at 60 %":   `{http: [{method: PUT, path: "/bastide-staging/images/*.qcow2", per: request, nth: 1, cutAfter: 5033164}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			s := p.patient()
			p.faults(fault)
			_, _, err := upload(t.Context(), s, data)
			p.faults(`{}`)
			if err != nil {
				t.Logf("the first run ended with %v", err)
				if found, _, looked := s.Image(t.Context(), imageKey); looked != nil || found != nil {
					t.Fatalf("it failed and is there: %v, %v", found, looked)
				}
				if _, _, err := upload(t.Context(), s, data); err != nil {
					t.Fatal(err)
				}
			}
			p.wantWhole(s, data)
		})
	}
}

// A store that cuts every connection at 60 % of what is sent ends in an error,
// and in no object at all.
func TestAStoreThatAlwaysCutsLeavesNothingThatLooksWhole(t *testing.T) {
	p := newPlace(t)
	s, data := p.patient(), disk()
	s.objects = p.objectsWithin(time.Minute, time.Second, project)
	p.faults(`{http: [{method: PUT, path: "/bastide-staging/images/*.qcow2", cutAfter: 5033164}]}`)
	_, _, err := upload(t.Context(), s, data)
	wantError(t, err, outcome.Failed, "was not written", "run the command again")
	if found, unproven, err := s.Image(t.Context(), imageKey); err != nil || found != nil || unproven != "" {
		t.Errorf("%v, %q, %v", found, unproven, err)
	}
	p.faults(`{}`)
	if _, _, err := upload(t.Context(), s, data); err != nil {
		t.Fatal(err)
	}
	p.wantWhole(s, data)
}

// What somebody else put in the image's place, or half of it, is not the image.
func TestAnObjectWithoutItsProofIsNoImage(t *testing.T) {
	p := newPlace(t)
	s, data := p.patient(), disk()
	if _, _, err := upload(t.Context(), s, data); err != nil {
		t.Fatal(err)
	}
	if _, err := s.put(t.Context(), imageKey, data[:1000], "application/octet-stream"); err != nil {
		t.Fatal(err)
	}
	found, unproven, err := s.Image(t.Context(), imageKey)
	if err != nil || found != nil || !strings.Contains(unproven, "1000 bytes") {
		t.Errorf("%v, %q, %v", found, unproven, err)
	}
	if err := s.eraseAll(t.Context(), proofOf(imageKey), ""); err != nil {
		t.Fatal(err)
	}
	if found, _, err := s.Image(t.Context(), imageKey); err != nil || found != nil {
		t.Errorf("without a proof: %v, %v", found, err)
	}
	if _, _, err := upload(t.Context(), s, data); err != nil {
		t.Fatal(err)
	}
	p.wantWhole(s, data)
	kept, err := s.Retire(t.Context(), p.acquire(s), false)
	if kept || err != nil {
		t.Errorf("images are no data, and the bucket stays: %v, %v", kept, err)
	}
}

// Two uploads that runs before left become one.
func TestOneUploadIsLeft(t *testing.T) {
	p := newPlace(t)
	s, data := p.patient(), disk()
	for range 3 {
		if _, err := s.objects.Client.NewMultipartUpload(t.Context(), s.Name, imageKey, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.StartImage(t.Context(), imageKey, testHead); err != nil {
		t.Fatal(err)
	}
	if left, err := s.uploadsOf(t.Context(), imageKey); err != nil || len(left) != 1 {
		t.Errorf("%d uploads, %v", len(left), err)
	}
	if _, _, err := upload(t.Context(), s, data); err != nil {
		t.Fatal(err)
	}
	p.wantWhole(s, data)
}

// Field report 59: stores that do not know x-amz-checksum-* and trailing
// checksums answer 400. Images are written and read back without any; each part
// is checked by its MD5 and the file by the ETag that follows from them.
func TestFieldReport59ImagesOverStoresWithoutChecksums(t *testing.T) {
	p := newPlace(t)
	p.faults(`{store: {rejectChecksumHeaders: true}}`)
	s, data := p.patient(), disk()
	if _, _, err := upload(t.Context(), s, data); err != nil {
		t.Fatal(err)
	}
	p.wantWhole(s, data)
	if err := s.RemoveImage(t.Context(), imageKey); err != nil {
		t.Fatal(err)
	}
	if left := p.keys(s.Bucket); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// An image that cannot be read is unknown, never absent: taken for absent, it
// would be made and uploaded again.
func TestAnImageThatCannotBeReadIsNotAbsent(t *testing.T) {
	t.Parallel() // it waits for patience to end
	p := newPlace(t)
	s, data := p.patient(), disk()
	if _, _, err := upload(t.Context(), s, data); err != nil {
		t.Fatal(err)
	}
	s = New(Options{Objects: p.objectsWithin(time.Minute, 200*time.Millisecond, project), Bucket: s.Name, Estate: "staging", Notice: p.notice, Seal: s.o.Seal})
	const proof, file = "/bastide-staging/images/*.json", "/bastide-staging/images/*.qcow2"
	for name, rule := range map[string]string{
		"proof denied":    `method: GET, path: "` + proof + `", status: 403`,
		"proof fails":     `method: GET, path: "` + proof + `", status: 500`,
		"proof cut":       `method: GET, path: "` + proof + `", truncate: 10`,
		"a page":          `method: GET, path: "` + proof + `", status: 404, body: "<html>not here</html>", headers: {Content-Type: text/html}`,
		"another content": `method: GET, path: "` + proof + `", status: 200, body: "{}", headers: {ETag: '"x"'}`,
		"file denied":     `method: HEAD, path: "` + file + `", status: 403`,
		"file fails":      `method: HEAD, path: "` + file + `", status: 500`,
		"listing denied":  `method: GET, path: "/bastide-staging", query: {tagging: "*"}, status: 500`,
	} {
		p.faults(`{http: [{` + rule + `}]}`)
		found, _, err := s.Image(t.Context(), imageKey)
		if found != nil || outcome.CodeOf(err) != outcome.Unknown {
			t.Errorf("%s: %v, %v", name, found, err)
		}
		if !p.struck() {
			t.Errorf("%s never happened", name)
		}
	}
	p.faults(`{}`)
	if found, _, err := s.Image(t.Context(), imageKey); found == nil || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}

// A proof that somebody broke proves nothing, and is no reason to stop: the image
// is made anew.
func TestABrokenProofIsNoProof(t *testing.T) {
	for name, text := range map[string]string{"another text": "{}", "no JSON": "<html>", "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			s, data := p.patient(), disk()
			if _, _, err := upload(t.Context(), s, data); err != nil {
				t.Fatal(err)
			}
			if _, err := s.objects.Client.PutObject(t.Context(), s.Name, proofOf(imageKey), strings.NewReader(text), int64(len(text)), "", "", minio.PutObjectOptions{}); err != nil {
				t.Fatal(err)
			}
			found, unproven, err := s.Image(t.Context(), imageKey)
			if err != nil || found != nil || !strings.Contains(unproven, "no proof") {
				t.Errorf("%v, %q, %v", found, unproven, err)
			}
			if _, _, err := upload(t.Context(), s, data); err != nil {
				t.Fatal(err)
			}
			p.wantWhole(s, data)
		})
	}
}
