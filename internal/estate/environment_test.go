package estate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// An environment is named by a person: with a slash too many, through a link,
// with a space in it. All of these are the same estate.
func TestWaysToNameAnEnvironment(t *testing.T) {
	root, text := t.TempDir(), string(mustRead(t, "testdata/valid/minimal.yaml"))
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	put("plain/estate.yaml", text)
	put("sp ace é/estate.yaml", text)
	put("other.yaml", text)
	put("bom/estate.yaml", "\ufeff"+text)
	put("crlf/estate.yaml", strings.ReplaceAll(text, "\n", "\r\n"))
	put("no end/estate.yaml", strings.TrimSuffix(text, "\n"))
	put("linked/nothing", "")
	link("plain", "link")
	link("../plain/estate.yaml", "linked/estate.yaml")
	for _, name := range []string{"plain", "plain/", "plain//", "plain/.", "plain/../plain", "plain/estate.yaml", "sp ace é", "other.yaml", "bom", "crlf", "no end", "link", "link/", "linked"} {
		e, err := Load(root + "/" + name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if e.Name != "tiny" {
			t.Errorf("%s: read the estate %q", name, e.Name)
		}
	}
}

// What is no environment is refused at once, with its name, whatever lies there:
// nothing is waited for and nothing large is read.
func TestWhatIsNoEnvironment(t *testing.T) {
	root, text := t.TempDir(), string(mustRead(t, "testdata/valid/minimal.yaml"))
	at := func(name string) string { return filepath.Join(root, name) }
	for _, dir := range []string{"empty", "dir/estate.yaml", "pipe", "loop", "device", "big", "closed", "tab", "latin", "wide", "zero"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		"tab/estate.yaml": strings.ReplaceAll(text, "\n  ", "\n\t"), "latin/estate.yaml": "# caf\xe9\n" + text, "wide/estate.yaml": "\xff\xfea\x00p\x00",
		"zero/estate.yaml": "", "closed/estate.yaml": text, "big/estate.yaml": "",
	} {
		if err := os.WriteFile(at(name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		syscall.Mkfifo(at("pipe/estate.yaml"), 0o644), os.Symlink("estate.yaml", at("loop/estate.yaml")), os.Symlink("/dev/zero", at("device/estate.yaml")),
		os.Truncate(at("big/estate.yaml"), 100<<20), os.Chmod(at("closed/estate.yaml"), 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"none": "there is no estate file here", "empty": "there is no estate file here", "caf\xe9": "there is no estate file here", "dir": "it is not a regular file", "pipe": "it is not a regular file",
		"pipe/estate.yaml": "it is not a regular file", "loop": "too many levels of symbolic links", "device": "it is not a regular file",
		"big": "estate.yaml:1:1: is larger than 128 KiB", "tab": "estate.yaml:6:1: is not valid YAML", "latin": "estate.yaml:1:6: is not UTF-8 text", "wide": "estate.yaml:1:1: is not UTF-8 text",
		"zero": "estate.yaml:1:1: is empty", "tab/estate.yaml/": "not a directory", strings.Repeat("x", 5000): "file name too long", "closed": "permission denied",
	} {
		if name == "closed" && os.Geteuid() == 0 {
			continue // nothing is closed to root
		}
		_, err := Load(root + "/" + name)
		var problems Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want %q", name, err, want)
			continue
		}
		for _, p := range problems {
			if !strings.HasPrefix(p.File, root) || p.What == "" || p.Why == "" || p.Hint == "" {
				t.Errorf("%.40s: not whole: %+v", name, p)
			}
		}
	}
	for _, name := range []string{"", "/dev/zero", "/dev/null"} {
		if _, err := Load(name); err == nil || !strings.Contains(err.Error(), "name the") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
