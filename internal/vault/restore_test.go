package vault

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bastide/internal/outcome"
)

// A copy takes its place; another bundle that is there is never lost.
func TestRestore(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), FileName)}
	one, other := []byte("-----BEGIN AGE ENCRYPTED FILE-----\none\n"), []byte("-----BEGIN AGE ENCRYPTED FILE-----\nother\n")
	want := func(path string, content []byte) {
		t.Helper()
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, content) {
			t.Errorf("%s holds %q, %v; want %q", path, have, err, content)
		}
	}
	for range 2 { // the second time it is there already
		if aside, err := f.Restore(one, false); err != nil || aside != "" {
			t.Fatal(aside, err)
		}
		want(f.Path, one)
	}
	if _, err := f.Restore(other, false); outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("another bundle: %v", err)
	}
	want(f.Path, one)
	if _, err := f.Restore([]byte("machine: secret"), true); outcome.CodeOf(err) != outcome.Refused {
		t.Errorf("what is not encrypted: %v", err)
	}
	want(f.Path, one)
	var aside string
	for _, next := range [][]byte{other, one, other} { // back and forth
		have, err := os.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		if aside, err = f.Restore(next, true); err != nil {
			t.Fatal(err)
		}
		want(f.Path, next)
		want(aside, have)
	}
	if err := os.WriteFile(f.Path+".before-"+Digest(other)[:16], []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Restore(one, true); outcome.CodeOf(err) != outcome.Failed {
		t.Errorf("with the name aside taken: %v", err)
	}
	want(f.Path, other)
	info, err := os.Stat(f.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(f.Path), ".secrets-*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}
