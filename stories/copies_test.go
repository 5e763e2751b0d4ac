package stories

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bastide/internal/rehearsal"
	"bastide/internal/sim/api"
	"bastide/internal/vault"
)

// A SIGKILL before and after each write of a copy: the next run continues, and in
// the end both stores have the bundle, once.
func TestKilledWhileCopying(t *testing.T) {
	t.Parallel()
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

// The bundle of an estate that runs is changed: up copies it and changes nothing
// else; without a change it writes nothing, and lists the replica once.
func TestABundleThatChanges(t *testing.T) {
	t.Parallel()
	p, e := performOn(t, small)
	play(t, p, 0, "up", p.Stage.Env, "--yes")
	play(t, p, 0, "plan", p.Stage.Env, "--exit-code")
	file := filepath.Join(p.Stage.Env, vault.FileName)
	bundle, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// As if encrypted again: age takes it, and its digest is another.
	if err := os.WriteFile(file, append(bundle, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	before := len(requests(t, p))
	if out := play(t, p, 3, "up", p.Stage.Env); !strings.Contains(out, "has no copy of the secrets bundle as it is now") {
		t.Errorf("up does not say what it would do:\n%s", out)
	}
	for _, r := range requests(t, p)[before:] {
		if r.Mutating {
			t.Errorf("an up that was not confirmed called %s %s%s", r.Method, r.Host, r.Path)
		}
	}
	before = len(requests(t, p))
	play(t, p, 0, "up", p.Stage.Env, "--yes")
	copied := 0
	for _, r := range requests(t, p)[before:] {
		switch {
		case !r.Mutating:
		case strings.Contains(r.Path, "/secrets/000002-"):
			copied++
		case r.Host != "s3": // lock and journal are there
			t.Errorf("up called %s %s%s", r.Method, r.Host, r.Path)
		}
	}
	if copied != 2 {
		t.Errorf("%d copies were written, want 2", copied)
	}
	before = len(requests(t, p))
	play(t, p, 0, "up", p.Stage.Env, "--yes")
	asked := 0
	for _, r := range requests(t, p)[before:] {
		if r.Mutating {
			t.Errorf("a second up called %s %s%s", r.Method, r.Host, r.Path)
		}
		if r.Host == "elsewhere" {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("the replica was asked %d times, want once", asked)
	}
	play(t, p, 0, wipe(p, e)...)
}

func requests(t *testing.T, p *rehearsal.Play) (out []api.Request) {
	t.Helper()
	if err := p.Page(t.Context(), "/sim/requests", &out); err != nil {
		t.Fatal(err)
	}
	return out
}
