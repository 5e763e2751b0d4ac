package estate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// copyFull puts the full valid example into a directory of the test's own.
func copyFull(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/valid")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "full.yaml"), filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestLoadGathersSSHKeysWithoutComment(t *testing.T) {
	e, err := Load(copyFull(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Admin.PublicKeys) != 2 {
		t.Fatalf("got %d keys, want 2: %q", len(e.Admin.PublicKeys), e.Admin.PublicKeys)
	}
	for _, key := range e.Admin.PublicKeys {
		if fields := strings.Fields(key); len(fields) != 2 || fields[0] != "ssh-ed25519" {
			t.Errorf("got %q, want type and key alone", key)
		}
	}
}

func TestLoadWithoutEstateFile(t *testing.T) {
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "nowhere")} {
		_, err := Load(path)
		if problems := (Problems{}); !errors.As(err, &problems) || len(problems) != 1 {
			t.Errorf("%s: got %v, want one problem", path, err)
		}
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want an error that names it and is ErrNotExist", path, err)
		}
	}
}

// A pipe never ends; opening it would hang the command.
func TestLoadRefusesPipes(t *testing.T) {
	dir := copyFull(t)
	key := filepath.Join(dir, "keys", "second.pub")
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(key, 0o600); err != nil {
		t.Skipf("this system makes no pipes: %v", err)
	}
	wantRefused(t, dir, "admin.sshKeys[1]", "not a regular file")
}

func TestLoadChecksNamedFiles(t *testing.T) {
	for _, c := range []struct{ file, content, path, says string }{
		{"patches/common.yaml", "", "talos.patches.all[0]", "is empty"},
		{"patches/common.yaml", strings.Repeat("# comment\n", 110000), "talos.patches.all[0]", "larger than 1 MiB"},
		{"audit-policy.yaml", "a: [", "kubernetes.apiServer.auditPolicy", "not valid YAML"},
		{"audit-policy.yaml", "kind: Policy\n", "kubernetes.apiServer.auditPolicy", "not an audit policy"},
		{"pod-security.yaml", " \n", "kubernetes.admission[0].configuration", "is empty"},
		{"keys/second.pub", "-----BEGIN RSA PRIVATE KEY-----\n", "admin.sshKeys[1]", "PRIVATE KEY"},
		{"keys/second.pub", "hello\n", "admin.sshKeys[1]", "not an SSH public key"},
	} {
		dir := copyFull(t)
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, dir, c.path, c.says)
	}
}

func wantRefused(t *testing.T, dir, path, says string) {
	t.Helper()
	_, err := Load(dir)
	var problems Problems
	if !errors.As(err, &problems) {
		t.Errorf("%s: got %v, want problems", path, err)
		return
	}
	for _, p := range problems {
		if p.Path == path && strings.Contains(p.What+p.Why, says) && p.Line > 0 {
			return
		}
	}
	t.Errorf("no problem at %s that says %q in: %v", path, says, err)
}

// The example's private key text must not reach a message, whatever else is wrong.
func TestPrivateKeysAreNotRepeated(t *testing.T) {
	const secret = "AGE-SECRET-KEY-1QQQQ7777"
	for _, text := range []string{
		"apiVersion: bastide/v1\nkind: Estate\nname: " + secret + "\n",
		secret, "{" + secret + ": [", "name: age-secret-key-1qqqq7777",
	} {
		_, err := Parse("x.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), "PRIVATE KEY") {
			t.Errorf("%q: got %v, want a refusal of the key", text, err)
		} else if strings.Contains(strings.ToUpper(err.Error()), "QQQQ7777") {
			t.Errorf("the key is repeated: %v", err)
		}
	}
}

func TestHomeIsExpanded(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	e := &Estate{Dir: "/estates/a"}
	for name, want := range map[string]string{
		"~/.ssh/id.pub": filepath.Join(home, ".ssh/id.pub"), "p.yaml": "/estates/a/p.yaml", "../p.yaml": "/estates/p.yaml", "/x//y": "/x/y",
	} {
		if got := e.Path(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// What the defaults fill in is valid, private, and stays put when filled in again.
func TestDefaultsAreConservative(t *testing.T) {
	e, err := Load("testdata/valid/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := []any{e.Network.Mode, e.Network.Pods.String(), e.Network.Services.String(), e.Network.Gateway.Type,
		e.Admin.Door, e.API.LoadBalancer, e.ControlPlane.Disk.Size, e.ControlPlane.Disk.IOPS}
	want := []any{"private", "10.244.0.0/16", "10.96.0.0/12", "VPC-GW-S", "bastion", "LB-S", 20 * GB, 5000}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	again := *e
	Default(&again)
	if !reflect.DeepEqual(&again, e) {
		t.Error("defaults change what already has them")
	}
	empty := &Estate{}
	Default(empty)
	if len(empty.Admin.CIDRs) != 0 {
		t.Error("somebody is let in by default")
	}
	if empty.ControlPlane.Count != 3 {
		t.Errorf("control plane: got %d nodes by default, want 3", empty.ControlPlane.Count)
	}
}

func TestSizesReadBack(t *testing.T) {
	for text, want := range map[string]Size{"20GB": 20e9, "20GiB": 20 << 30, "512MiB": 512 << 20, "1TB": 1e12, "7MB": 7e6} {
		got, err := ParseSize(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: got %d (%s), %v", text, got, got, err)
		}
	}
	for _, text := range []string{"", "20", "GB", "20gb", "20 GB", "1.5GB", "-1GB", "0x1GB", "99999999999TB", "20GB "} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q: got %s, want an error", text, got)
		}
	}
}

func TestWarnings(t *testing.T) {
	e, err := Load("testdata/valid/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, w := range e.Warnings() {
		paths = append(paths, w.Path)
	}
	if got, want := strings.Join(paths, " "), "controlPlane.count controlPlane.type pools"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if e, err = Load(example); err != nil {
		t.Fatal(err)
	}
	if ws := e.Warnings(); len(ws) > 0 {
		t.Errorf("the shipped example warns: %v", ws)
	}
}
