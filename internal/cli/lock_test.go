package cli_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bastide/internal/cli"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/rehearsal"
	"bastide/internal/scaleway"
	"bastide/internal/sim"
	"bastide/internal/sim/api"
	"bastide/internal/store"
)

// stage is an environment and a region without nodes, for commands that end
// before anything is raised.
type stage struct {
	*testing.T
	*rehearsal.Stage
	region *sim.Region
	estate *estate.Estate
}

func newStage(t *testing.T) *stage {
	t.Helper()
	e, err := estate.Load("../../stories/testdata/small")
	if err != nil {
		t.Fatal(err)
	}
	s, err := rehearsal.Build(e, filepath.Join(t.TempDir(), "stage"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.Seed)
	if err != nil {
		t.Fatal(err)
	}
	seed, elsewhere, err := sim.ParseSeed(text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sim.Start(sim.Options{Listen: "127.0.0.1:0", Dir: s.Region, Speed: 100, Seed: seed, Elsewhere: elsewhere, Access: sim.Access{
		AccessKey: sim.AccessKey, SecretKey: "6a1b1b7e-0000-4000-8000-000000000001", Project: e.Scaleway.Project, Region: "fr-par", Zone: "fr-par-1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, kv := range s.Environ(r.Access) {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	t.Setenv("SCW_CONFIG_PATH", os.DevNull)
	return &stage{T: t, Stage: s, region: r, estate: e}
}

// run is a command without a terminal; all that it prints comes back.
func (s *stage) run(args ...string) (outcome.Code, string) {
	s.Helper()
	file := func(name string) *os.File {
		f, err := os.Create(filepath.Join(s.Dir, name))
		if err != nil {
			s.Fatal(err)
		}
		return f
	}
	in, out, errs := file("in"), file("out"), file("err")
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	code := cli.Main(ctx, cli.Streams{In: in, Out: out, Err: errs}, args)
	text := ""
	for _, f := range []*os.File{in, out, errs} {
		_ = f.Close()
		data, err := os.ReadFile(f.Name())
		if err != nil {
			s.Fatal(err)
		}
		text += string(data)
	}
	return code, text
}

// writes are the calls that could change something, to whatever.
func (s *stage) writes() []string {
	s.Helper()
	resp, err := http.Get(s.region.Access.URL + "/sim/requests")
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var log []api.Request
	if err := json.NewDecoder(resp.Body).Decode(&log); err != nil {
		s.Fatal(err)
	}
	var out []string
	for _, r := range log {
		if r.Mutating {
			out = append(out, r.Method+" "+r.Host+r.Path)
		}
	}
	return out
}

// hold takes the estate's lock as another run.
func (s *stage) hold() *store.Held {
	s.Helper()
	objects, _, err := scaleway.NewObjectStorage(scaleway.Options{Estate: s.estate})
	if err != nil {
		s.Fatal(err)
	}
	h, err := store.New(store.Options{Objects: objects, Bucket: s.estate.BucketName(), Estate: s.estate.Name}).
		Acquire(s.Context(), store.Request{Command: "bastide up of the other one"})
	if err != nil {
		s.Fatal(err)
	}
	return h
}

// Field report 33: what only looks leaves nothing behind: no call that changes
// anything, no bucket and no lock, also where it would refuse or ask.
func TestFieldReport33LookingLeavesNothing(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		code outcome.Code
		args []string
	}{
		{outcome.Done, []string{"validate", s.Env}},
		{outcome.Done, []string{"plan", s.Env}},
		{outcome.Changes, []string{"plan", s.Env, "--exit-code"}},
		{outcome.Done, []string{"render", "machines", s.Env}},
		{outcome.Done, []string{"unlock", s.Env}},
		{outcome.Done, []string{"unlock", s.Env, "00112233445566aa"}},
		{outcome.Refused, []string{"up", s.Env}},
		{outcome.Refused, []string{"plan", s.Env, "--dry_run"}},
		{outcome.Refused, []string{"up", s.Env, "--dry-run", "--yes"}},
		{outcome.Refused, []string{"up", s.Env, "DRY_RUN=true"}},
		{outcome.Refused, []string{"kubeconfig", s.Env}},
		{outcome.Done, []string{"destroy", s.Env, "--yes"}},
	} {
		if code, text := s.run(c.args...); code != c.code {
			t.Errorf("bastide %s: exit code %d, want %d\n%s", strings.Join(c.args, " "), code, c.code, text)
		}
	}
	if got := s.writes(); len(got) > 0 {
		t.Errorf("calls that change something: %v", got)
	}
}

// While another run holds the lock, what would change something is refused with
// that run's name before it changes anything; what looks is not in the way.
func TestALockedEstateIsNotChanged(t *testing.T) {
	s := newStage(t)
	h := s.hold()
	before := len(s.writes())
	for _, args := range [][]string{{"up", s.Env, "--yes"}, {"destroy", s.Env, "--yes"}} {
		code, text := s.run(args...)
		for _, part := range []string{"small is locked", "bastide up of the other one", h.ID, "bastide unlock " + s.Env + " " + h.ID} {
			if code != outcome.Refused || !strings.Contains(text, part) {
				t.Errorf("bastide %s: exit code %d, want 3, and %q in:\n%s", args[0], code, part, text)
			}
		}
	}
	for _, w := range s.writes()[before:] {
		// Asking for the lock is a write that the store refuses.
		if !strings.HasPrefix(w, "PUT s3/"+s.estate.BucketName()+"/") {
			t.Errorf("a locked estate saw %s", w)
		}
	}
	if code, text := s.run("unlock", s.Env); code != outcome.Done || !strings.Contains(text, h.ID) || !strings.Contains(text, "bastide up of the other one") {
		t.Errorf("unlock: %d\n%s", code, text)
	}
	if code, text := s.run("unlock", s.Env, "--output", "json"); code != outcome.Done || !strings.Contains(text, `"locked":true`) || !strings.Contains(text, h.ID) {
		t.Errorf("unlock, JSON: %d\n%s", code, text)
	}
	if code, text := s.run("unlock", s.Env, "00112233445566aa"); code != outcome.Refused || !strings.Contains(text, h.ID) {
		t.Errorf("unlock with another id: %d\n%s", code, text)
	}
	if code, text := s.run("plan", s.Env); code != outcome.Done {
		t.Errorf("plan: %d\n%s", code, text)
	}
	if code, text := s.run("unlock", s.Env, h.ID); code != outcome.Done || !strings.Contains(text, "is unlocked") {
		t.Errorf("unlock with the id: %d\n%s", code, text)
	}
	if code, text := s.run("destroy", s.Env, "--yes"); code != outcome.Done {
		t.Errorf("destroy after unlock: %d\n%s", code, text)
	}
}
