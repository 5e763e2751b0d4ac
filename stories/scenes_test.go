package stories

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"bastide/internal/estate"
	"bastide/internal/rehearsal"
	"bastide/internal/sim/program"
)

// TestScenes runs the scenes: an up that meets trouble of a node, and what
// follows. They wait more than they compute, so several are played at a time (-parallel).
// The trouble is bound to calls of the run, never to a time.
//
//	go test ./stories -run TestScenes/slow-learner
func TestScenes(t *testing.T) {
	t.Parallel()
	program.Need(t, "kube-apiserver")
	program.Need(t, "talosctl")
	testscript.Run(t, testscript.Params{Dir: "testdata/scenes", Setup: setup, UpdateScripts: *update, Cmds: commands, RequireExplicitExec: true})
}

// stage sets a stage for an estate of testdata/estates, opens a region on it as
// a rehearsal does, and puts the script there: ENV is the environment, and
// nothing of it exists yet.
func stage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stage ESTATE")
	}
	e, err := estate.Load(path.Join(ts.Getenv("ESTATES"), args[0]))
	ts.Check(err)
	s, err := rehearsal.Build(e, ts.MkAbs("stage"), time.Now())
	ts.Check(err)
	p, err := rehearsal.Open(context.Background(), s, bastide, 20, "")
	ts.Check(err)
	ts.Defer(func() { ts.Check(p.Close()) })
	for _, kv := range s.Environ(p.Access) {
		k, v, _ := strings.Cut(kv, "=")
		ts.Setenv(k, v)
	}
	ts.Setenv("ENV", s.Env)
}

// ends runs a program that must end with an exit code; its output can be looked
// at afterwards.
func ends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: ends CODE PROGRAM [ARGUMENT...]")
	}
	expect(ts, args[0], execute(ts, args[1:]))
}

func execute(ts *testscript.TestScript, args []string) int {
	err := ts.Exec(args[0], args[1:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

func expect(ts *testscript.TestScript, want string, code int) {
	if !slices.Contains(strings.Split(want, "|"), strconv.Itoa(code)) {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

// tries runs a command that ends with an exit code, or one of several (1|4),
// again and again until it said something on stderr. Each run is given little
// time and continues where the one before stopped, so a slow machine takes more
// of them and comes to the same end.
func tries(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: tries CODE TEXT-ON-STDERR PROGRAM [ARGUMENT...]")
	}
	wanted := regexp.MustCompile(args[1])
	for range 12 {
		code := execute(ts, args[2:])
		if wanted.MatchString(ts.ReadFile("stderr")) {
			expect(ts, args[0], code)
			return
		}
		if code == 0 {
			break
		}
	}
	ts.Fatalf("it never said %q", args[1])
}

// remedy runs what the command before told its user to do: the words that a
// pattern finds on stderr are the last arguments.
func remedy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: remedy PATTERN PROGRAM [ARGUMENT...]")
	}
	advice := regexp.MustCompile(args[0]).FindString(ts.ReadFile("stderr"))
	if advice == "" {
		ts.Fatalf("nobody said %q", args[0])
	}
	ts.Check(ts.Exec(args[1], append(args[2:], strings.Fields(advice)...)...))
}

// happened fails unless everything in the fault script in force came true: a
// scene whose trouble never came proves nothing.
func happened(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: happened")
	}
	var counts struct {
		RPC    []struct{ Acted int } `json:"rpc"`
		Events []struct{ Acted int } `json:"events"`
	}
	page(ts, "/sim/faults", &counts)
	for i, h := range append(counts.RPC, counts.Events...) {
		if h.Acted == 0 {
			ts.Fatalf("number %d of the rules and events did not come true: %+v", i+1, counts)
		}
	}
}

func page(ts *testscript.TestScript, path string, into any) {
	resp, err := http.Get(ts.Getenv("SCW_API_URL") + path)
	ts.Check(err)
	defer func() { _ = resp.Body.Close() }()
	ts.Check(json.NewDecoder(resp.Body).Decode(into))
}

// calls counts the calls of the region's log whose path ends with a text and
// that took effect.
func calls(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: calls COUNT PATH-END")
	}
	var log []struct {
		Path    string `json:"path"`
		Effects []any  `json:"effects"`
	}
	page(ts, "/sim/requests", &log)
	n := 0
	for _, r := range log {
		if strings.HasSuffix(r.Path, args[1]) && len(r.Effects) > 0 {
			n++
		}
	}
	if strconv.Itoa(n) != args[0] {
		ts.Fatalf("%d calls of %s took effect, want %s", n, args[1], args[0])
	}
}
