package scaleway_test

import (
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/sim/api"
	"bastide/internal/sim/fault"
)

const opened = `{"Version":"2023-04-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"staging-app/*"}]}`

func oneBucket(t *testing.T) *world {
	t.Helper()
	e := oneNode()
	e.Services.Buckets = withServices(oneNode()).Services.Buckets
	return newWorld(t, e)
}

// A refusal of object storage names the right that is missing, whichever it is,
// before anything is written where it is a right to read.
func TestMissingRightsToObjectStorageAreNamed(t *testing.T) {
	t.Parallel()
	for without, c := range map[string]struct {
		code outcome.Code
		says []string
	}{
		"object":                    {outcome.Unknown, []string{"the buckets could not be listed", "403 AccessDenied: Access Denied, so the API key", "the permission set ObjectStorageBucketsRead gives", "give the key's application the permission set ObjectStorageFullAccess"}},
		"ObjectStorageBucketsRead":  {outcome.Unknown, []string{"the buckets could not be listed", "ObjectStorageBucketsRead"}},
		"ObjectStorageBucketsWrite": {outcome.Failed, []string{"staging-app", "the permission set ObjectStorageBucketsWrite gives", "ObjectStorageFullAccess"}},
		"object:write":              {outcome.Failed, []string{"staging-app", "ObjectStorageBucketsWrite"}},
	} {
		t.Run("without "+without, func(t *testing.T) {
			t.Parallel()
			w := oneBucket(t)
			w.did(w.region.LoadFaults(fault.Script{Permissions: []fault.PermissionRule{{Deny: []string{without}}}}))
			wantError(t, w.up(t.Context(), w.cloud()), c.code, c.says...)
			if n, which := w.writes(0); c.code == outcome.Unknown && n > 0 {
				t.Errorf("%d writes: %s", n, which)
			}
			w.did(w.region.LoadFaults(fault.Script{}))
			w.mustUp()
			w.wantConverged()
		})
	}
}

// The right to remove a bucket is one of its own.
func TestRemovingABucketTakesItsRight(t *testing.T) {
	t.Parallel()
	w := oneBucket(t)
	w.mustUp()
	w.did(w.region.LoadFaults(fault.Script{Permissions: []fault.PermissionRule{{Deny: []string{"ObjectStorageBucketsDelete"}}}}))
	wantError(t, w.destroy(t.Context(), w.cloud(), blueprint.DataBuckets), outcome.Failed, "the bucket staging-app was not removed", "ObjectStorageBucketsDelete")
	w.did(w.region.LoadFaults(fault.Script{}))
	if err := w.destroy(t.Context(), w.cloud(), blueprint.DataBuckets); err != nil {
		t.Fatal(err)
	}
}

// With the rights that bastide iam writes out, a policy that opens a bucket is
// seen and taken back. Without the one to policies the bucket passes for private
// nowhere: what is not known is said.
func TestPoliciesHaveARightOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := oneBucket(t)
	same := scene{estate: func() *estate.Estate { return w.estate }}
	w.mustUp()
	w.did(w.minio().PutBucketPolicy(t.Context(), "staging-app", opened))

	w.seed(api.Seed{Permissions: &api.Credential{PermissionSets: setsOf(t, same, "staging-ci")}})
	if a := w.action("bucket/staging-app"); len(a.Changes) != 1 || a.Changes[0].Attribute != "access" || a.Changes[0].Have != "public: a policy lets everybody in" {
		t.Errorf("a key that reads sees %+v", a.Changes)
	}

	w.seed(api.Seed{Permissions: &api.Credential{Deny: []string{"ObjectStorageBucketPolicyFullAccess"}}})
	inv := w.wantConverged()
	if !strings.Contains(strings.Join(inv.Warnings, "\n"), "may not read the policy of the bucket staging-app, so whether one lets everybody in is not known; the permission set is ObjectStorageBucketPolicyFullAccess") {
		t.Errorf("warnings %q", inv.Warnings)
	}

	w.seed(api.Seed{Permissions: &api.Credential{PermissionSets: setsOf(t, same, "staging-bastide")}})
	w.mustUp()
	if policy, err := w.minio().Client.GetBucketPolicy(t.Context(), "staging-app"); err != nil || policy != "" {
		t.Errorf("the policy is %q, %v", policy, err)
	}
	if inv := w.wantConverged(); strings.Contains(strings.Join(inv.Warnings, ""), "policy") {
		t.Errorf("warnings %q", inv.Warnings)
	}
}
