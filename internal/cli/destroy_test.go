package cli_test

import (
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"bastide/internal/outcome"
	"bastide/internal/scaleway"
	"bastide/internal/sim"
)

// furnish gives the estate a secret container, a volume of its storage driver and
// a bucket with a backup.
func (s *stage) furnish() {
	s.Helper()
	client, err := scw.NewClient(scw.WithAPIURL(s.region.Access.URL), scw.WithAuth(sim.AccessKey, s.region.Access.SecretKey), scw.WithDefaultProjectID(s.estate.Scaleway.Project),
		scw.WithDefaultRegion("fr-par"), scw.WithDefaultZone("fr-par-1"))
	if err != nil {
		s.Fatal(err)
	}
	mark := "bastide:estate=" + s.estate.Name
	if _, err := secret.NewAPI(client).CreateSecret(&secret.CreateSecretRequest{Name: "session-key", Type: "opaque", Path: scw.StringPtr("/app"), Tags: []string{mark, "bastide:step=secret/app/session-key"}}); err != nil {
		s.Fatal(err)
	}
	if _, err := block.NewAPI(client).CreateVolume(&block.CreateVolumeRequest{Name: "pvc-0a1b2c3d-1111-4222-8333-444455556666", FromEmpty: &block.CreateVolumeRequestFromEmpty{Size: 10e9}, PerfIops: scw.Uint32Ptr(5000),
		Tags: []string{mark, "bastide:made-by=storage-driver"}}); err != nil {
		s.Fatal(err)
	}
	s.hold().Release(s.Context())
	objects, _, err := scaleway.NewObjectStorage(scaleway.Options{Estate: s.estate})
	if err != nil {
		s.Fatal(err)
	}
	if _, err := objects.Client.Client.PutObject(s.Context(), s.estate.BucketName(), "etcd/1", strings.NewReader("a backup"), 8, minio.PutObjectOptions{}); err != nil {
		s.Fatal(err)
	}
}

// What holds data is kept class by class, the estate's own bucket among it, until
// its class is named together with the estate's name; each run ends well and says
// exactly what is left.
func TestDestroyKeepsDataUnlessNamed(t *testing.T) {
	s := newStage(t)
	s.furnish()
	for _, c := range []struct {
		args      []string
		code      outcome.Code
		kept, not []string
	}{
		{[]string{"--yes"}, outcome.Done, []string{"secret app/session-key", "cluster-volume pvc-0a1b2c3d", "store " + s.estate.BucketName(), "--delete-data secrets,volumes,store deletes that too"}, nil},
		{[]string{"--yes"}, outcome.Done, []string{"secret app/session-key", "cluster-volume pvc-0a1b2c3d", "store " + s.estate.BucketName()}, nil},
		{[]string{"--delete-data", "store", "--yes"}, outcome.Refused, []string{"no terminal to type it on"}, nil},
		{[]string{"--delete-data", "secrets,store", "--confirm", "another"}, outcome.Refused, []string{"--confirm says another, the estate is " + s.estate.Name}, nil},
		{[]string{"--delete-data", "store", "--confirm", s.estate.Name}, outcome.Done, []string{"secret app/session-key", "cluster-volume pvc-0a1b2c3d", "--delete-data secrets,volumes deletes that too"}, []string{"store "}},
		{[]string{"--delete-data", "secrets", "--delete-data", "volumes", "--confirm", s.estate.Name}, outcome.Done, []string{"nothing of " + s.estate.Name + " exists at Scaleway"}, nil},
		{[]string{"--yes"}, outcome.Done, []string{"nothing of " + s.estate.Name + " exists at Scaleway"}, nil},
	} {
		code, text := s.run(append([]string{"destroy", s.Env}, c.args...)...)
		_, verdict, _ := strings.Cut(text, "verdict: ")
		if code == outcome.Refused {
			verdict = text
		}
		for _, part := range c.kept {
			if code != c.code || !strings.Contains(verdict, part) {
				t.Fatalf("%v: exit code %d, want %d, and %q in:\n%s", c.args, code, c.code, part, text)
			}
		}
		for _, part := range c.not {
			if strings.Contains(verdict, part) {
				t.Fatalf("%v: %q in:\n%s", c.args, part, text)
			}
		}
	}
}
