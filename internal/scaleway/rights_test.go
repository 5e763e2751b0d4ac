package scaleway_test

import (
	"slices"
	"testing"

	"bastide/internal/iam"
	"bastide/internal/outcome"
	"bastide/internal/sim/api"
)

// holding is a region whose keys have these permission sets alone.
func (s scene) holding(t *testing.T, sets []string) *world {
	t.Helper()
	w := s.fresh(t)
	w.seed(api.Seed{Permissions: &api.Credential{PermissionSets: sets}})
	return w
}

func setsOf(t *testing.T, s scene, name string) []string {
	t.Helper()
	for _, a := range iam.Needed(s.estate()) {
		if a.Name == name {
			return a.Sets()
		}
	}
	t.Fatalf("no application %s", name)
	return nil
}

// The rights that bastide iam writes out are enough to raise the estate and to
// take it down, without any right to IAM but SSH keys.
func TestWrittenOutRightsAreEnough(t *testing.T) {
	t.Parallel()
	for name, s := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := s.holding(t, setsOf(t, s, "staging-bastide"))
			w.mustUp()
			w.wantConverged()
			if err := w.destroy(t.Context(), w.cloud()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// None of them is superfluous: without it the estate cannot be raised. SSH keys
// may be a person's matter, changing and deleting secrets is for later runs, and
// policies of buckets have a test of their own.
func TestWrittenOutRightsAreTheLeast(t *testing.T) {
	t.Parallel()
	later := []string{"SSHKeysFullAccess", "SecretManagerSecretDelete", "SecretManagerSecretWrite", "SecretManagerSecretRestore", "ObjectStorageBucketPolicyFullAccess"}
	for name, s := range scenes {
		sets := setsOf(t, s, "staging-bastide")
		for _, without := range sets {
			if slices.Contains(later, without) || without == "ObjectStorageFullAccess" && len(s.estate().Services.Buckets) == 0 {
				continue // the estate's own bucket, with the lock in it, is not of this room
			}
			t.Run(name+" without "+without, func(t *testing.T) {
				t.Parallel()
				w := s.holding(t, slices.DeleteFunc(slices.Clone(sets), func(v string) bool { return v == without }))
				err := w.up(t.Context(), w.cloud())
				if code := outcome.CodeOf(err); code != outcome.Failed && code != outcome.Unknown {
					t.Errorf("up ended with %d: %v", code, err)
				}
			})
		}
	}
}

// A plan needs to read and nothing else.
func TestWrittenOutRightsOfAPlan(t *testing.T) {
	t.Parallel()
	for name, s := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := s.fresh(t)
			w.mustUp()
			w.seed(api.Seed{Permissions: &api.Credential{PermissionSets: setsOf(t, s, "staging-ci")}})
			w.wantConverged()
			w.estate.ControlPlane.Disk.IOPS = 15000
			wantError(t, w.up(t.Context(), w.cloud()), outcome.Failed, "lacks the permission write")
		})
	}
}

// An estate is raised and planned by a key without any right to IAM, SSH keys
// included, and the plan says what it could not see to.
func TestNoRightToIAM(t *testing.T) {
	t.Parallel()
	for name, s := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := s.holding(t, slices.DeleteFunc(setsOf(t, s, "staging-bastide"), func(v string) bool { return v == "SSHKeysFullAccess" }))
			w.mustUp()
			w.wantConverged()
		})
	}
}
