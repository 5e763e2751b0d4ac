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

	"github.com/minio/minio-go/v7"

	"bastide/internal/estate"
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

// Field report 10: what is not known about the replica, or wrong about it, ends up before its first
// write: 4 where it cannot be told, 3 where it is wrong.
func TestFieldReport10UpAsksTheReplicaFirst(t *testing.T) {
	s := newStage(t)
	const nobody = "http://127.0.0.1:1" // a port that nothing may take by chance
	const at = `path: "~^/small-copies"`
	for name, c := range map[string]struct {
		fault, variable, value string
		code                   outcome.Code
		says                   string
	}{
		"it may not be read":         {fault: `  - {method: GET, ` + at + `, status: 403}`, code: outcome.Unknown, says: "the API key SCWBASTIDEELSEWHERE0 of BASTIDE_REPLICA_ACCESS_KEY may not do this"},
		"it has no bucket":           {fault: `  - {method: GET, ` + at + `, status: 404, headers: {Content-Type: application/xml}, body: "<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>"}`, code: outcome.Refused, says: "there is no bucket for the replica small-copies"},
		"nobody is there":            {variable: scaleway.ReplicaEndpointVariable, value: nobody, code: outcome.Unknown, says: "cannot be reached"},
		"it is the estate's own":     {variable: scaleway.ReplicaEndpointVariable, value: s.region.Access.S3, code: outcome.Refused, says: "is the estate's own store"},
		"own, another spelling":      {variable: scaleway.ReplicaEndpointVariable, value: strings.Replace(s.region.Access.S3, "127.0.0.1", "LOCALHOST", 1) + "/", code: outcome.Refused, says: "is the estate's own store"},
		"the own one is the replica": {variable: "SCW_S3_ENDPOINT", value: s.region.Access.Elsewhere, code: outcome.Refused, says: "is the estate's own store"},
		"it is in the clear":         {variable: scaleway.ReplicaEndpointVariable, value: "http://s3.example.net", code: outcome.Refused, says: "is not encrypted"},
		"it has a key in it":         {variable: scaleway.ReplicaEndpointVariable, value: "https://a:" + s.region.Access.ElsewhereSecret + "@s3.example.net", code: outcome.Refused, says: "holds a user name or a key"},
		"no access key":              {variable: scaleway.ReplicaAccessKeyVariable, code: outcome.Refused, says: "BASTIDE_REPLICA_ACCESS_KEY and BASTIDE_REPLICA_SECRET_KEY are not both set"},
		"no secret key":              {variable: scaleway.ReplicaSecretKeyVariable, code: outcome.Refused, says: "are not both set"},
		"Scaleway's access key":      {variable: scaleway.ReplicaAccessKeyVariable, value: s.region.Access.AccessKey, code: outcome.Refused, says: "its key is the one of the estate's own store"},
		"Scaleway's secret key":      {variable: scaleway.ReplicaSecretKeyVariable, value: s.region.Access.SecretKey, code: outcome.Refused, says: "its key is the one of the estate's own store"},
		"another secret key":         {variable: scaleway.ReplicaSecretKeyVariable, value: "sesame", code: outcome.Unknown, says: "SignatureDoesNotMatch"},
		"an unknown access key":      {variable: scaleway.ReplicaAccessKeyVariable, value: "SCWXXXXXXXXXXXXXXXXX", code: outcome.Unknown, says: "InvalidAccessKeyId"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{t, s.Stage, s.region, s.estate}
			s.faults(c.fault + "\n" + stop)
			if c.variable != "" {
				t.Setenv(c.variable, c.value)
			}
			text := s.want(c.code, c.says, "up", s.Env, "--yes")
			if c.value == "sesame" && strings.Contains(text, c.value) {
				t.Error("the secret key is in the output")
			}
			if writes := s.writes(); len(writes) > 0 {
				t.Fatalf("%d calls that change something, the first is %s", len(writes), writes[0])
			}
		})
	}
}

// Once the lock is held, a copy that cannot be written ends up as a failure, and
// nothing is made at Scaleway. The next run continues.
func TestNothingIsMadeWithoutItsCopies(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct{ fault, says string }{
		{`  - {method: PUT, path: "~^/small-copies", status: 403}`, "the secrets bundle was not copied to the replica small-copies"},
		{`  - {method: PUT, path: "/*/secrets/**", status: 403}`, "the secrets bundle was not copied to the estate's bucket"},
	} {
		s.faults(c.fault + "\n" + stop)
		s.want(outcome.Failed, c.says, "up", s.Env, "--yes")
		if slices.ContainsFunc(s.writes(), func(w string) bool { return strings.Contains(w, " /") }) {
			t.Errorf("the API was written to: %v", s.writes())
		}
		s.faults("  []")
		s.want(outcome.Done, "", "destroy", s.Env, "--delete-data", "buckets,store", "--confirm", "small")
	}
	// Passing trouble is none: a lost answer and a cut one are tried again.
	s.faults(`  - {method: PUT, path: "~^/small-copies", nth: 1, applyThenDrop: true}
  - {method: PUT, path: "/*/secrets/**", nth: 1, status: 503}
  - {method: GET, path: "~^/small-copies", nth: 1, drop: true}
` + stop)
	s.want(outcome.Failed, "", "up", s.Env, "--yes")
	s.holds(s.bundle())
}

// doctor compares the copies with the file, byte for byte.
func TestDoctorComparesTheCopies(t *testing.T) {
	s := newStage(t)
	s.want(outcome.Failed, "has no copy of", "doctor", s.Env)
	s.faults(stop)
	s.want(outcome.Failed, "", "up", s.Env, "--yes")
	s.faults("  []")
	s.want(outcome.Done, "✓ bundle-copies", "doctor", s.Env)
	if err := os.Rename(filepath.Join(s.Env, vault.FileName), filepath.Join(s.Env, "away")); err != nil {
		t.Fatal(err)
	}
	s.want(outcome.Failed, "bastide secrets restore "+s.Env, "doctor", s.Env)
	s.want(outcome.Done, "", "secrets", "restore", s.Env)
	s.want(outcome.Done, "✓ bundle-copies", "doctor", s.Env)
	// An object of the same name and length with another content.
	replica, err := scaleway.NewReplicaStorage(scaleway.Options{Estate: s.estate})
	if err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Repeat([]byte("x"), len(s.bundle()))
	key := fmt.Sprintf("%s/secrets/000001-%s.age", s.estate.BucketName(), vault.Digest(s.bundle()))
	if _, err := replica.Client.Client.PutObject(t.Context(), "small-copies", key, bytes.NewReader(wrong), int64(len(wrong)), minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	s.want(outcome.Failed, "is damaged", "doctor", s.Env)
	s.want(outcome.Refused, "is damaged", "secrets", "restore", s.Env, "--from", "replica", "--replace")
	// Cut short, it is written again by the next up.
	if _, err := replica.Client.Client.PutObject(t.Context(), "small-copies", key, bytes.NewReader(wrong[:9]), 9, minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	s.want(outcome.Failed, "has no copy of", "doctor", s.Env)
	s.faults(stop)
	s.want(outcome.Failed, "was copied to the replica", "up", s.Env, "--yes")
	s.holds(s.bundle())
	s.faults(`  - {method: GET, path: "~^/small-copies", status: 403}`)
	s.want(outcome.Unknown, "? bundle-copies", "doctor", s.Env)
}

// A copy comes back from one place alone: with the account at Scaleway lost, its
// key included, from the replica.
func TestRestoreNeedsOnePlaceOnly(t *testing.T) {
	s := newStage(t)
	s.want(outcome.Refused, "there is no copy in", "secrets", "restore", s.Env)
	s.faults(stop)
	s.want(outcome.Failed, "", "up", s.Env, "--yes")
	bundle := s.bundle()
	lose := func() {
		if err := os.Remove(filepath.Join(s.Env, vault.FileName)); err != nil {
			t.Fatal(err)
		}
	}
	lose()
	s.faults(`  - {method: GET, path: "~^/small-copies", status: 403}`)
	s.want(outcome.Unknown, "or take the other copy with --from store", "secrets", "restore", s.Env)
	s.want(outcome.Done, "is the newest copy in the estate's bucket", "secrets", "restore", s.Env, "--from", "store")
	// A file that does not name the replica any more has the other one still.
	lose()
	file := filepath.Join(s.Env, estate.FileName)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte("\nstore:"), []byte("\n#store:"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	s.want(outcome.Refused, "the file names no store.replica", "secrets", "restore", s.Env, "--from", "replica")
	s.want(outcome.Done, "is the newest copy in the estate's bucket", "secrets", "restore", s.Env)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	lose()
	t.Setenv("SCW_ACCESS_KEY", "")
	t.Setenv("SCW_SECRET_KEY", "")
	t.Setenv("SCW_S3_ENDPOINT", "")
	s.faults("  []")
	s.want(outcome.Refused, "there is no API key", "secrets", "restore", s.Env)
	s.want(outcome.Done, "is the newest copy in the replica small-copies", "secrets", "restore", s.Env, "--from", "replica")
	if !bytes.Equal(s.bundle(), bundle) {
		t.Error("what came back is not what was kept")
	}
	s.want(outcome.Refused, "which is no place for copies", "secrets", "restore", s.Env, "--from", "elsewhere")
	if len(s.writes()) == 0 {
		t.Fatal("the log is empty")
	}
}

// destroy keeps the copies and names the replica, and does not ask it for anything;
// with the class named, both go, and a replica that does not answer is in the way
// before anything is touched.
func TestDestroyAndTheCopies(t *testing.T) {
	s := newStage(t)
	s.faults(stop)
	s.want(outcome.Failed, "", "up", s.Env, "--yes")
	asked := len(s.asked())
	s.faults(`  - {path: "~^/small-copies", status: 403}`)
	text := s.want(outcome.Done, "everything of small is gone but what was kept", "destroy", s.Env, "--yes")
	for _, part := range []string{"store " + s.estate.BucketName(), "--delete-data buckets,store deletes that too", "copies of its secrets bundle in the replica small-copies at 127.0.0.1:", "--delete-data store deletes them"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
	if now := s.asked(); len(now) > asked {
		t.Errorf("the replica was asked: %v", now[asked:])
	}
	before := len(s.writes())
	s.want(outcome.Unknown, "could not be read", "destroy", s.Env, "--delete-data", "store", "--confirm", "small")
	if wrote := s.writes()[before:]; len(wrote) > 0 {
		t.Errorf("wrote %v", wrote)
	}
	s.faults("  []")
	s.holds(s.bundle())
	s.want(outcome.Done, "nothing of small exists at Scaleway", "destroy", s.Env, "--delete-data", "buckets,store", "--confirm", "small")
	s.holds()
	s.want(outcome.Done, "nothing of small exists at Scaleway", "destroy", s.Env, "--delete-data", "buckets,store", "--confirm", "small")
}
