// Package stories runs the real binary as a user does: one script per command
// of the README, each with its output as text, so that a change of behaviour is
// a diff that a person can read. Scripts that raise an estate run the simulated
// region, its etcd and its kube-apiserver for real. All of them have regions of
// their own and wait more than they compute, so they run beside each other.
//
//	go test ./stories -run TestStories/plan       one story
//	go test ./stories -update                     rewrite the expected output
package stories

import (
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"bastide/internal/sim/program"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

// bastide is the binary under test.
var bastide string

func TestMain(m *testing.M) {
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64() // once, because tests that run at a time share it
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	bastide = os.Getenv("BASTIDE")
	if bastide == "" {
		dir, err := os.MkdirTemp("", "bastide-stories-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		bastide = filepath.Join(dir, "bastide")
		build := exec.Command("go", "build", "-o", bastide, "../cmd/bastide")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			panic("the binary under test did not build: " + err.Error())
		}
	}
	return m.Run()
}

// TestStories runs the scripts. Those under testdata/script need nothing but
// the binary; those under testdata/estate raise one and need kube-apiserver.
func TestStories(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: setup, UpdateScripts: *update, Cmds: commands, RequireExplicitExec: true})
}

// setup gives a script the binary, a home of its own and no credential but
// those that it sets.
func setup(env *testscript.Env) error {
	bin := filepath.Join(env.WorkDir, ".bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(bastide, filepath.Join(bin, "bastide")); err != nil {
		return err
	}
	example, err := filepath.Abs("../examples/private")
	if err != nil {
		return err
	}
	estates, err := filepath.Abs("testdata/estates")
	if err != nil {
		return err
	}
	home := filepath.Join(env.WorkDir, ".home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	tools := program.Dir(os.Getenv)
	env.Setenv("PATH", bin+string(os.PathListSeparator)+tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	env.Setenv("HOME", home)
	env.Setenv("EXAMPLE", example)
	env.Setenv("ESTATES", estates)
	env.Setenv("BASTIDE_TOOLS", tools)
	env.Setenv("NO_COLOR", "1")
	env.Setenv("LANG", "C.UTF-8")
	return nil
}

// TestEstate runs the scripts that raise an estate on the simulated region. They
// need the programs that make builds; without them they are skipped, except in
// CI, where that is a failure.
func TestEstate(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kube-apiserver", "kubectl", "talosctl", "scw"} {
		program.Need(t, name)
	}
	testscript.Run(t, testscript.Params{Dir: "testdata/estate", Setup: setup, UpdateScripts: *update, Cmds: commands, RequireExplicitExec: true})
}
