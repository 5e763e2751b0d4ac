package estate

import (
	"path/filepath"
	"testing"
)

const example = "../../examples/private"

// The example that the project ships loads, and says what a reader expects.
func TestExampleLoads(t *testing.T) {
	e, err := Load(example)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range e.Nodes() {
		names = append(names, n.Name)
	}
	want := []string{"staging-cp-1", "staging-cp-2", "staging-cp-3", "staging-system-1", "staging-system-2"}
	if len(names) != len(want) {
		t.Fatalf("nodes: got %v, want %v", names, want)
	}
	for i := range want {
		if names[i] != want[i] {
			t.Errorf("node %d: got %s, want %s", i, names[i], want[i])
		}
	}
	if len(e.Admin.PublicKeys) != 1 {
		t.Errorf("public keys: got %q, want one", e.Admin.PublicKeys)
	}
	if e.Dir != filepath.Clean(example) {
		t.Errorf("dir: got %s", e.Dir)
	}
	byFile, err := Load(filepath.Join(example, FileName))
	if err != nil || byFile.Name != e.Name {
		t.Errorf("by file: got %v, %v", byFile, err)
	}
}
