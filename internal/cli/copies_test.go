package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bastide/internal/outcome"
	"bastide/internal/scaleway"
	"bastide/internal/sim/api"
	"bastide/internal/store"
	"bastide/internal/vault"
)

// stop lets up end at its first change at Scaleway, which is after the copies.
const stop = `  - {method: mutating, path: "/*/v*/**", status: 403, body: {type: permissions_denied, message: no, details: [{resource: vpc, action: write}]}}
`

func (s *stage) faults(rules string) {
	s.Helper()
	resp, err := http.Post(s.region.Access.URL+"/sim/faults", "application/yaml", strings.NewReader("http:\n"+rules))
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		s.Fatalf("the fault script was not taken: %d", resp.StatusCode)
	}
}

// want runs a command and wants its exit code and parts of what it says. No output
// ever holds the replica's secret key.
func (s *stage) want(code outcome.Code, says string, args ...string) string {
	s.Helper()
	have, text := s.run(args...)
	if have != code || !strings.Contains(text, says) {
		s.Errorf("bastide %s: exit code %d, want %d and %q in:\n%s", strings.Join(args, " "), have, code, says, text)
	}
	if strings.Contains(text, s.region.Access.ElsewhereSecret) {
		s.Errorf("bastide %s says the replica's secret key", args[0])
	}
	return text
}

// asked are the calls to the store elsewhere.
func (s *stage) asked() (out []string) {
	s.Helper()
	resp, err := http.Get(s.region.Access.URL + "/sim/requests")
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var log []api.Request
	if err := json.NewDecoder(resp.Body).Decode(&log); err != nil {
		s.Fatal(err)
	}
	for _, r := range log {
		if r.Host == "elsewhere" {
			out = append(out, r.Method+" "+r.Path)
		}
	}
	return out
}

func (s *stage) bundle() []byte {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.Env, vault.FileName))
	if err != nil {
		s.Fatal(err)
	}
	return text
}

func (s *stage) setBundle(text []byte) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.Env, vault.FileName), text, 0o600); err != nil {
		s.Fatal(err)
	}
}

// shelves are the two places for copies, as another client sees them.
func (s *stage) shelves() []*store.Shelf {
	s.Helper()
	own, _, err := scaleway.NewObjectStorage(scaleway.Options{Estate: s.estate})
	if err != nil {
		s.Fatal(err)
	}
	other, err := scaleway.NewReplicaStorage(scaleway.Options{Estate: s.estate})
	if err != nil {
		s.Fatal(err)
	}
	return []*store.Shelf{store.New(store.Options{Objects: own, Bucket: s.estate.BucketName(), Estate: s.estate.Name}).Copies(),
		store.Replica(other, "small-copies", s.estate.BucketName(), "elsewhere")}
}

// holds wants both places to have these bundles, in this order.
func (s *stage) holds(bundles ...[]byte) {
	s.Helper()
	for _, shelf := range s.shelves() {
		copies, err := shelf.List(s.Context())
		if err != nil || len(copies) != len(bundles) {
			s.Fatalf("%s has %+v, %v; want %d copies", shelf.Title, copies, err, len(bundles))
		}
		for i, c := range copies {
			if have, err := shelf.Fetch(s.Context(), c); err != nil || !bytes.Equal(have, bundles[i]) || c.Number != i+1 {
				s.Errorf("%s, copy %d: number %d, %v, %d bytes", shelf.Title, i+1, c.Number, err, len(have))
			}
		}
	}
}

// The bundle is in both stores before anything is made that nobody could manage
// without it; a second run has nothing to copy, and a plan asks neither store.
func TestTheBundleIsCopiedBeforeAnythingIsMade(t *testing.T) {
	s := newStage(t)
	s.want(outcome.Done, "", "plan", s.Env)
	if asked := s.asked(); len(asked) > 0 {
		t.Errorf("a plan asked the replica: %v", asked)
	}
	s.want(outcome.Refused, "--yes", "up", s.Env) // nobody to confirm
	if writes := s.writes(); len(writes) > 0 {
		t.Errorf("an up that was not confirmed wrote %v", writes)
	}
	s.faults(stop)
	s.want(outcome.Failed, "the secrets bundle was copied to the replica small-copies at 127.0.0.1", "up", s.Env, "--yes")
	s.holds(s.bundle())
	writes := s.writes()
	first := slices.IndexFunc(writes, func(w string) bool { return strings.Contains(w, " /") })
	bucket := s.estate.BucketName()
	name := fmt.Sprintf("%s/secrets/000001-%s.age", bucket, vault.Digest(s.bundle()))
	for _, w := range []string{"PUT s3/" + name, "PUT elsewhere/small-copies/" + name} {
		if at := slices.Index(writes, w); first < 0 || at < 0 || at > first {
			t.Errorf("%s is call %d, the first to the API is call %d of\n%s", w, at, first, strings.Join(writes, "\n"))
		}
	}
	before := len(s.asked())
	s.want(outcome.Failed, "", "up", s.Env, "--yes")
	for _, w := range s.writes()[len(writes):] {
		if strings.Contains(w, "/secrets/") {
			t.Errorf("copied again: %s", w)
		}
	}
	// Once before anybody is asked, once under the lock.
	if asked := s.asked()[before:]; len(asked) != 2 {
		t.Errorf("the second up asked the replica %v", asked)
	}
}

// A changed bundle becomes another copy. An older one is refused before anything is
// written, and the newer one can be brought back; neither is ever written over.
func TestAnOlderBundleIsRefused(t *testing.T) {
	s := newStage(t)
	s.faults(stop)
	one := s.bundle()
	s.want(outcome.Failed, "", "up", s.Env, "--yes")
	other := append(bytes.Clone(one), '\n') // age takes it; its digest is another
	s.setBundle(other)
	s.want(outcome.Failed, "as number 2", "up", s.Env, "--yes")
	s.holds(one, other)

	s.setBundle(one)
	before := len(s.writes())
	s.want(outcome.Refused, "is older than its newest copy", "up", s.Env, "--yes")
	if wrote := s.writes()[before:]; len(wrote) > 0 {
		t.Errorf("wrote %v", wrote)
	}
	s.want(outcome.Failed, "is older than the copy number 2", "doctor", s.Env)
	s.want(outcome.Refused, "--replace", "secrets", "restore", s.Env)
	if !bytes.Equal(s.bundle(), one) {
		t.Error("a refused restore changed the bundle")
	}
	s.want(outcome.Done, "the bundle that was there before is now", "secrets", "restore", s.Env, "--replace")
	if !bytes.Equal(s.bundle(), other) {
		t.Error("the newest copy was not restored")
	}
	if aside, err := filepath.Glob(filepath.Join(s.Env, vault.FileName+".before-*")); err != nil || len(aside) != 1 {
		t.Errorf("moved aside: %v, %v", aside, err)
	}
	s.want(outcome.Failed, "", "up", s.Env, "--yes")
	s.holds(one, other)
}
