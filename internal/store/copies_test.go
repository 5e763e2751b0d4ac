package store

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/scaleway"
	"bastide/internal/vault"
)

// shelves are the estate's bucket, made, and a replica in the store elsewhere.
func (p *place) shelves() (own, replica *Shelf) {
	p.Helper()
	return p.shelvesWithin(30 * time.Second)
}

// shelvesWithin gives a call to the replica so long, its repetitions included.
func (p *place) shelvesWithin(patience time.Duration) (own, replica *Shelf) {
	p.Helper()
	s := p.store(Terms{})
	if err := s.Ensure(p.Context()); err != nil {
		p.Fatal(err)
	}
	env := map[string]string{}
	for _, kv := range p.region.Access.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	objects, err := scaleway.NewReplicaStorage(scaleway.Options{
		Estate: &estate.Estate{Name: "staging", Scaleway: estate.Scaleway{Project: project, Region: "fr-par", Zones: []string{"fr-par-1"}},
			Store: estate.Store{Replica: &estate.Replica{Endpoint: "https://s3.example.net", Region: "eu-west-1", Bucket: "staging-copies"}}},
		LookupEnv: func(n string) (string, bool) { v, ok := env[n]; return v, ok }, Notice: p.notice,
		Retry: scaleway.Retry{Attempt: patience, Base: time.Millisecond, Cap: 20 * time.Millisecond, Budget: patience, Quiet: time.Millisecond},
	})
	if err != nil {
		p.Fatal(err)
	}
	return s.Copies(), Replica(objects, "staging-copies", s.Name, "elsewhere")
}

// Two stores, bundle after bundle: each is kept beside the ones before, what is
// kept is known again, and an older one is seen to be older.
func TestCopiesInTwoStores(t *testing.T) {
	p := newPlace(t)
	own, replica := p.shelves()
	bundles := [][]byte{[]byte("one"), []byte("two"), []byte("three")}
	for _, shelf := range []*Shelf{own, replica} {
		for i, b := range bundles {
			copies, err := shelf.List(t.Context())
			if err != nil || len(copies) != i {
				t.Fatalf("%s: %+v, %v", shelf.Title, copies, err)
			}
			standing, number := Stand(copies, b)
			if standing != Lacking || number != i+1 {
				t.Errorf("%s, bundle %d: standing %d, number %d", shelf.Title, i, standing, number)
			}
			for range 2 { // a second time is the same as once
				if err := shelf.Keep(t.Context(), number, b); err != nil {
					t.Fatal(err)
				}
			}
		}
		copies, err := shelf.List(t.Context())
		if err != nil || len(copies) != len(bundles) {
			t.Fatalf("%s: %+v, %v", shelf.Title, copies, err)
		}
		for i, b := range bundles {
			want := Behind
			if i == len(bundles)-1 {
				want = Kept
			}
			if standing, number := Stand(copies, b); standing != want || number != len(bundles) {
				t.Errorf("%s, bundle %d: standing %d, number %d", shelf.Title, i, standing, number)
			}
			if have, err := shelf.Fetch(t.Context(), copies[i]); err != nil || !bytes.Equal(have, b) || copies[i].Digest != vault.Digest(b) {
				t.Errorf("%s, bundle %d: %q, %v", shelf.Title, i, have, err)
			}
		}
	}
	// What others keep beside is not a copy and is not removed.
	if _, err := replica.put(t.Context(), "bastide-staging/secrets/notes.txt", []byte("x"), "text/plain"); err != nil {
		t.Fatal(err)
	}
	if _, err := replica.put(t.Context(), "bastide-production/secrets/"+strings.TrimPrefix(mustList(t, replica)[0].Key, "bastide-staging/secrets/"), []byte("one"), "application/age"); err != nil {
		t.Fatal(err)
	}
	if err := replica.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := p.keys(replica.Bucket); len(left) != 2 || !slices.Contains(left, "bastide-staging/secrets/notes.txt") || len(mustList(t, replica)) != 0 {
		t.Errorf("left: %v", left)
	}
}

func mustList(t *testing.T, s *Shelf) []Copy {
	t.Helper()
	copies, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return copies
}

// Whatever is wrong with the replica, reading it is unknown or refused, never "no
// copies"; a write that failed is a failure. Passing trouble is waited out, and the
// person hears of whom it is.
func TestTroubleOfTheReplica(t *testing.T) {
	t.Parallel() // it waits for patience to end
	p := newPlace(t)
	own, replica := p.shelves()
	_, hasty := p.shelvesWithin(500 * time.Millisecond)
	if err := replica.Keep(t.Context(), 1, []byte("one")); err != nil {
		t.Fatal(err)
	}
	const at = `path: "~^/staging-copies"`
	const xml = `headers: {Content-Type: application/xml}, body: `
	for name, c := range map[string]struct {
		fault string
		code  outcome.Code
	}{
		"403":             {`status: 403`, outcome.Unknown},
		"500":             {`status: 500`, outcome.Unknown},
		"503":             {`status: 503`, outcome.Unknown},
		"429":             {`status: 429`, outcome.Unknown},
		"hang":            {`hang: true`, outcome.Unknown},
		"cut":             {`drop: true`, outcome.Unknown},
		"cut short":       {`truncate: 60`, outcome.Unknown},
		"HTML":            {`status: 200, headers: {Content-Type: text/html}, body: "<html>sign in</html>"`, outcome.Unknown},
		"HTML, not found": {`status: 404, headers: {Content-Type: text/html}, body: "<html>not found</html>"`, outcome.Unknown},
		"nothing":         {`status: 200, headers: {Content-Type: application/xml}, body: ""`, outcome.Unknown},
		"a strange 404":   {`status: 404, ` + xml + `"<Error><Code>NoSuchKey</Code></Error>"`, outcome.Unknown},
		"no bucket":       {`status: 404, ` + xml + `"<Error><Code>NoSuchBucket</Code></Error>"`, outcome.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			p := &place{T: t, region: p.region}
			p.faults("http:\n  - {method: GET, " + at + ", " + c.fault + "}\n")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			copies, err := hasty.List(ctx)
			wantError(t, err, c.code, "replica")
			if copies != nil || !p.struck() {
				t.Errorf("copies %+v, the fault acted: %v", copies, p.struck())
			}
			p.faults("http:\n  - {method: PUT, " + at + ", " + c.fault + "}\n")
			if err := hasty.Keep(ctx, 2, []byte("two")); c.fault != `truncate: 60` { // of an answer that is empty there is nothing to cut
				wantError(t, err, outcome.Failed, "the secrets bundle was not copied to the replica")
			}
		})
	}
	p.faults("http:\n  - {method: GET, " + at + ", count: 2, from: 1, status: 503}\n")
	if copies := mustList(t, replica); len(copies) == 0 || copies[0].Digest != vault.Digest([]byte("one")) {
		t.Errorf("after passing trouble: %+v", copies)
	}
	if !strings.Contains(p.heard(), "the replica's store 127.0.0.1:") {
		t.Errorf("whose trouble it was is not said: %s", p.heard())
	}
	p.faults("http: []\n")
	if copies := mustList(t, own); len(copies) != 0 {
		t.Errorf("the estate's bucket has %+v", copies)
	}
}

// A copy whose content is not what its name says is damaged, and no error of the
// network; one of another length is not taken for a copy.
func TestDamagedCopies(t *testing.T) {
	p := newPlace(t)
	_, replica := p.shelves()
	if err := replica.Keep(t.Context(), 1, []byte("one")); err != nil {
		t.Fatal(err)
	}
	c := mustList(t, replica)[0]
	if _, err := replica.put(t.Context(), c.Key, []byte("two"), "application/age"); err != nil {
		t.Fatal(err)
	}
	var damaged *DamagedError
	if _, err := replica.Fetch(t.Context(), mustList(t, replica)[0]); !errors.As(err, &damaged) {
		t.Errorf("%v", err)
	}
	if _, err := replica.put(t.Context(), c.Key, []byte("o"), "application/age"); err != nil {
		t.Fatal(err)
	}
	if standing, number := Stand(mustList(t, replica), []byte("one")); standing != Lacking || number != 1 {
		t.Errorf("standing %d, number %d", standing, number)
	}
}
