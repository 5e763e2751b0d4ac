package image

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bastide/internal/image/format"
)

// What is checked of a raw disk is checked of one in a qcow2 file.
func TestTheDiskInsideAQCOW2(t *testing.T) {
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip("qemu-img is not installed (Debian: qemu-utils); this test looks at files that it wrote")
	}
	raw := talos().Bytes()
	empty := bytes.Clone(raw)
	clear(empty[1<<20 : 1<<20+512])
	for name, c := range map[string]struct {
		disk   []byte
		reason format.Reason
	}{
		"twice":                 {append(bytes.Clone(raw), raw...), format.TrailingJunk},
		"far behind":            {append(append(bytes.Clone(raw), make([]byte, 600<<20)...), 1), format.TrailingJunk},
		"an empty EFI":          {empty, format.NotTalos},
		"enlarged, and nothing": {append(bytes.Clone(raw), make([]byte, 600<<20)...), ""},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "disk.raw"), c.disk, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("qemu-img", strings.Fields("convert -f raw -O qcow2 -o cluster_size=8k disk.raw disk.qcow2")...)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		file, err := os.ReadFile(filepath.Join(dir, "disk.qcow2"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Check(t.Context(), local{bytes.NewReader(file)}, Options{})
		if r := format.Refused(err); (err == nil) != (c.reason == "") || r != nil && r.Reason != c.reason {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// grown is a file to which somebody writes while it is read.
type grown struct {
	*bytes.Reader
	length int64
}

func (g grown) At() io.ReaderAt { return g.Reader }
func (g grown) Length() int64   { return g.length }

// A file that has another length at its end than when it was opened is not taken:
// nobody knows what it will be.
func TestAFileThatGrowsIsNotTaken(t *testing.T) {
	raw := talos().Bytes()
	for name, p := range map[string][]byte{"raw": append(bytes.Clone(raw), make([]byte, 4096)...), "zst": zst(t, raw)} {
		sink := &memory{}
		_, err := Convert(t.Context(), grown{bytes.NewReader(p), int64(len(p)) - 100}, sink, Options{})
		if r := format.Refused(err); r == nil || r.Reason != format.Truncated || !strings.Contains(r.Text, "when it was opened") || sink.heads != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
