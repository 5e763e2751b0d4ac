package session_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/run"
)

const otherDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// retag puts another digest, or none, where a snapshot's tags say what went into it.
func (g *gallery) retag(id, digest string) {
	g.t.Helper()
	call := func(method, body string) (s struct{ Tags []string }) {
		req, err := http.NewRequestWithContext(g.t.Context(), method, g.access.URL+"/block/v1/zones/fr-par-1/snapshots/"+id, strings.NewReader(body))
		if err != nil {
			g.t.Fatal(err)
		}
		req.Header.Set("X-Auth-Token", secret)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil || res.StatusCode != http.StatusOK {
			g.t.Fatalf("%s: %v, %v", method, res, err)
		}
		defer func() { _ = res.Body.Close() }()
		if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
			g.t.Fatal(err)
		}
		return s
	}
	tags := slices.DeleteFunc(call("GET", "").Tags, func(tag string) bool { return strings.HasPrefix(tag, blueprint.TagDigest) })
	if digest != "" {
		tags = append(tags, blueprint.TagDigest+digest)
	}
	body, err := json.Marshal(map[string]any{"tags": tags})
	if err != nil {
		g.t.Fatal(err)
	}
	call("PATCH", string(body))
}

func (g *gallery) removeFile() {
	g.t.Helper()
	ctx, h, err := g.open().Hold(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	kept, err := g.open().Store()
	if err == nil {
		err = kept.RemoveImage(ctx, "images/"+gvisorImage+".qcow2")
	}
	h.Release(g.t.Context(), err)
	if err != nil {
		g.t.Fatal(err)
	}
}

// A snapshot of which another content, or none, is told is not the image of the
// file: plan and build import beside it, the right one is the step's although it
// is younger, and a prune removes the wrong one.
func TestASnapshotOfAnotherContentIsNotUsed(t *testing.T) {
	for name, digest := range map[string]string{"another": otherDigest, "none": ""} {
		t.Run(name, func(t *testing.T) {
			g := newGallery(t)
			g.mustBuild("")
			wrong := g.images().Snapshots[0].CloudID
			g.retag(wrong, digest)
			v, err := g.open().SurveyCloud(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range v.Plan().Actions {
				if a.Step.Kind == blueprint.KindSnapshot && a.Op != plan.Create {
					t.Errorf("the plan is to %s the snapshot", a.Op)
				}
			}
			same(t, "strays", strays(v.Live), wrong)
			g.mustBuild("")
			all := g.images().Snapshots
			if len(all) != 2 {
				t.Fatalf("want the wrong snapshot and the right one, got %d", len(all))
			}
			if v, err = g.open().SurveyCloud(t.Context()); err != nil {
				t.Fatal(err)
			}
			same(t, "strays beside the right one", strays(v.Live), wrong)
			before := g.writes()
			g.mustBuild("")
			if after := g.writes(); len(after) != len(before) {
				t.Errorf("another run wrote %v", after[len(before):])
			}
			g.prune()
			left := g.images().Snapshots
			if len(left) != 1 || left[0].CloudID == wrong {
				t.Errorf("a prune left %v", left)
			}
		})
	}
}

func strays(l plan.Live) (ids []string) {
	for _, s := range l.Strays {
		ids = append(ids, s.CloudID)
	}
	return ids
}

// Without the file a snapshot counts by its tag; one that does not say what went
// into it is refused, and a prune makes room for a new one.
func TestASnapshotWithoutAFileCountsByItsTag(t *testing.T) {
	g := newGallery(t)
	g.mustBuild("")
	g.removeFile()
	before := g.writes()
	g.mustBuild("")
	if after := g.writes(); len(after) != len(before) {
		t.Errorf("another run wrote %v", after[len(before):])
	}
	id := g.images().Snapshots[0].CloudID
	g.retag(id, "")
	s := g.open()
	b, err := s.ImagePlan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want(t, run.Blocked(b.Plan), outcome.Refused, id, blueprint.TagDigest, "bastide image prune")
	v, err := s.SurveyCloud(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want(t, run.Blocked(v.Plan()), outcome.Refused, id)
	g.prune()
	g.mustBuild("")
	if all := g.images().Snapshots; len(all) != 1 || all[0].CloudID == id {
		t.Errorf("want a new snapshot, got %v", all)
	}
}

// A build ends with what there is.
func TestABuildSaysWhatItMade(t *testing.T) {
	g := newGallery(t)
	s := g.open()
	ctx, h, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.ImagePlan(ctx)
	if err == nil {
		err = s.Build(ctx, b, "", func(run.Event) {})
	}
	h.Release(t.Context(), err)
	if err != nil {
		t.Fatal(err)
	}
	i := g.images()
	object := i.Objects[0]
	sentence := "the image is there: the snapshot " + gvisorSnapshot + " (" + i.Snapshots[0].CloudID + "), of " + object.Key + ", content " + object.Image.Digest[:19] + ", from " + object.Image.Source
	if have := b.Made(); have != sentence {
		t.Errorf("%q, want %q", have, sentence)
	}
	if b, err = g.open().ImagePlan(t.Context()); err != nil || b.Made() != sentence {
		t.Errorf("the next run: %v, %v", b, err)
	}
}

// An image of a file says so, and one that nothing uses can be replaced by one
// with other content: its file and snapshots go, and the next build makes both.
func TestAnImageIsReplaced(t *testing.T) {
	g := newGallery(t)
	first, second := g.fetched("qcow2"), g.fetched("raw.zst")
	g.mustBuild(first)
	old := g.images()
	if have := old.Objects[0].Image.Source; have != first {
		t.Errorf("it is from %s, want %s", have, first)
	}
	want(t, g.build(second), outcome.Refused, first, "--replace")
	s := g.open()
	ctx, h, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	goes, err := s.Replaced(ctx)
	if err == nil {
		err = s.CanReplace(ctx, second, nil)
	}
	if err == nil {
		err = s.Prune(ctx, goes, func(run.Event) {})
	}
	h.Release(t.Context(), err)
	if err != nil {
		t.Fatal(err)
	}
	g.mustBuild(second)
	now := g.images()
	if len(now.Snapshots) != 1 || len(now.Objects) != 1 || now.Objects[0].Image.Source != second || now.Snapshots[0].CloudID == old.Snapshots[0].CloudID ||
		now.Snapshots[0].Digest != now.Objects[0].Image.Digest || now.Objects[0].Image.Digest == old.Objects[0].Image.Digest {
		t.Errorf("after a replacement: %+v, %+v", now.Snapshots, now.Objects)
	}
}
