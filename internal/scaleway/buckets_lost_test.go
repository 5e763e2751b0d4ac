package scaleway_test

import (
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/sim/fault"
)

// A bucket that is there is never taken for absent: whatever one reading of it
// says, the listing, the reading by name and what was read before have to agree.
func TestBucketsThatAReadingLoses(t *testing.T) {
	t.Parallel()
	list := fault.HTTPRule{Method: "GET", Path: "/", ShortPage: 1}
	tagged := func(status int) fault.HTTPRule {
		return fault.HTTPRule{Method: "GET", Path: "/staging-app", Status: status}
	}
	for name, c := range map[string]struct {
		rule    fault.HTTPRule
		earlier bool // the file no longer asks for the bucket
		met     bool // the same run read it before
	}{
		"the listing lacks the file's":                 {rule: list},
		"the listing lacks what was read before":       {rule: list, earlier: true, met: true},
		"the file's may not be read":                   {rule: tagged(403)},
		"what was read before may not be read":         {rule: tagged(403), earlier: true, met: true},
		"the listing has it, and it is not found":      {rule: tagged(404)},
		"an earlier file's is listed and is not found": {rule: tagged(404), earlier: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := oneNode()
			e.Services.Buckets = withServices(oneNode()).Services.Buckets
			w := newWorld(t, e)
			w.mustUp()
			if c.earlier {
				w.estate.Services.Buckets = nil
			}
			cloud := w.cloud()
			if c.met {
				if _, err := cloud.WholeInventory(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{c.rule}}); err != nil {
				t.Fatal(err)
			}
			mark := len(w.region.Requests(0))
			if err := w.raze(t.Context(), cloud); outcome.CodeOf(err) != outcome.Unknown {
				t.Errorf("want exit code 4, got %v", err)
			}
			if n, which := w.writes(mark); n > 0 {
				t.Errorf("%d writes: %v", n, which)
			}
			w.region.Faults().Clear()
			if err := w.raze(t.Context(), cloud); err != nil {
				t.Fatal(err)
			}
			w.wantNothingLeft()
		})
	}
}

// Of a bucket that the file does not name and whose tags are refused it is not
// known whose it is. A run goes on and says so, a teardown is no proof.
func TestBucketWhoseTagsAreRefused(t *testing.T) {
	t.Parallel()
	e := oneNode()
	e.Services.Buckets = withServices(oneNode()).Services.Buckets
	w := newWorld(t, e)
	w.mustUp()
	w.estate.Services.Buckets = nil
	if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{{Method: "GET", Path: "/staging-app", Status: 403}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.destroy(t.Context(), w.cloud(), blueprint.DataClasses...); err != nil {
		t.Fatal(err)
	}
	inv, err := w.cloud().WholeInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, inv.Complete(), outcome.Unknown, "the tags of the bucket staging-app", "may not read")
}
