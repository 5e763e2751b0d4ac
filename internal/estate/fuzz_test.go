package estate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No text makes Parse panic; each refusal names a place inside the text and
// says what, why and what to do; what is accepted is valid and stays so.
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
	const head = "apiVersion: bastide/v1\nkind: Estate\n"
	for _, hostile := range []string{
		"", "\x00", "\xff\xfe", "a: &a [*a]", head + "name: *x", head + "? [a, b]\n: c", head + "? {a: b}\n: c\n", head + "<<: {name: x}",
		head + strings.Repeat("a: {", 5000), head + "name: " + strings.Repeat("[", 12000), strings.Repeat("- ", 30000),
		head + "pools: [" + strings.Repeat("{count: 500, name: a, type: PLAY2-NANO},", 3000) + "]",
		head + "network: {pods: 0.0.0.0/0, cidr: 10.0.0.0/0, services: ::/0}", head + "controlPlane: {count: 9999999999, disk: {size: 999999999999TB}}",
		head + "talos: {patches: {nodes: {\"a[\\\"b\": [], \".\": [], \"\": []}}}",
	} {
		f.Add([]byte(hostile))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := Parse("x.yaml", text)
		if err == nil {
			if err := Validate(e); err != nil {
				t.Fatalf("accepted, but not valid: %v", err)
			}
			if len(e.Nodes()) > maxAttached {
				t.Fatalf("accepted with %d nodes", len(e.Nodes()))
			}
			return
		}
		var problems Problems
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("got %T %v, want problems", err, err)
		}
		lines := strings.Count(string(text), "\n") + strings.Count(string(text), "\r") + strings.Count(string(text), "\u0085") +
			strings.Count(string(text), "\u2028") + strings.Count(string(text), "\u2029") + 2 // YAML ends lines at all of these
		for i, p := range problems {
			if p.Line < 1 || p.Line > lines || p.Column < 1 || p.What == "" || p.Why == "" || p.Hint == "" {
				t.Fatalf("not whole, or outside of the text (%d lines): %+v", lines, p)
			}
			if i > 0 && p.Line < problems[i-1].Line {
				t.Fatalf("not in the order of the file: %v before %v", problems[i-1], p)
			}
		}
	})
}
