package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/scaleway"
	"bastide/internal/vault"
)

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
		"it is in the region":        {variable: scaleway.ReplicaEndpointVariable, value: "https://copies.S3.fr-par.scw.cloud", code: outcome.Refused, says: "is object storage of fr-par at Scaleway"},
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
