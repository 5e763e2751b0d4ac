package sim_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/tags"
	iam "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"bastide/internal/sim"
	"bastide/internal/sim/api"
)

// start runs a whole region without nodes, whose key may not do what deny lists.
func start(t *testing.T, deny ...string) sim.Access {
	t.Helper()
	r, err := sim.Start(sim.Options{Listen: "127.0.0.1:0", Dir: t.TempDir(), Speed: 2000, Deny: deny, Access: sim.Access{
		AccessKey: sim.AccessKey, SecretKey: "6a1b1b7e-0000-4000-8000-000000000001", Project: project, Region: "fr-par", Zone: "fr-par-1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r.Access
}

// client reaches object storage as the environment says.
func client(t *testing.T, environ []string) *minio.Client {
	t.Helper()
	env := map[string]string{}
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	if env["SCW_S3_USE_PATH_STYLE"] != "true" {
		t.Fatalf("SCW_S3_USE_PATH_STYLE is %q", env["SCW_S3_USE_PATH_STYLE"])
	}
	c, err := minio.New(strings.TrimPrefix(env["SCW_S3_ENDPOINT"], "http://"), &minio.Options{Region: env["SCW_DEFAULT_REGION"],
		Creds: credentials.NewStaticV4(env["SCW_ACCESS_KEY"], env["SCW_SECRET_KEY"], ""), BucketLookup: minio.BucketLookupPath, MaxRetries: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func page(t *testing.T, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %d, %v: %s", method, url, resp.StatusCode, err, text)
	}
	return string(text)
}

func TestObjectStorageIsPartOfTheRegion(t *testing.T) {
	access := start(t)
	c, ctx := client(t, access.Environ()), t.Context()
	put := func(key, content string) error {
		_, err := c.PutObject(ctx, "estate", key, strings.NewReader(content), int64(len(content)), minio.PutObjectOptions{})
		return err
	}
	if err := c.MakeBucket(ctx, "estate", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	set, err := tags.NewTags(map[string]string{"bastide": "staging"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetBucketTagging(ctx, "estate", set); err != nil {
		t.Fatal(err)
	}
	if err := put("lock", "the content of a lock"); err != nil {
		t.Fatal(err)
	}

	log := page(t, "GET", access.URL+"/sim/requests", "")
	var calls []api.Request
	if err := json.Unmarshal([]byte(log), &calls); err != nil {
		t.Fatal(err)
	}
	last := calls[len(calls)-1]
	if last.Host != "s3" || last.Method != "PUT" || last.Path != "/estate/lock" || !last.Mutating || last.Status != 200 ||
		!slices.Equal(last.Effects, []api.Effect{{Verb: "created", Kind: "object", ID: "estate/lock"}}) {
		t.Errorf("%+v", last)
	}
	for _, hidden := range []string{access.SecretKey, access.AccessKey, "Signature", "content of a lock"} {
		if strings.Contains(log, hidden) {
			t.Errorf("the log has %q in it", hidden)
		}
	}

	var state struct {
		Products map[string]map[string][]struct {
			Name    string
			Objects int
		}
		Owned map[string][]api.Owned
	}
	if err := json.Unmarshal([]byte(page(t, "GET", access.URL+"/sim/state", "")), &state); err != nil {
		t.Fatal(err)
	}
	if b := state.Products["object"]["bucket"]; len(b) != 1 || b[0].Name != "estate" || b[0].Objects != 1 {
		t.Errorf("%+v", state.Products)
	}
	if o := state.Owned["bastide=staging"]; len(o) != 1 || o[0].ID != "estate" || o[0].Project != project {
		t.Errorf("%+v", state.Owned)
	}
	if !strings.Contains(page(t, "GET", access.URL+"/sim/", ""), "<td>estate") {
		t.Error("the overview does not list the bucket")
	}

	page(t, "POST", access.URL+"/sim/faults", `{http: [{method: PUT, path: "/estate/*", nth: 1, status: 403}], store: {conditionsIgnored: true}}`)
	if err := put("new", "x"); minio.ToErrorResponse(err).Code != "AccessDenied" {
		t.Errorf("the fault rule did not act: %v", err)
	}
	var fresh minio.PutObjectOptions
	fresh.SetMatchETagExcept("*")
	if _, err := c.PutObject(ctx, "estate", "lock", strings.NewReader("x"), 1, fresh); err != nil {
		t.Errorf("the store's switch did not act: %v", err)
	}

	page(t, "POST", access.URL+"/sim/reset", "")
	if ok, err := c.BucketExists(ctx, "estate"); ok || err != nil {
		t.Errorf("after the reset the bucket exists: %v, %v", ok, err)
	}
	if err := c.MakeBucket(ctx, "estate", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := put("lock", "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutObject(ctx, "estate", "lock", strings.NewReader("x"), 1, fresh); minio.ToErrorResponse(err).Code != "PreconditionFailed" {
		t.Errorf("the reset left the store weak: %v", err)
	}
}

// A key that was made for an application may do to the store what its policies
// say, and a seed takes rights from the store's keys too.
func TestRightsReachTheStore(t *testing.T) {
	access := start(t)
	c, ctx := client(t, access.Environ()), t.Context()
	if err := c.MakeBucket(ctx, "estate", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	sdk, err := scw.NewClient(scw.WithAPIURL(access.URL), scw.WithAuth(access.AccessKey, access.SecretKey), scw.WithDefaultProjectID(project), scw.WithDefaultOrganizationID(project))
	if err != nil {
		t.Fatal(err)
	}
	people, home := iam.NewAPI(sdk), project
	app, err := people.CreateApplication(&iam.CreateApplicationRequest{Name: "backup"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := people.CreateAPIKey(&iam.CreateAPIKeyRequest{ApplicationID: &app.ID, DefaultProjectID: &home})
	if err != nil {
		t.Fatal(err)
	}
	theirs := access
	theirs.AccessKey, theirs.SecretKey = key.AccessKey, *key.SecretKey
	backup := client(t, theirs.Environ())
	may := func(c *minio.Client) string {
		out := ""
		if _, err := c.ListBuckets(ctx); err == nil {
			out += "read "
		}
		if _, err := c.PutObject(ctx, "estate", "x", strings.NewReader("x"), 1, minio.PutObjectOptions{}); err == nil {
			out += "write"
		}
		return out
	}
	if got := may(backup); got != "" {
		t.Errorf("without a policy it may %s", got)
	}
	if _, err := people.CreatePolicy(&iam.CreatePolicyRequest{ApplicationID: &app.ID, Rules: []*iam.RuleSpecs{
		{PermissionSetNames: &[]string{"ObjectStorageReadOnly"}, ProjectIDs: &[]string{project}}}}); err != nil {
		t.Fatal(err)
	}
	if got := may(backup); got != "read " {
		t.Errorf("a reader may %q", got)
	}
	page(t, "POST", access.URL+"/sim/seed", `{"permissions": {"deny": ["ObjectStorageReadOnly"]}}`)
	if got := may(c); got != "write" {
		t.Errorf("without the right to read it may %q", got)
	}
}

// What is taken from the region's key is refused by the API and by the store.
func TestKeysWithLimits(t *testing.T) {
	access := start(t, "object:write", "lb")
	c, ctx := client(t, access.Environ()), t.Context()
	if err := c.MakeBucket(ctx, "estate", minio.MakeBucketOptions{}); minio.ToErrorResponse(err).Code != "AccessDenied" {
		t.Errorf("a bucket was made: %v", err)
	}
	if _, err := c.ListBuckets(ctx); err != nil {
		t.Errorf("reading is refused too: %v", err)
	}
	for path, want := range map[string]int{"/lb/v1/zones/fr-par-1/lbs": 403, "/vpc/v2/regions/fr-par/vpcs": 200} {
		r, err := http.NewRequestWithContext(ctx, "GET", access.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Auth-Token", access.SecretKey)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
}
