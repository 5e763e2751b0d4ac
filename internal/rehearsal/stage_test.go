package rehearsal

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"bastide/internal/estate"
	"bastide/internal/vault"
)

const anyKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPkNpmfZqJsqCYMOyx7gL4iTn0Tt4Xy9yMvmMMnxTHZ somebody\n"

// A copy has the files that the estate names, wherever they lie, and nothing else
// that lies beside them: no bundle of the user's, also none that was put aside.
func TestTheCopyHasWhatTheFileNames(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "envs", "staging")
	if err := os.CopyFS(dir, os.DirFS("../../examples/private")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, estate.FileName)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	inline := regexp.MustCompile(`(?m)^  sshKeys:\n    - .*$`)
	if !inline.Match(text) {
		t.Fatal("the example's SSH key is not where this test looks for it")
	}
	changed := inline.ReplaceAllString(string(text), "  sshKeys: [../../keys/me.pub, ../team.pub]")
	for path, text := range map[string]string{
		filepath.Join(dir, "other.yaml"): changed, filepath.Join(top, "keys", "me.pub"): anyKey, filepath.Join(top, "envs", "team.pub"): anyKey,
		filepath.Join(dir, vault.FileName): "sealed", filepath.Join(dir, vault.FileName+".before-1"): "sealed too", filepath.Join(dir, "id_ed25519"): "mine",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, err := estate.Load(filepath.Join(dir, "other.yaml")) // and not the one beside it
	if err != nil {
		t.Fatal(err)
	}
	s, err := Build(e, filepath.Join(t.TempDir(), "stage"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	copied, err := estate.Load(s.Env)
	if err != nil {
		t.Fatal(err)
	}
	if len(copied.Admin.PublicKeys) != 1 || !slices.Equal(copied.Admin.PublicKeys, e.Admin.PublicKeys) {
		t.Errorf("keys %v, want %v", copied.Admin.PublicKeys, e.Admin.PublicKeys)
	}
	want := []string{estate.FileName, vault.FileName}
	for _, name := range e.Beside() {
		want = append(want, filepath.Base(name))
	}
	var got []string
	err = filepath.WalkDir(filepath.Join(s.Dir, "env"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, d.Name())
		}
		return err
	})
	slices.Sort(want)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("copied %v, want %v, %v", got, want, err)
	}
}
