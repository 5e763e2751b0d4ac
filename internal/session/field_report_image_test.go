package session_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"bastide/internal/outcome"
	"bastide/internal/session"
)

// Field report 58: a stream of zstd whose window is larger than what decoders
// take by default was not read. One of 128 MiB is, in one frame or several; and
// what is damaged, or followed by something else, is refused by name.
func TestFieldReport58FormsOfZstd(t *testing.T) {
	if testing.Short() {
		t.Skip("runs without -short: see unit in the Makefile")
	}
	g := newGallery(t)
	fetched := g.fetched("raw.zst")
	whole := filepath.Join(t.TempDir(), "frames.zst")
	frames(t, fetched, whole)
	first, err := session.CheckImage(t.Context(), fetched, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := session.CheckImage(t.Context(), whole, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if first.Result.Digest != second.Result.Digest || first.Result.VirtualSize != second.Result.VirtualSize {
		t.Errorf("two frames with a large window are another disk: %+v and %+v", second.Result, first.Result)
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]struct {
		data []byte
		want string
	}{
		"checksum": {append(append([]byte(nil), text[:len(text)-1]...), text[len(text)-1]^1), "checksum"},
		"junk":     {append(append([]byte(nil), text...), "<html>"...), "follows"},
		"short":    {text[:len(text)*6/10], "ends"},
	} {
		file := filepath.Join(t.TempDir(), name+".zst")
		if err := os.WriteFile(file, spoil.data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := session.CheckImage(t.Context(), file, 0, nil)
		want(t, err, outcome.Refused, spoil.want)
		if name == "checksum" { // which shows last, when all parts but the first are sent
			want(t, g.build(file), outcome.Refused, spoil.want)
		}
	}
	if s := g.snapshots(); len(s) > 0 {
		t.Errorf("imported: %v", s)
	}
	g.mustBuild(whole)
	same(t, "snapshots", g.snapshots(), gvisorSnapshot+" available")
}

// frames writes the disk anew, as two frames with the largest window.
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
