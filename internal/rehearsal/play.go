package rehearsal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bastide/internal/outcome"
	"bastide/internal/sim"
)

// Play runs commands of this program on a stage.
type Play struct {
	Stage   *Stage
	Access  sim.Access
	Program string // this very program
	began   time.Time
	region  *exec.Cmd
	exited  chan error
	gone    chan struct{} // closed when the region has ended
}

// Span is a stretch of a rehearsal's time.
type Span struct {
	Label    string
	From, To time.Duration
	Failed   bool
}

// Event is what a command tells while it runs; it is the form that --output json
// prints.
type Event struct {
	Type  string `json:"type"`
	Phase string `json:"phase"`
	Step  string `json:"step"`
	Text  string `json:"text"`
	Total int    `json:"total"`
	Took  int64  `json:"tookMs"`
}

// Open starts the simulated region in a process of its own session, so that it
// can outlive the rehearsal, and waits until it answers.
func Open(ctx context.Context, s *Stage, program string, speed float64, faults string) (*Play, error) {
	args := []string{"sim", "serve", "--listen", "127.0.0.1:0", "--dir", s.Region, "--seed", s.Seed, "--speed", fmt.Sprint(speed),
		"--log", filepath.Join(s.Dir, "sim.log")}
	if faults != "" {
		args = append(args, "--faults", faults)
	}
	out, err := os.OpenFile(s.Log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	p := &Play{Stage: s, Program: program, began: time.Now(), region: exec.Command(program, args...), exited: make(chan error, 1), gone: make(chan struct{})}
	p.region.Stdout, p.region.Stderr = out, out
	p.region.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.region.Start(); err != nil {
		return nil, fmt.Errorf("starting the simulated region: %w", err)
	}
	go func() {
		p.exited <- p.region.Wait()
		close(p.gone)
	}()
	return p, p.await(ctx)
}

func (p *Play) await(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			_ = p.Close()
			return ctx.Err()
		case err := <-p.exited:
			p.exited <- err
			text, _ := os.ReadFile(p.Stage.Log)
			return outcome.Refuse("the simulated region did not start", strings.TrimSpace(string(text)), "see "+p.Stage.Log)
		case <-tick.C:
			if a, err := sim.ReadAccess(p.Stage.Region); err == nil && a.PID == p.region.Process.Pid {
				p.Access = a
				return nil
			}
		}
	}
}

// Close ends the region.
func (p *Play) Close() error {
	if err := p.region.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// Elapsed is the rehearsal's time so far.
func (p *Play) Elapsed() time.Duration { return time.Since(p.began) }

// Command is this program as a person on the stage runs it.
func (p *Play) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.Program, args...)
	cmd.Env = append(clean(os.Environ()), p.Stage.Environ(p.Access)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// Run plays one command on the stage, as a script would: JSON events come out
// as they happen. It returns the exit code and the command's last words. It ends with
// the region, and when the region finds that this machine has no room for it.
func (p *Play) Run(ctx context.Context, report func(Event), args ...string) (outcome.Code, string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var trouble string
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		trouble = p.watch(ctx)
		cancel()
	}()
	cmd := p.Command(ctx, append(args, "--output", "json")...)
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, "", err
	}
	if err := cmd.Start(); err != nil {
		return 0, "", err
	}
	read(out, report)
	err = cmd.Wait()
	cancel()
	<-watched
	if trouble == "" && cmd.ProcessState.ExitCode() != int(outcome.Done) {
		trouble = p.trouble(context.WithoutCancel(ctx)) // the command may have been quicker
	}
	if trouble != "" {
		return 0, "", outcome.Fail("this machine cannot carry the rehearsal", trouble, "make room there, or name a folder on another disk with --dir")
	}
	select {
	case <-p.gone:
		return 0, "", fmt.Errorf("the simulated region ended; what it said last is in %s", p.Stage.Log)
	default:
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return 0, "", err
	}
	return outcome.Code(cmd.ProcessState.ExitCode()), strings.TrimSpace(words.String()), nil
}

// look is how often the region is asked how the machine does.
const look = time.Second

// watch returns when the region has ended, or ctx has, or the machine is in trouble,
// which it says.
func (p *Play) watch(ctx context.Context) string {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-p.gone:
			return ""
		case <-ctx.Done():
			return ""
		case <-tick.C:
			if trouble := p.trouble(ctx); trouble != "" {
				return trouble
			}
		}
	}
}

// trouble is what the machine lacks; empty where it lacks nothing or the region does
// not answer.
func (p *Play) trouble(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var host struct {
		Trouble string `json:"trouble"`
	}
	if err := p.Page(ctx, "/sim/host", &host); err != nil {
		return ""
	}
	return host.Trouble
}

func read(r io.Reader, report func(Event)) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		var e Event
		if json.Unmarshal(s.Bytes(), &e) == nil && e.Type == "event" {
			report(e)
		}
	}
}

// clean takes out what would lead the rehearsed command to the real Scaleway,
// the user's keys or another cluster.
func clean(environ []string) []string {
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case strings.HasPrefix(name, "SCW_"), strings.HasPrefix(name, "BASTIDE_REPLICA_"), name == "SSH_AUTH_SOCK", name == "KUBECONFIG", name == "TALOSCONFIG":
		default:
			out = append(out, kv)
		}
	}
	// A configuration file of scw must not be found either.
	return append(out, "SCW_CONFIG_PATH="+os.DevNull)
}

// Writes counts the calls that changed something at Scaleway so far.
func (p *Play) Writes(ctx context.Context) (int, error) {
	var log []struct {
		Mutating bool `json:"mutating"`
	}
	if err := p.Page(ctx, "/sim/requests", &log); err != nil {
		return 0, err
	}
	n := 0
	for _, r := range log {
		if r.Mutating {
			n++
		}
	}
	return n, nil
}

// Owned lists what in the region carries any estate's mark.
func (p *Play) Owned(ctx context.Context) ([]string, error) {
	var state struct {
		Owned map[string][]struct {
			Status string `json:"status"`
		} `json:"owned"`
	}
	if err := p.Page(ctx, "/sim/state", &state); err != nil {
		return nil, err
	}
	var out []string
	for tag, things := range state.Owned {
		n := 0
		for _, t := range things {
			if t.Status != "scheduled_for_deletion" { // a deleted secret is kept for seven days, as at Scaleway
				n++
			}
		}
		if strings.HasPrefix(tag, "bastide:") && n > 0 {
			out = append(out, fmt.Sprintf("%s: %d", tag, n))
		}
	}
	return out, nil
}

// Page reads one of the region's own pages.
func (p *Play) Page(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Access.URL+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return json.NewDecoder(resp.Body).Decode(into)
}
