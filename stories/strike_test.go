package stories

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bastide/internal/rehearsal"
)

// kill is a SIGKILL at a command's nth call that changes something, be it of
// the Scaleway API, of object storage or of a node: before the call takes effect,
// or after it has and before it is answered. bastide only reads the Kubernetes API, so these are
// all the calls at which a kill can leave something half done. Without an nth
// nothing is killed.
type kill struct {
	nth  int
	when string
	of   string // paths of the calls that count, as in a fault script; "" for all
}

func (k kill) String() string { return fmt.Sprintf("%s change %d", k.when, k.nth) }

// longest bounds one command on a busy machine; none waits for longer than its
// own deadlines.
const longest = 20 * time.Minute

// struck is what came of a command that was to be killed.
type struck struct {
	killed  bool
	changes int // calls that the region counted, the one of the kill included
}

// strike runs a command and kills it. The fault rule needs the process's
// number, so a shell that is held at its first line is made, the rule is loaded
// with the shell's number, and the shell becomes the command: the same process.
// A command that gets through without its kill must end with success.
func strike(t *testing.T, p *rehearsal.Play, k kill, args ...string) struck {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	plain := p.Command(ctx, args...)
	held := exec.CommandContext(ctx, "sh", append([]string{"-c", `read -r go && exec "$@"`, "sh"}, plain.Args...)...)
	held.Env = plain.Env
	var said bytes.Buffer
	held.Stdout, held.Stderr = &said, &said
	release, err := held.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Start(); err != nil {
		t.Fatal(err)
	}
	rule := "{}"
	if k.nth > 0 {
		rule = fmt.Sprintf("kill:\n  - {nth: %d, pid: %d, when: %s, path: %q}\n", k.nth, held.Process.Pid, k.when, k.of)
	}
	faults(t, p, http.MethodPost, rule)
	if _, err := io.WriteString(release, "go\n"); err != nil {
		t.Fatal(err)
	}
	_ = release.Close()
	err = held.Wait()
	var counts struct {
		Changes int    `json:"mutating_calls"`
		Killed  []bool `json:"killed"`
	}
	if err := p.Page(t.Context(), "/sim/faults", &counts); err != nil {
		t.Fatal(err)
	}
	// The number may be another process's by the next call.
	faults(t, p, http.MethodDelete, "")
	name := fmt.Sprintf("bastide %s, to be killed %s,", args[0], k)
	status := held.ProcessState.Sys().(syscall.WaitStatus)
	died := status.Signaled() && status.Signal() == syscall.SIGKILL
	switch claimed := slices.Contains(counts.Killed, true); {
	case ctx.Err() != nil:
		t.Fatalf("%s did not end within %s:\n%s", name, longest, &said)
	case died != claimed:
		t.Fatalf("%s ended with %v, and the region says killed: %v\n%s", name, held.ProcessState, claimed, &said)
	case !died && err != nil:
		t.Fatalf("%s ended by itself with %v:\n%s", name, held.ProcessState, &said)
	}
	return struck{died, counts.Changes}
}

// faults loads a fault script into the region, or takes it away.
func faults(t *testing.T, p *rehearsal.Play, method, script string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.Access.URL+"/sim/faults", strings.NewReader(script))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(resp.Body)
		t.Fatal(errors.New(string(text)))
	}
}

// logged is one line of the region's request log.
type logged struct {
	Method   string `json:"method"`
	Path     string `json:"path"`
	Status   int    `json:"status"`
	Code     string `json:"code"` // of a call of a node
	Mutating bool   `json:"mutating"`
	Fault    string `json:"fault"`
	Effects  []any  `json:"effects"`
}

var (
	anyID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	anyNode = regexp.MustCompile(`^/talos/[^/]+`)
	// The estate's own bucket, the journals in it, which are named by time, and copies
	// of the bundle, which are named by digest.
	anyBucket  = regexp.MustCompile(`^/bastide-[a-z0-9-]+-[0-9a-f]{8}\b`)
	anyJournal = regexp.MustCompile(`/journal/.*`)
	anyCopy    = regexp.MustCompile(`/secrets/[0-9]{6}-[0-9a-f]{64}\.age$`)
)

// operation is a call without the thing that it is about.
func (l logged) operation() string {
	path := anyNode.ReplaceAllString(anyID.ReplaceAllString(l.Path, "*"), "/talos/*")
	path = anyCopy.ReplaceAllString(anyBucket.ReplaceAllString(path, "/bucket"), "/secrets/*")
	return l.Method + " " + anyJournal.ReplaceAllString(path, "/journal/*")
}

// changes are the calls that change something, in the order of their arrival.
func changes(t *testing.T, p *rehearsal.Play) []logged {
	t.Helper()
	var log []logged
	if err := p.Page(t.Context(), "/sim/requests", &log); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(log, func(l logged) bool { return !l.Mutating })
}

// refused says whether the call was answered with a refusal. How many of these
// there are differs from run to run: a network that is still busy, a node that
// is not ready, is asked again.
func (l logged) refused() bool { return l.Status >= 400 || l.Code != "" && l.Code != "OK" }

// hits counts the kills by operation.
func hits(log []logged) map[string]int {
	out := map[string]int{}
	for _, l := range log {
		if strings.HasPrefix(l.Fault, "killed") {
			out[l.operation()]++
		}
	}
	return out
}

// oneBootstrap fails unless exactly one Bootstrap ever took effect.
func oneBootstrap(t *testing.T, p *rehearsal.Play) {
	t.Helper()
	n := 0
	for _, l := range changes(t, p) {
		if l.operation() == "RPC /talos/*/Bootstrap" && len(l.Effects) > 0 {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d Bootstraps took effect, want one ever", n)
	}
}

// census counts what is in the region, kind by kind, with a mark or without,
// except what Scaleway gives every project by itself.
func census(t *testing.T, p *rehearsal.Play) string {
	t.Helper()
	var state struct {
		Products map[string]map[string][]struct {
			VPC   bool `json:"is_default"`
			Group bool `json:"project_default"`
			// A deleted secret is kept for seven days.
			Status string `json:"status"`
		} `json:"products"`
	}
	if err := p.Page(t.Context(), "/sim/state", &state); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for product, kinds := range state.Products {
		for kind, all := range kinds {
			n := 0
			for _, thing := range all {
				if !thing.VPC && !thing.Group && thing.Status != "scheduled_for_deletion" {
					n++
				}
			}
			if n > 0 {
				lines = append(lines, fmt.Sprintf("%s %s %d", product, kind, n))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
