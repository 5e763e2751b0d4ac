package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bastide/internal/outcome"
	"bastide/internal/run"
	"bastide/internal/session"
	"bastide/internal/sim"
	"bastide/internal/sim/api"
)

// gallery is an environment without a snapshot, and a region with an Image Factory.
type gallery struct {
	*place
	access sim.Access
}

func newGallery(t *testing.T) *gallery {
	t.Helper()
	p := newPlace(t)
	r := p.inRegion(api.Seed{})
	g := &gallery{p, r.Access}
	g.file("talos: {version: v1.13.5, snapshot: talos}", "talos: {version: v1.13.5, extensions: [siderolabs/gvisor], image: {source: qcow2}}")
	return g
}

// file changes the environment's file.
func (g *gallery) file(old, text string) {
	g.t.Helper()
	data, err := os.ReadFile(filepath.Join(g.dir, "estate.yaml"))
	if err != nil {
		g.t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		g.t.Fatalf("%q is not in the file", old)
	}
	g.write("estate.yaml", strings.Replace(string(data), old, text, 1))
}

func (g *gallery) page(method, path, body string) []byte {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.access.URL+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		g.t.Fatalf("%s %s: %d, %v: %s", method, path, res.StatusCode, err, text)
	}
	return text
}

func (g *gallery) faults(script string) {
	g.t.Helper()
	g.page("DELETE", "/sim/faults", "")
	g.page("POST", "/sim/faults", script)
}

// writes are the calls that changed something, but for those to lock and journal.
func (g *gallery) writes() []string {
	g.t.Helper()
	var log []api.Request
	if err := json.Unmarshal(g.page("GET", "/sim/requests", ""), &log); err != nil {
		g.t.Fatal(err)
	}
	var out []string
	for _, r := range log {
		ofBucket := r.Host == "s3" && !strings.Contains(r.Path, "/images/")
		if r.Mutating && !ofBucket && r.Host != "factory" {
			out = append(out, r.Method+" "+r.Path)
		}
	}
	return out
}

// build is image build, agreed to beforehand.
func (g *gallery) build(from string) error {
	g.t.Helper()
	s := g.open()
	b, err := s.ImagePlan(g.t.Context())
	if err != nil {
		return err
	}
	if err := s.CanBuild(g.t.Context(), b, from, nil); err != nil {
		return err
	}
	if b.Plan.Empty() {
		return nil
	}
	ctx, h, err := s.Hold(g.t.Context())
	if err != nil {
		return err
	}
	if b, err = s.ImagePlan(ctx); err == nil {
		err = s.Build(ctx, b, from, func(run.Event) {})
	}
	h.Release(g.t.Context(), err)
	return err
}

// foresee is what plan says of the image.
func (g *gallery) foresee() error {
	s := g.open()
	defer s.Close()
	b, err := s.ImagePlan(g.t.Context())
	if err != nil {
		return err
	}
	return s.Foresee(g.t.Context(), &session.Survey{}, b.Plan)
}

func (g *gallery) mustBuild(from string) {
	g.t.Helper()
	if err := g.build(from); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gallery) images() *session.Images {
	g.t.Helper()
	i, err := g.open().Images(g.t.Context(), false)
	if err != nil {
		g.t.Fatal(err)
	}
	return i
}

// prune removes what nothing keeps.
func (g *gallery) prune() {
	g.t.Helper()
	s := g.open()
	ctx, h, err := s.Hold(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	i, err := s.Images(ctx, false)
	if err == nil {
		err = s.Prune(ctx, i.Unpinned(), func(run.Event) {})
	}
	h.Release(g.t.Context(), err)
	if err != nil {
		g.t.Fatal(err)
	}
}

// snapshots and files are the images that there are, by name and status.
func (g *gallery) snapshots() (out []string) {
	for _, s := range g.images().Snapshots {
		out = append(out, s.Name+" "+s.Status)
	}
	return out
}

func (g *gallery) files() (out []string) {
	for _, o := range g.images().Objects {
		out = append(out, o.Key)
	}
	return out
}

const (
	gvisorImage    = "talos-v1.13.5-d9ff89777e24"
	gvisorSnapshot = gvisorImage + "-staging"
)

func want(t *testing.T, err error, code outcome.Code, parts ...string) {
	t.Helper()
	if outcome.CodeOf(err) != code {
		t.Fatalf("want exit code %d, got %v", code, err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
}

func same(t *testing.T, what string, have []string, want ...string) {
	t.Helper()
	if strings.Join(have, "; ") != strings.Join(want, "; ") {
		t.Errorf("%s: %q, want %q", what, have, want)
	}
}

// fetched is a file with the image of the schematic, in one of its forms.
func (g *gallery) fetched(form string) string {
	g.t.Helper()
	s := g.open()
	id := s.Estate.Talos.SchematicID()
	res, err := http.Post(g.vars["BASTIDE_FACTORY_URL"]+"/schematics", "application/yaml", bytes.NewReader(s.Estate.Talos.Schematic())) //nolint:noctx // a test's own
	if err != nil {
		g.t.Fatal(err)
	}
	_ = res.Body.Close()
	res, err = http.Get(g.vars["BASTIDE_FACTORY_URL"] + "/image/" + id + "/v1.13.5/scaleway-amd64." + form) //nolint:noctx // a test's own
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	name := filepath.Join(g.t.TempDir(), "scaleway-amd64."+form)
	to, err := os.Create(name)
	if err != nil {
		g.t.Fatal(err)
	}
	_, err = io.Copy(to, res.Body)
	if err = errors.Join(err, to.Close()); err != nil || res.StatusCode != http.StatusOK {
		g.t.Fatalf("%d, %v", res.StatusCode, err)
	}
	return name
}
