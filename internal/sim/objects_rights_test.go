package sim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/tags"

	"bastide/internal/sim"
	"bastide/internal/sim/api"
)

// deed is one thing that a client does to the store.
type deed struct {
	name string
	do   func(c *minio.Core, bucket string) error
}

// deeds tries each right that IAM knows about object storage, and those whose
// right is not what their name says: whoever ends an upload creates, whoever
// gives one up deletes, and a copy is read as well as written.
func deeds(t *testing.T) []deed {
	ctx := t.Context()
	mark, err := tags.NewTags(map[string]string{"a": "b"}, false)
	if err != nil {
		t.Fatal(err)
	}
	drain := func(c *minio.Core, bucket string) error {
		for v := range c.Client.ListObjects(ctx, bucket, minio.ListObjectsOptions{MaxKeys: 1}) {
			return v.Err
		}
		return nil
	}
	get := func(c *minio.Core, bucket string) error {
		r, _, _, err := c.GetObject(ctx, bucket, "kept", minio.GetObjectOptions{})
		if err == nil {
			err = r.Close()
		}
		return err
	}
	return []deed{
		{"buckets", func(c *minio.Core, _ string) error { _, err := c.ListBuckets(ctx); return err }},
		{"settings", func(c *minio.Core, b string) error { _, err := c.GetBucketVersioning(ctx, b); return err }},
		{"bucket+", func(c *minio.Core, b string) error { return c.MakeBucket(ctx, b+"-new", minio.MakeBucketOptions{}) }},
		{"settings+", func(c *minio.Core, b string) error { return c.SetBucketTagging(ctx, b, mark) }},
		{"bucket-", func(c *minio.Core, b string) error { return c.RemoveBucket(ctx, b+"-gone") }},
		{"policy", func(c *minio.Core, b string) error { _, err := c.Client.GetBucketPolicy(ctx, b); return err }},
		{"policy+", func(c *minio.Core, b string) error { return c.Client.SetBucketPolicy(ctx, b, "") }},
		{"objects", drain},
		{"object", get},
		{"object+", func(c *minio.Core, b string) error {
			_, err := c.Client.PutObject(ctx, b, "new", strings.NewReader("x"), 1, minio.PutObjectOptions{})
			return err
		}},
		{"copy", func(c *minio.Core, b string) error {
			_, err := c.Client.CopyObject(ctx, minio.CopyDestOptions{Bucket: b, Object: "copy"}, minio.CopySrcOptions{Bucket: b, Object: "kept"})
			return err
		}},
		{"upload+", func(c *minio.Core, b string) error {
			_, err := c.NewMultipartUpload(ctx, b, "big", minio.PutObjectOptions{})
			return err
		}},
		{"object-", func(c *minio.Core, b string) error {
			return c.Client.RemoveObject(ctx, b, "old", minio.RemoveObjectOptions{})
		}},
	}
}

// mayDo are the deeds that a key may do. What is refused is refused in the
// store's own words: 403 with an error in XML.
func mayDo(t *testing.T, access sim.Access, bucket string) string {
	t.Helper()
	c := &minio.Core{Client: client(t, access.Environ())}
	var may []string
	for _, d := range deeds(t) {
		err := d.do(c, bucket)
		said := minio.ToErrorResponse(err)
		switch {
		case err == nil:
			may = append(may, d.name)
		case said.StatusCode != http.StatusForbidden || said.Code != "AccessDenied" || said.Message != "Access Denied." || said.Resource == "":
			t.Errorf("%s: %+v", d.name, said)
		}
	}
	return strings.Join(may, " ")
}

const everyDeed = "buckets settings bucket+ settings+ bucket- policy policy+ objects object object+ copy upload+ object-"

// Each permission set gives what Scaleway's table of operations says, however
// the key came to have it: by the region's seed, or by a policy of its
// application; and each that a fault rule takes away is gone.
func TestPermissionSetsOfObjectStorage(t *testing.T) {
	access := start(t)
	prepare := func(name string) {
		c := client(t, access.Environ())
		for _, b := range []string{name, name + "-gone"} {
			if err := c.MakeBucket(t.Context(), b, minio.MakeBucketOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range []string{"kept", "old"} {
			if _, err := c.PutObject(t.Context(), name, key, strings.NewReader("x"), 1, minio.PutObjectOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, c := range []struct{ set, gives string }{
		{"ObjectStorageFullAccess", strings.Replace(everyDeed, "policy policy+ ", "", 1)},
		{"ObjectStorageReadOnly", "buckets settings policy objects object"},
		{"ObjectStorageBucketsRead", "buckets settings"},
		{"ObjectStorageBucketsWrite", "bucket+ settings+"},
		{"ObjectStorageBucketsDelete", "bucket-"},
		{"ObjectStorageObjectsRead", "objects object"},
		{"ObjectStorageObjectsWrite", "object+ upload+"},
		{"ObjectStorageObjectsDelete", "object-"},
		{"ObjectStorageBucketPolicyFullAccess", "policy policy+"},
		{"AllProductsFullAccess", everyDeed},
		{"AllProductsReadOnly", "buckets settings policy objects object"},
		{"InstancesFullAccess", ""},
	} {
		t.Run(c.set, func(t *testing.T) {
			rights := func(v string) { page(t, "POST", access.URL+"/sim/seed", `{"permissions": `+v+`}`) }
			seeded := fmt.Sprintf("seeded-%d", i)
			rights("{}")
			prepare(seeded)
			rights(`{"permission_sets": ["` + c.set + `"]}`)
			if got := mayDo(t, access, seeded); got != c.gives {
				t.Errorf("a key with it may %q, want %q", got, c.gives)
			}
			rights("{}")

			ruled := fmt.Sprintf("ruled-%d", i)
			prepare(ruled)
			page(t, "POST", access.URL+"/sim/faults", `{permissions: [{name: gone, deny: [`+c.set+`]}]}`)
			got := mayDo(t, access, ruled)
			page(t, "DELETE", access.URL+"/sim/faults", "")
			taken := strings.Fields(c.gives)
			if slices.Contains(taken, "object") || slices.Contains(taken, "object+") {
				taken = append(taken, "copy") // it takes both
			}
			left := slices.DeleteFunc(strings.Fields(everyDeed), func(d string) bool { return slices.Contains(taken, d) })
			if want := strings.Join(left, " "); got != want {
				t.Errorf("without it the key may %q, want %q", got, want)
			}
		})
	}
}

// A rule counts the calls to the store that need its right, acts on those that
// it names, and the log says so.
func TestPermissionRulesReachTheStore(t *testing.T) {
	access := start(t)
	c := client(t, access.Environ())
	page(t, "POST", access.URL+"/sim/faults", `{permissions: [{name: on their way, deny: ["object:write", iam], nth: 2}]}`)
	make := func(name string) string {
		return minio.ToErrorResponse(c.MakeBucket(t.Context(), name, minio.MakeBucketOptions{})).Code
	}
	if _, err := c.ListBuckets(t.Context()); err != nil {
		t.Errorf("the rule is not about reading: %v", err)
	}
	if got := []string{make("one"), make("two"), make("three")}; !slices.Equal(got, []string{"", "AccessDenied", ""}) {
		t.Errorf("refused: %q", got)
	}
	var counts struct {
		Permissions []struct{ Matched, Acted int }
	}
	if err := json.NewDecoder(bytes.NewBufferString(page(t, "GET", access.URL+"/sim/faults", ""))).Decode(&counts); err != nil {
		t.Fatal(err)
	}
	if p := counts.Permissions; len(p) != 1 || p[0].Matched != 3 || p[0].Acted != 1 {
		t.Errorf("counted %+v, want 3 calls and 1 refused", p)
	}
	var calls []api.Request
	if err := json.Unmarshal([]byte(page(t, "GET", access.URL+"/sim/requests", "")), &calls); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(calls, func(r api.Request) bool { return r.Path == "/two" })
	if i < 0 || calls[i].Status != http.StatusForbidden || calls[i].Fault != "permission on their way" || len(calls[i].Effects) != 0 {
		t.Errorf("the log says %+v", calls)
	}
}
