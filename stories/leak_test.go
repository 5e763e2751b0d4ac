package stories

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bastide/internal/rehearsal"
	"bastide/internal/sim/program"
	"bastide/internal/vault"
)

// No secret of the bundle, no password of the database and no key of the replica appears in any output,
// log, request log, process argument or stored object of a whole life. Every
// single one is searched for.
func TestNoSecretLeaks(t *testing.T) {
	t.Parallel()
	kubectl, talosctl := program.Need(t, "kubectl"), program.Need(t, "talosctl")
	p, e := performOn(t, withReplica(t, example))
	secrets := append(bundleSecrets(t, p), vault.NewSecret(p.Access.ElsewhereSecret))
	arguments := watchArguments(t)
	env := p.Stage.Env
	addDatabase(t, p)
	said := map[string]string{
		"plan before":      play(t, p, 0, "plan", env),
		"up":               play(t, p, 0, "up", env, "--yes"),
		"up, JSON":         play(t, p, 0, "up", env, "--yes", "--output", "json"),
		"plan, JSON":       play(t, p, 0, "plan", env, "--output", "json"),
		"status":           play(t, p, 0, "status", env),
		"status, JSON":     play(t, p, 0, "status", env, "--output", "json"),
		"render":           play(t, p, 0, "render", "machines", env),
		"fingerprint":      play(t, p, 0, "secrets", "fingerprint", env),
		"door, kubectl":    play(t, p, 0, "door", env, "--", kubectl, "get", "nodes"),
		"door, talosctl":   play(t, p, 0, "door", env, "--", talosctl, "version"),
		"a changed config": changeConfig(t, p),
		"a new password":   newPassword(t, p, &secrets),
		"request log":      text(t, p, "/sim/requests"),
		"doctor":           play(t, p, 0, "doctor", env),
		"restore":          play(t, p, 0, "secrets", "restore", env),
		"state":            text(t, p, "/sim/state"),
		"faults":           text(t, p, "/sim/faults"),
	}
	stored := 0
	for name, content := range files(t, p.Stage) { // the estate's bucket, as the region keeps it
		if strings.Contains(name, "/objects/") {
			said["object "+name] = content
			stored++
		}
	}
	if stored < 2 {
		t.Errorf("only %d objects are stored; proof and journals were expected", stored)
	}
	said["destroy"] = play(t, p, 0, wipe(p, e)...)
	for name, content := range files(t, p.Stage) {
		said["file "+name] = content
	}
	delete(said, "file "+filepath.Join(p.Stage.Region, "region.json")) // how clients reach the region, the keys among it
	said["process arguments"] = arguments()
	if len(secrets) < 10 {
		t.Fatalf("only %d secrets to search for", len(secrets))
	}
	for where, content := range said {
		for i, secret := range secrets {
			if strings.Contains(content, secret.Reveal()) {
				t.Errorf("secret %d of %s is in: %s", i, e.Name, where)
			}
		}
	}
	t.Logf("searched %d places for %d secrets", len(said), len(secrets))
}

func bundleSecrets(t *testing.T, p *rehearsal.Play) []vault.Secret {
	t.Helper()
	var identity string
	for _, kv := range p.Stage.Environ(p.Access) {
		if v, ok := strings.CutPrefix(kv, vault.IdentityVariable+"="); ok {
			identity = v
		}
	}
	b, err := vault.File{Path: filepath.Join(p.Stage.Env, vault.FileName)}.Load(vault.Keys{IdentityFile: identity}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return b.Secrets()
}

// changeConfig changes every node's configuration, so that a plan with its
// differences and an up that applies them are among what is searched.
func changeConfig(t *testing.T, p *rehearsal.Play) string {
	t.Helper()
	patch := filepath.Join(p.Stage.Env, "patches", "common.yaml")
	text, err := os.ReadFile(patch)
	if err != nil {
		t.Fatal(err)
	}
	text = append(bytes.TrimRight(text, "\n"), []byte("\n    vm.swappiness: \"10\"\n")...) // under sysctls
	if err := os.WriteFile(patch, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out := play(t, p, 2, "plan", p.Stage.Env, "--exit-code")
	if !strings.Contains(out, "vm.swappiness") {
		t.Errorf("the plan does not show what changes in the configuration:\n%s", out)
	}
	return out + play(t, p, 0, "up", p.Stage.Env, "--yes")
}

// files reads what is left on disk, but for the sealed bundle, the throwaway
// keys themselves, and the simulated nodes' own disks.
func files(t *testing.T, s *rehearsal.Stage) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(s.Dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "volumes" || d.Name() == "run") && filepath.Dir(file) == s.Region {
			return fs.SkipDir
		}
		if d.Type().IsRegular() {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			out[file] = string(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// watchArguments collects the arguments of every process that this user runs,
// again and again, until the returned function is called.
func watchArguments(t *testing.T) func() string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	seen := map[string]bool{}
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, f := range lines {
				if line, err := os.ReadFile(f); err == nil { // a process that has ended is no matter
					seen[string(line)] = true
				}
			}
			<-tick.C
		}
	})
	return func() string {
		cancel()
		wg.Wait()
		var b strings.Builder
		for line := range seen {
			b.WriteString(strings.ReplaceAll(line, "\x00", " ") + "\n")
		}
		return b.String()
	}
}
