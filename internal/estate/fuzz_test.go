package estate

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// No text makes Parse panic; each refusal names a place inside the text and
// says what, why and what to do; what is accepted is valid, stays so, and is
// the same estate when it is written anew.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/valid/*.yaml", "testdata/invalid/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	full, err := os.ReadFile("testdata/valid/full.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range mutations {
		f.Add(mutate(f, full, m.at, m.value))
	}
	const head = "apiVersion: bastide/v1\nkind: Estate\n"
	for _, hostile := range []string{
		"", "\x00", "\xff\xfe", "\ufeff" + head, "a: &a [*a]", head + "name: *x", head + "? [a, b]\n: c", head + "? {a: b}\n: c\n", head + "<<: {name: x}",
		head + strings.Repeat("a: {", 5000), head + "name: " + strings.Repeat("[", 12000), strings.Repeat("- ", 30000),
		head + "pools: [" + strings.Repeat("{count: 500, name: a, type: PLAY2-NANO},", 300) + "]",
		head + "network: {pods: 0.0.0.0/0, cidr: 10.0.0.0/0, services: ::/0}", head + "controlPlane: {count: 9999999999, disk: {size: 999999999999TB}}",
		head + "talos: {patches: {nodes: {\"a[\\\"b\": [], \".\": [], \"\": []}}}",
		"b: &b [x,x,x,x]\nc: &c [*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c]\ne: [*d,*d,*d,*d]\n" + head, head + "name: \"\\uD800\"", strings.ReplaceAll(head, "\n", "\u2028"),
	} {
		f.Add([]byte(hostile))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := Parse("x.yaml", text)
		if err != nil {
			wantPlaces(t, text, err)
			return
		}
		if err := Validate(e); err != nil {
			t.Fatalf("accepted, but not valid: %v", err)
		}
		if len(e.Nodes()) > maxAttached {
			t.Fatalf("accepted with %d nodes", len(e.Nodes()))
		}
		var tree yaml.Node
		if err := yaml.Unmarshal(text, &tree); err != nil {
			t.Fatalf("accepted, but not YAML: %v", err)
		}
		anew, err := yaml.Marshal(&tree)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("x.yaml", anew)
		if err != nil {
			t.Fatalf("refused when written anew: %v\n%s", err, anew)
		}
		if !reflect.DeepEqual(e, again) {
			t.Fatalf("another estate when written anew:\n%+v\n%+v", e, again)
		}
	})
}

// wantPlaces checks that an error is of whole problems, in order, each inside
// the text.
func wantPlaces(t *testing.T, text []byte, err error) {
	t.Helper()
	var problems Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("got %T %v, want problems", err, err)
	}
	lines := yamlLines(text)
	for i, p := range problems {
		if p.File == "" || p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.What == "" || p.Why == "" || p.Hint == "" {
			t.Fatalf("not whole, or outside of the text (%d lines): %+v", len(lines), p)
		}
		if width := utf8.RuneCountInString(lines[p.Line-1]); p.Column > width+1 {
			t.Fatalf("outside of its line, which has %d characters: %+v", width, p)
		}
		if i > 0 && (p.Line < problems[i-1].Line || p.Line == problems[i-1].Line && p.Column < problems[i-1].Column) {
			t.Fatalf("not in the order of the file: %v before %v", problems[i-1], p)
		}
	}
}

// yamlLines cuts a text where YAML ends lines.
func yamlLines(text []byte) []string {
	return strings.Split(lineBreaks.Replace(strings.TrimPrefix(string(text), "\ufeff")), "\n")
}

// Whatever stands in the files that an estate names, reading it ends in a
// refusal that names the place in the estate, or in usable values.
func FuzzNamedFiles(f *testing.F) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIU4iuVzrmvsScxT00jocBpiiEcqjE+8doGxCaJd4rbI"
	f.Add([]byte("machine: {sysctls: {a: b}}\n"), []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\n"), []byte(key+" admin\n"))
	f.Add([]byte("\x00"), []byte("a: &a [*a, *a]\nb: *a\n"), []byte("from=\"*\" "+key))
	f.Add([]byte(" \n"), []byte("- x\n"), []byte(key+"\n"+key))
	f.Add([]byte("x"), []byte("? {a: b}\n: c\n"), []byte("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA"))
	f.Add([]byte("x"), []byte("kind: [Policy]\n"), []byte("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAAE= x"))
	f.Add([]byte("x"), []byte("b: &b [x,x,x,x]\nc: &c [*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c]\nkind: [*d,*d]\n"), []byte("sk-ssh-ed25519@openssh.com AAAA"))
	dir := f.TempDir()
	text := mutate(f, mutate(f, mustRead(f, "testdata/valid/minimal.yaml"), "admin.sshKeys", "[key.pub]"), "talos.patches", "{all: [patch.yaml]}")
	text = mutate(f, text, "kubernetes.apiServer", "{auditPolicy: audit.yaml}")
	write := func(t testing.TB, name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(f, FileName, text)
	f.Fuzz(func(t *testing.T, patch, audit, key []byte) {
		write(t, "patch.yaml", patch)
		write(t, "audit.yaml", audit)
		write(t, "key.pub", key)
		e, err := Load(dir)
		if err != nil {
			wantPlaces(t, text, err)
			return
		}
		if len(e.Admin.PublicKeys) != 1 || strings.ContainsAny(e.Admin.PublicKeys[0], "\r\n") || len(strings.Fields(e.Admin.PublicKeys[0])) != 2 {
			t.Fatalf("the key became %q", e.Admin.PublicKeys)
		}
	})
}

func mustRead(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
