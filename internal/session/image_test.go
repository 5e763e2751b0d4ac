package session_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bastide/internal/outcome"
	"bastide/internal/plan"
)

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

// How large the image's file is, is asked for its price, and not having it ends nothing.
func TestTheSizeOfTheImageIsAskedForItsPrice(t *testing.T) {
	g := newGallery(t)
	const key = "images/" + gvisorImage + ".qcow2"
	size := func() int64 {
		t.Helper()
		q, err := g.open().Quote(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return q.Book(time.Minute).Files[key]
	}
	if n := size(); n != 0 {
		t.Errorf("before it is made it has %d bytes", n)
	}
	g.mustBuild("")
	if have := g.images().Objects; len(have) != 1 || size() != have[0].Size || have[0].Size == 0 {
		t.Errorf("it has %d bytes, and is %+v", size(), have)
	}
	g.faults(`{http: [{path: "/bastide-staging-*/images/**", status: 403, body: "<Error><Code>AccessDenied</Code></Error>", headers: {Content-Type: application/xml}}]}`)
	if n := size(); n != 0 {
		t.Errorf("what cannot be read has %d bytes", n)
	}
}
