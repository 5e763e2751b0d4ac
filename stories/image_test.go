package stories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"bastide/internal/estate"
	"bastide/internal/rehearsal"
)

const imageEstate = "testdata/estates/image"

// stageImage opens a region on the estate that makes its image, fast enough that
// an import takes a second. No node is made, so it needs no kube-apiserver.
func stageImage(t *testing.T, source string) (*rehearsal.Play, *estate.Estate) {
	t.Helper()
	e, err := estate.Load(imageEstate)
	if err != nil {
		t.Fatal(err)
	}
	s, err := rehearsal.Build(e, filepath.Join(t.TempDir(), "stage"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.Env, estate.FileName)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "kernelArgs:", "image: {source: "+source+"}, kernelArgs:", 1))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := rehearsal.Open(t.Context(), s, bastide, 200, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, e
}

// oneImage fails unless the image is there once: one snapshot that can be used,
// one file that is proven, and no upload that was not ended.
func oneImage(t *testing.T, p *rehearsal.Play) {
	t.Helper()
	var state struct {
		Products map[string]map[string][]map[string]any `json:"products"`
		Buckets  []struct{ Name string }                `json:"buckets"`
	}
	if err := p.Page(t.Context(), "/sim/state", &state); err != nil {
		t.Fatal(err)
	}
	snapshots := state.Products["block"]["snapshot"]
	if len(snapshots) != 1 || snapshots[0]["status"] != "available" {
		t.Errorf("snapshots: %v", snapshots)
	}
	whole := text(t, p, "/sim/state")
	if !strings.Contains(whole, `"uploads": 0`) && !strings.Contains(whole, `"uploads":0`) {
		t.Errorf("an upload is left: %s", whole)
	}
}

// Killed at every call that changes something, a build that is run again ends in
// the same one image; the last of the runs finds it and writes nothing.
func TestKilledImageBuildAtEveryChange(t *testing.T) {
	t.Parallel()
	p, e := stageImage(t, "qcow2")
	empty := census(t, p)
	kills := 0
	for _, when := range []string{"before", "after"} {
		for nth := 1; ; nth++ {
			s := strike(t, p, kill{nth, when, ""}, "image", "build", p.Stage.Env, "--yes")
			if !s.killed {
				if nth < 10 {
					t.Errorf("a build makes %d changes only", nth-1)
				}
				play(t, p, 0, wipe(p, e)...)
				break
			}
			kills++
			play(t, p, 0, "image", "build", p.Stage.Env, "--yes")
			oneImage(t, p)
			before := len(changes(t, p))
			play(t, p, 0, "image", "build", p.Stage.Env, "--yes")
			if after := changes(t, p); len(after) != before {
				t.Errorf("killed %s change %d: a build with nothing to do wrote %v", when, nth, after[before:])
			}
			play(t, p, 0, wipe(p, e)...)
			if left := census(t, p); left != empty {
				t.Fatalf("killed %s change %d, left:\n%s", when, nth, left)
			}
		}
	}
	t.Logf("image build: %d kills survived", kills)
}

// A store that cuts each connection after 60 % of a part ends the build cleanly,
// with nothing imported; another run uploads what is missing, and no more.
func TestImageBuildOverAStoreThatCuts(t *testing.T) {
	t.Parallel()
	p, e := stageImage(t, "raw.zst")
	const part = 8 << 20
	faults(t, p, http.MethodPost, fmt.Sprintf(`{http: [{method: PUT, path: "/bastide-scene-*/images/*.qcow2", query: {partNumber: "3"}, cutAfter: %d}]}`, part*6/10))
	out, err := p.Command(t.Context(), "image", "build", p.Stage.Env, "--yes", "--timeout", "1m").CombinedOutput() // a slow machine has to get to part 3 within it
	if err == nil || !strings.Contains(string(out), "part 3 of images/") {
		t.Fatalf("%v: %s", err, out)
	}
	if now := text(t, p, "/sim/state"); strings.Contains(now, "import") || strings.Contains(census(t, p), "snapshot") {
		t.Errorf("something was imported: %s", now)
	}
	faults(t, p, http.MethodDelete, "")
	before := len(changes(t, p))
	play(t, p, 0, "image", "build", p.Stage.Env, "--yes")
	parts := 0
	for _, l := range changes(t, p)[before:] {
		if l.Method == http.MethodPut && strings.HasSuffix(l.Path, ".qcow2") {
			parts++
		}
	}
	if parts == 0 || parts > 4 {
		t.Errorf("another run sent %d parts", parts)
	}
	oneImage(t, p)
	play(t, p, 0, wipe(p, e)...)
}

// What image list tells programs.
func TestImageListAsJSON(t *testing.T) {
	t.Parallel()
	p, e := stageImage(t, "qcow2")
	play(t, p, 0, "image", "build", p.Stage.Env, "--yes")
	out, err := p.Command(t.Context(), "image", "list", p.Stage.Env, "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); tables++ {
		var doc map[string]any
		if err := d.Decode(&doc); err != nil {
			t.Fatal(err)
		}
	}
	if tables == 0 || !strings.Contains(string(out), e.Talos.SchematicID()) {
		t.Errorf("%d documents: %s", tables, out)
	}
	play(t, p, 0, wipe(p, e)...)
}

// Field report 58: a stream of zstd whose window is larger than what decoders
// take by default was not read. One of 128 MiB is, in one frame or several; and
// what is damaged, cut, or followed by something else is refused by name, before
// anything is imported.
func TestFieldReport58FormsOfZstd(t *testing.T) {
	t.Parallel()
	p, e := stageImage(t, "raw.zst")
	fetched := filepath.Join(t.TempDir(), "fetched.zst")
	fetch(t, p, e, fetched)
	whole := filepath.Join(t.TempDir(), "frames.zst")
	frames(t, fetched, whole)
	if one, two := content(t, p, fetched), content(t, p, whole); one != two {
		t.Errorf("two frames with a large window are another disk: %s and %s", one, two)
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(text)
	damaged[len(damaged)-1] ^= 1
	for name, spoil := range map[string]struct {
		data []byte
		want string
	}{
		"checksum": {damaged, "checksum"},
		"junk":     {append(bytes.Clone(text), "<html>"...), "follows"},
		"short":    {text[:len(text)*6/10], "ends"},
	} {
		file := filepath.Join(t.TempDir(), name+".zst")
		if err := os.WriteFile(file, spoil.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if said := play(t, p, 3, "image", "check", file); !strings.Contains(said, spoil.want) {
			t.Errorf("%s: %s", name, said)
		}
		if said := play(t, p, 1, "image", "build", p.Stage.Env, "--yes", "--from", file); !strings.Contains(said, spoil.want) {
			t.Errorf("%s: %s", name, said)
		}
	}
	if now := census(t, p); strings.Contains(now, "snapshot") {
		t.Errorf("imported: %s", now)
	}
	play(t, p, 0, "image", "build", p.Stage.Env, "--yes", "--from", whole)
	oneImage(t, p)
	play(t, p, 0, wipe(p, e)...)
}

// fetch is what a person does who carries an image to where no Factory is.
func fetch(t *testing.T, p *rehearsal.Play, e *estate.Estate, to string) {
	t.Helper()
	var body io.Reader = bytes.NewReader(e.Talos.Schematic())
	for _, call := range [][2]string{{http.MethodPost, "/schematics"}, {http.MethodGet, "/image/" + e.Talos.SchematicID() + "/" + e.Talos.Version + "/scaleway-amd64.raw.zst"}} {
		req, err := http.NewRequestWithContext(t.Context(), call[0], p.Access.Factory+call[1], body)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close(), os.WriteFile(to, data, 0o600)); err != nil || res.StatusCode >= 300 {
			t.Fatalf("%s: %d, %v", call[1], res.StatusCode, err)
		}
		body = nil
	}
}

// content is the digest of what is in a file.
func content(t *testing.T, p *rehearsal.Play, file string) string {
	t.Helper()
	out, err := p.Command(t.Context(), "image", "check", file, "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Value struct {
			Digest string `json:"digest"`
		} `json:"value"`
	}
	if err := json.Unmarshal(out, &doc); err != nil || doc.Value.Digest == "" {
		t.Fatalf("%v: %s", err, out)
	}
	return doc.Value.Digest
}

// frames writes a disk anew, as two frames with the largest window.
func frames(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	raw, err := zstd.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []io.Reader{io.LimitReader(raw, 1<<30+12345), raw} {
		w, err := zstd.NewWriter(out, zstd.WithWindowSize(128<<20), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(true))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(w, part)
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
