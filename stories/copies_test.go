package stories

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"bastide/internal/vault"
)

// A SIGKILL before and after each write of a copy: the next run continues, and in
// the end both stores have the bundle, once.
func TestKilledWhileCopying(t *testing.T) {
	p, e := performOn(t, small)
	const copies = "~/secrets/[0-9]{6}-"
	kills := 0
	for _, k := range []kill{{1, "before", copies}, {1, "after", copies}, {1, "before", copies}, {1, "after", copies}} {
		if s := strike(t, p, k, "up", p.Stage.Env, "--yes"); s.killed {
			kills++
		}
	}
	// Two of them hit the estate's bucket, two the replica: what was written before a
	// kill is there for the next run.
	t.Logf("%d kills", kills)
	if kills != 4 {
		t.Errorf("%d of 4 kills hit the write of a copy", kills)
	}
	if s := strike(t, p, kill{1, "before", ofTheEstate}, "up", p.Stage.Env, "--yes"); !s.killed {
		t.Error("the copies done, up changed nothing of the estate")
	}
	file := filepath.Join(p.Stage.Env, vault.FileName)
	bundle, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"store", "replica"} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		play(t, p, 0, "secrets", "restore", p.Stage.Env, "--from", from)
		if back, err := os.ReadFile(file); err != nil || !bytes.Equal(back, bundle) {
			t.Errorf("from the %s came %d bytes, %v", from, len(back), err)
		}
	}
	play(t, p, 0, wipe(p, e)...)
	play(t, p, 3, "secrets", "restore", p.Stage.Env) // no copy is left
}
