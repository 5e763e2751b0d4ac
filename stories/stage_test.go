package stories

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/rehearsal"
	"bastide/internal/sim/program"
)

// perform sets a stage for the example estate and opens the region on it.
func perform(t *testing.T) (*rehearsal.Play, *estate.Estate) {
	t.Helper()
	return performOn(t, example)
}

// performOn does it for the estate in a folder.
func performOn(t *testing.T, dir string) (*rehearsal.Play, *estate.Estate) {
	t.Helper()
	program.Need(t, "kube-apiserver")
	e, err := estate.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := rehearsal.Build(e, filepath.Join(t.TempDir(), "stage"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p, err := rehearsal.Open(t.Context(), s, bastide, 20, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, e
}

// withReplica is a copy of an environment whose file names a replica.
func withReplica(t *testing.T, env string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(env)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, estate.FileName)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("\ntalos:"), []byte("\nstore: {replica: {endpoint: https://s3.example.net, region: eu-west-1, bucket: copies}}\n\ntalos:"), 1)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// until runs a command and hands its process over after some events of its
// progress, so that a moment of a run can be named without a clock. It returns
// the exit code, -1 when a signal ended it.
func until(t *testing.T, cmd *exec.Cmd, events int, then func(*os.Process)) int {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"type":"event"`) {
			if events--; events == 0 {
				then(cmd.Process)
			}
		}
	}
	_ = cmd.Wait() // the exit code says it
	return cmd.ProcessState.ExitCode()
}

// world is what the region says exists and was asked.
type world struct {
	Owned map[string][]struct {
		Kind string `json:"kind"`
		ID   string `json:"id"`
	} `json:"owned"`
}

func look(t *testing.T, p *rehearsal.Play) world {
	t.Helper()
	var w world
	if err := p.Page(t.Context(), "/sim/state", &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// tagged are the kinds of steps whose resources carry tags.
var tagged = map[blueprint.Kind]bool{
	blueprint.KindVPC: true, blueprint.KindPrivateNetwork: true, blueprint.KindGatewayIP: true, blueprint.KindGateway: true,
	blueprint.KindAddress: true, blueprint.KindSecurityGroup: true, blueprint.KindPlacementGroup: true, blueprint.KindVolume: true, blueprint.KindSnapshot: true,
	blueprint.KindServer: true, blueprint.KindPrivateNIC: true, blueprint.KindLoadBalancer: true,
	blueprint.KindPostgres: true, blueprint.KindPostgresSecret: true, blueprint.KindBucket: true, blueprint.KindSecret: true, blueprint.KindEdgeIP: true,
}

// wholeOnce fails unless everything that the file asks for exists exactly once
// and nothing else carries the estate's mark.
func wholeOnce(t *testing.T, p *rehearsal.Play, e *estate.Estate) {
	t.Helper()
	g, err := blueprint.Build(e, nil, e.Admin.PublicKeys)
	if err != nil {
		t.Fatal(err)
	}
	owned := look(t, p).Owned
	want := map[string]bool{}
	for _, s := range g.Steps {
		if tagged[s.Kind] {
			want[blueprint.TagStep+s.ID] = true
			if n := len(owned[blueprint.TagStep+s.ID]); n != 1 {
				t.Errorf("%s exists %d times, want once", s.ID, n)
			}
		}
	}
	for tag := range owned {
		if strings.HasPrefix(tag, blueprint.TagStep) && !want[tag] {
			t.Errorf("%s exists and the file does not ask for it", tag)
		}
	}
}

// wipe is the command that takes everything down, data too.
func wipe(p *rehearsal.Play, e *estate.Estate) []string {
	return []string{"destroy", p.Stage.Env, "--delete-data", "postgres,buckets,registry,secrets,store,volumes", "--confirm", e.Name}
}

// play runs a command to its end and fails the test unless it ends with code.
func play(t *testing.T, p *rehearsal.Play, code int, args ...string) string {
	t.Helper()
	out, err := p.Command(context.Background(), args...).CombinedOutput()
	got := 0
	if exit, ok := err.(*exec.ExitError); ok {
		got = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if got != code {
		t.Fatalf("bastide %s ended with %d, want %d:\n%s", strings.Join(args, " "), got, code, out)
	}
	return string(out)
}

// text is a page of the region as text.
func text(t *testing.T, p *rehearsal.Play, path string) string {
	t.Helper()
	var raw json.RawMessage
	if err := p.Page(t.Context(), path, &raw); err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
