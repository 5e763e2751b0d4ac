package store

import (
	"strings"
	"testing"

	"bastide/internal/outcome"
	"bastide/internal/sim/api"
)

// A key that lacks a right to the estate's bucket is told which, before anything
// is written where it is one to read; and a bucket of the project that may not be
// read is never taken for another account's.
func TestRightsToTheEstatesBucket(t *testing.T) {
	for name, c := range map[string]struct {
		there bool
		deny  string
		code  outcome.Code
		says  []string
	}{
		"nothing at all":                    {false, "object", outcome.Unknown, []string{"could not be looked at", "ObjectStorageBucketsRead gives"}},
		"no reading of buckets":             {true, "ObjectStorageBucketsRead", outcome.Unknown, []string{"could not be looked at", "ObjectStorageBucketsRead gives", "give the key's application"}},
		"no making of buckets":              {false, "ObjectStorageBucketsWrite", outcome.Failed, []string{"was not made", "ObjectStorageBucketsWrite gives"}},
		"no writing of objects":             {true, "ObjectStorageObjectsWrite", outcome.Unknown, []string{"ObjectStorageObjectsWrite gives"}},
		"reading alone":                     {true, "object:write", outcome.Unknown, []string{"ObjectStorageObjectsWrite gives"}},
		"reading alone, and nothing to see": {false, "object:write", outcome.Failed, []string{"ObjectStorageBucketsWrite gives"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			if c.there {
				p.acquire(p.store(Terms{})).Release(t.Context())
			}
			before := len(p.effects())
			p.faults(`{permissions: [{deny: ["` + c.deny + `"]}]}`)
			_, err := p.store(Terms{}).Acquire(t.Context(), request)
			wantError(t, err, c.code, append(c.says, "AccessDenied", "SCW_SECRET_KEY", project)...)
			if after := p.effects(); len(after) != before {
				t.Errorf("it did %v", after[before:])
			}
			p.faults(`{}`)
			p.acquire(p.store(Terms{})).Release(t.Context())
		})
	}
}

// Whether there is a lock is not known to a key that may not read it.
func TestALockThatMayNotBeRead(t *testing.T) {
	p := newPlace(t)
	s := p.store(Terms{})
	h := p.acquire(s)
	p.faults(`{permissions: [{deny: [ObjectStorageObjectsRead]}]}`)
	_, err := s.Current(t.Context())
	wantError(t, err, outcome.Unknown, "ObjectStorageObjectsRead gives")
	_, err = p.store(Terms{}).Acquire(t.Context(), request)
	wantError(t, err, outcome.Unknown, "ObjectStorageObjectsRead gives")
	p.faults(`{}`)
	h.Release(t.Context())
}

// The bucket is used although its policy may not be read, and that this is not
// known is said.
func TestAPolicyThatMayNotBeRead(t *testing.T) {
	p := newPlace(t)
	p.faults(`{permissions: [{deny: [ObjectStorageBucketPolicyFullAccess]}]}`)
	p.acquire(p.store(Terms{})).Release(t.Context())
	if heard := p.heard(); !strings.Contains(heard, "may not read the policy of the bucket bastide-staging") || !strings.Contains(heard, "ObjectStorageBucketPolicyFullAccess") {
		t.Errorf("heard %q", heard)
	}
}

// effects are the calls to object storage that had one, as METHOD PATH.
func (p *place) effects() []string {
	p.Helper()
	var log []api.Request
	p.page("GET", "/sim/requests", "", &log)
	var out []string
	for _, r := range log {
		if r.Host == "s3" && len(r.Effects) > 0 {
			out = append(out, r.Method+" "+r.Path)
		}
	}
	return out
}
