package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bastide/internal/outcome"
	"bastide/internal/plan"
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
	return s.Foresee(g.t.Context(), b.Plan)
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

// The image is made once: another run writes nothing, and an estate that is
// raised finds it. A snapshot that is lost is imported from the file again.
func TestAnImageIsMadeOnce(t *testing.T) {
	g := newGallery(t)
	g.mustBuild("")
	same(t, "snapshots", g.snapshots(), gvisorSnapshot+" available")
	same(t, "files", g.files(), "images/"+gvisorImage+".qcow2")
	before := g.writes()
	g.mustBuild("")
	v, err := g.open().SurveyCloud(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range v.Plan().Actions {
		if kind := string(a.Step.Kind); (kind == "snapshot" || kind == "image-object") && a.Op != plan.Keep {
			t.Errorf("%s: %s", a.Step.ID, a.Op)
		}
	}
	if after := g.writes(); len(after) != len(before) {
		t.Errorf("another run wrote %v", after[len(before):])
	}
	g.page("DELETE", "/sim/faults", "")
	id := g.images().Snapshots[0].CloudID
	req, err := http.NewRequestWithContext(t.Context(), "DELETE", g.access.URL+"/block/v1/zones/fr-par-1/snapshots/"+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", secret)
	if res, err := http.DefaultClient.Do(req); err != nil || res.StatusCode != http.StatusNoContent {
		t.Fatalf("%v, %v", res, err)
	}
	before = g.writes()
	g.mustBuild("")
	same(t, "a new snapshot costs", g.writes()[len(before):], "POST /block/v1/zones/fr-par-1/snapshots/import-from-object-storage")
}

// The same disk as a file makes the same image; a file with another one is not
// made the image of the same name.
func TestAnImageOfAFile(t *testing.T) {
	g := newGallery(t)
	file := g.fetched("qcow2")
	g.mustBuild(file)
	same(t, "snapshots", g.snapshots(), gvisorSnapshot+" available")
	before := g.writes()
	g.mustBuild(file)
	if after := g.writes(); len(after) != len(before) {
		t.Errorf("another run wrote %v", after[len(before):])
	}
	want(t, g.build(g.fetched("raw.zst")), outcome.Refused, "exists with other content")
	broken := filepath.Join(t.TempDir(), "page.qcow2")
	if err := os.WriteFile(broken, []byte("<html>402 payment required</html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, g.build(broken), outcome.Refused, "HTML")
}

// A file of which no image can be made is refused before the lock is taken; a page
// instead of the Factory's file is met after that, and is no refusal any more.
func TestWhatCanBeSeenOfAFileIsSeenBeforeTheLock(t *testing.T) {
	g := newGallery(t)
	disk := filepath.Join(t.TempDir(), "disk.vmdk")
	if err := os.WriteFile(disk, append([]byte("KDMV"), make([]byte, 4096)...), 0o600); err != nil {
		t.Fatal(err)
	}
	for from, says := range map[string]string{disk: "hypervisor", "nosuch": "there is no such file", t.TempDir(): "a folder"} {
		s := g.open()
		b, err := s.ImagePlan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want(t, s.CanBuild(t.Context(), b, from, nil), outcome.Refused, says)
	}
	for _, form := range []string{"raw.zst", "raw.xz", "qcow2"} {
		s := g.open()
		b, err := s.ImagePlan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CanBuild(t.Context(), b, g.fetched(form), nil); err != nil {
			t.Errorf("%s: %v", form, err)
		}
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<!doctype html><html>sign in</html>")
	}))
	defer page.Close()
	want(t, g.build(page.URL+"/disk.qcow2"), outcome.Failed, "HTML")
	if w := g.writes(); len(w) > 0 {
		t.Errorf("written: %v", w)
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

// A wrong name of an extension, or a version that does not exist, is found before
// anything is written, and what was meant is named.
func TestTheFactoryIsAskedBeforeAnythingIsWritten(t *testing.T) {
	g := newGallery(t)
	g.file("siderolabs/gvisor", "siderolabs/gvizor")
	want(t, g.build(""), outcome.Refused, "talos.extensions[0]", "did you mean siderolabs/gvisor")
	want(t, g.foresee(), outcome.Refused, "talos.extensions[0]", "did you mean siderolabs/gvisor")
	g.file("siderolabs/gvizor", "siderolabs/gvisor")
	if err := g.foresee(); err != nil {
		t.Errorf("a plan that is right: %v", err)
	}
	g.faults("http:\n  - {path: \"/version/**\", status: 404, body: nothing here}")
	if err := g.foresee(); err != nil {
		t.Errorf("a plan while the Factory is out of order: %v", err)
	}
	g.faults("{}")
	g.file("v1.13.5", "v1.13.99")
	want(t, g.build(""), outcome.Refused, "there is no image of Talos v1.13.99", "choose one of")
	g.file("v1.13.99", "v1.13.5")
	g.vars["BASTIDE_FACTORY_URL"] = "ftp://example.org"
	want(t, g.build(""), outcome.Refused, "BASTIDE_FACTORY_URL")
	if w := g.writes(); len(w) > 0 {
		t.Errorf("written: %v", w)
	}
}

// Field report 42: an import that ends in error was waited for until the time was
// over, or used. Here it fails at once with the snapshot's id; another run removes
// that snapshot, uploads nothing, and imports again.
func TestFieldReport42AFailedImportIsReplaced(t *testing.T) {
	g := newGallery(t)
	g.faults(`{events: [{event: snapshot-import-error, node: ` + gvisorSnapshot + `}]}`)
	err := g.build("")
	same(t, "snapshots", g.snapshots(), gvisorSnapshot+" error")
	id := g.images().Snapshots[0].CloudID
	want(t, err, outcome.Failed, id, "in error", "run the command again")
	v, err := g.open().SurveyCloud(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]plan.Op{}
	for _, a := range v.Plan().Actions {
		made[string(a.Step.Kind)] = a.Op
	}
	if made["snapshot"] != plan.Create || made["image-object"] != plan.Keep {
		t.Errorf("the plan is to %s the snapshot and to %s its file", made["snapshot"], made["image-object"])
	}
	before := g.writes()
	g.mustBuild("")
	same(t, "another run", g.writes()[len(before):], "DELETE /block/v1/zones/fr-par-1/snapshots/"+id, "POST /block/v1/zones/fr-par-1/snapshots/import-from-object-storage")
	same(t, "snapshots", g.snapshots(), gvisorSnapshot+" available")
}

// Field report 43: the build of one environment deleted the image that another
// one's nodes were made of. Here another version is made beside the first, and a
// prune removes what neither file, volume nor import of its own estate keeps.
func TestFieldReport43AnEstatePrunesItsOwnImagesOnly(t *testing.T) {
	g := newGallery(t)
	g.mustBuild("")
	other := *g
	place := *g.place
	other.place = &place
	other.dir = t.TempDir()
	data, err := os.ReadFile(filepath.Join(g.dir, "estate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	other.write("estate.yaml", strings.NewReplacer("name: staging", "name: production", "v1.13.5", "v1.13.4").Replace(string(data)))
	other.mustBuild("")
	g.prune()
	other.prune()
	same(t, "of staging", g.snapshots(), gvisorSnapshot+" available")
	same(t, "of production", other.snapshots(), "talos-v1.13.4-d9ff89777e24-production available")

	g.file("extensions: [siderolabs/gvisor], ", "")
	g.mustBuild("")
	same(t, "beside the old one", g.snapshots(), gvisorSnapshot+" available", "talos-v1.13.5-376567988ad3-staging available")
	g.prune()
	same(t, "after a prune", g.snapshots(), "talos-v1.13.5-376567988ad3-staging available")
	same(t, "files after a prune", g.files(), "images/talos-v1.13.5-376567988ad3.qcow2")
	same(t, "of production", other.snapshots(), "talos-v1.13.4-d9ff89777e24-production available")
	same(t, "files of production", other.files(), "images/talos-v1.13.4-d9ff89777e24.qcow2")
}

// A store that cuts the connection at 60 % of an upload gets it in another run,
// and until then nothing is imported.
func TestAnUploadThatIsCutIsNotImported(t *testing.T) {
	g := newGallery(t)
	g.faults(`{http: [{method: PUT, path: "/bastide-staging-*/images/*.qcow2", query: {partNumber: "3"}, status: 403, body: "<Error><Code>AccessDenied</Code></Error>", headers: {Content-Type: application/xml}}]}`)
	want(t, g.build(""), outcome.Failed, "part 3")
	if s := g.snapshots(); len(s) > 0 {
		t.Errorf("imported: %v", s)
	}
	g.faults(`{}`)
	g.mustBuild("")
	same(t, "snapshots", g.snapshots(), gvisorSnapshot+" available")
}
