package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/rehearsal"
	"bastide/internal/session"
	"bastide/internal/sim"
	"bastide/internal/ui"
)

// rehearseFlags are what rehearse is told.
type rehearseFlags struct {
	dir, faults string
	speed       float64
	keep        bool
}

func (a *app) rehearseCommand() *cobra.Command {
	var f rehearseFlags
	cmd := env(&cobra.Command{
		Use:   "rehearse ENV",
		Short: "Play the whole life of an estate on a simulated region, offline",
		Long: `Play the whole life of an estate on a simulated region, offline: up, a second up
that must write nothing, a plan that must be empty, status, destroy, and an
inventory that must be empty. It runs this very program against other endpoints,
with a throwaway bundle, age identity and SSH key in a scratch copy of the
environment; yours are never read.`,
		Annotations: map[string]string{streams: "yes"},
		Example: `  bastide rehearse examples/private
  bastide rehearse envs/staging --keep
  bastide rehearse envs/staging --faults faults/slow-api.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSpeed(f.speed); err != nil {
				return err
			}
			e, err := loadEstate(args[0])
			if err != nil {
				return err
			}
			return a.rehearse(cmd.Context(), e, f)
		},
	})
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "dir", "", "folder to play in (default: one per estate under the temporary folder)")
	flags.StringVar(&f.faults, "faults", "", "file with a fault script that the region follows from the start")
	flags.Float64Var(&f.speed, "speed", 20, "how much faster than the real region")
	flags.BoolVar(&f.keep, "keep", false, "leave the estate and its region running, and say how to come in")
	return cmd
}

func (a *app) rehearse(ctx context.Context, e *estate.Estate, f rehearseFlags) error {
	if f.dir == "" {
		f.dir = rehearsal.DefaultDir(e.Name)
	}
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	stage, err := rehearsal.Build(e, dir, time.Now())
	if err != nil {
		return err
	}
	a.ui.Notice(fmt.Sprintf("rehearsing %s in %s, %g times real speed", e.Name, dir, f.speed))
	p, err := rehearsal.Open(ctx, stage, program, f.speed, f.faults)
	if err != nil {
		return err
	}
	r := &recital{app: a, file: e, play: p, keep: f.keep}
	r.perform(ctx)
	a.ui.Timeline(ui.Timeline{Title: "timeline", Bars: r.bars})
	v := r.verdict(e.Name)
	a.ui.Verdict(v)
	if f.keep && p.Access.Alive() {
		err = a.sayHowToEnter(stage, p.Access)
	} else {
		err = p.Close()
	}
	if err == nil && ctx.Err() != nil {
		return &outcome.Error{Code: outcome.Interrupted, What: "the rehearsal was stopped", Why: "it was interrupted", Err: ctx.Err()}
	}
	if err == nil && !v.Passed {
		return exit(outcome.Failed)
	}
	return err
}

// recital plays the acts of a rehearsal one after the other and keeps what is
// said about them. An act that fails ends it.
type recital struct {
	*app
	file   *estate.Estate
	play   *rehearsal.Play
	keep   bool
	bars   []ui.Bar
	checks []ui.Check
	failed bool
}

func (r *recital) perform(ctx context.Context) {
	env := r.play.Stage.Env
	r.act(ctx, "up", outcome.Done, "up", env, "--yes")
	r.count(ctx, "a second up writes nothing", func() {
		r.act(ctx, "up again", outcome.Done, "up", env, "--yes")
	})
	r.act(ctx, "plan is empty", outcome.Done, "plan", env, "--exit-code")
	r.act(ctx, "status", outcome.Done, "status", env)
	if r.keep {
		return
	}
	// The region is thrown away, so nothing in it is worth keeping.
	r.unprotect(ctx)
	r.act(ctx, "destroy", outcome.Done, "destroy", env, "--delete-data", strings.Join(session.DataClasses(), ","), "--confirm", r.file.Name)
	r.check("nothing is left in the region", func() (bool, string) {
		owned, err := r.play.Owned(ctx)
		if err != nil {
			return false, err.Error()
		}
		return len(owned) == 0, strings.Join(owned, ", ")
	})
}

// unprotect makes way for destroy where the file asks for protected secrets.
func (r *recital) unprotect(ctx context.Context) {
	if r.failed || !slices.ContainsFunc(r.file.Services.Secrets, func(s estate.SecretContainer) bool { return s.Protected }) {
		return
	}
	r.check("protection is taken off", func() (bool, string) {
		n, err := r.play.Unprotect(ctx)
		if err != nil {
			return false, err.Error()
		}
		return true, fmt.Sprintf("secrets unprotected, in the simulated region only: %d; destroy refuses to delete protected ones", n)
	})
}

// act runs one command and passes its progress on.
func (r *recital) act(ctx context.Context, name string, want outcome.Code, args ...string) {
	if r.failed {
		return
	}
	from := r.play.Elapsed()
	steps := map[string]time.Duration{}
	var progress ui.Progress
	code, words, err := r.play.Run(ctx, func(e rehearsal.Event) {
		switch e.Phase {
		case "begin":
			progress = r.ui.Progress(e.Text, e.Total)
		case "started":
			steps[e.Step] = r.play.Elapsed()
			progress.Start(e.Step)
		case "waiting":
			progress.Note(e.Step, e.Text)
		case "finished", "failed":
			took := time.Duration(e.Took) * time.Millisecond
			r.bars = append(r.bars, ui.Bar{Label: e.Step, From: steps[e.Step], To: r.play.Elapsed(), Failed: e.Phase == "failed"})
			if e.Phase == "failed" {
				progress.Failed(e.Step, took, fmt.Errorf("%s", e.Text))
			} else {
				progress.Done(e.Step, took)
			}
		case "skipped":
			progress.Skipped(e.Step, e.Text)
		case "end":
			progress.End()
			progress = nil
		}
	}, args...)
	if progress != nil {
		progress.End()
	}
	passed := err == nil && code == want
	r.bars = append(r.bars, ui.Bar{Label: name, From: from, To: r.play.Elapsed(), Failed: !passed})
	r.check(name, func() (bool, string) {
		switch {
		case err != nil:
			return false, err.Error()
		case !passed:
			return false, fmt.Sprintf("bastide %s ended with exit code %d, want %d: %s", strings.Join(args, " "), code, want, words)
		}
		return true, fmt.Sprintf("exit code %d", code)
	})
}

// count compares the calls that changed something before and after an act.
func (r *recital) count(ctx context.Context, name string, act func()) {
	if r.failed {
		return
	}
	before, err := r.play.Writes(ctx)
	act()
	if r.failed {
		return
	}
	r.check(name, func() (bool, string) {
		after, err2 := r.play.Writes(ctx)
		if err != nil || err2 != nil {
			return false, fmt.Sprint(err, err2)
		}
		return after == before, fmt.Sprintf("%d calls that change something", after-before)
	})
}

func (r *recital) check(name string, f func() (bool, string)) {
	if r.failed {
		return
	}
	passed, detail := f()
	r.failed = !passed
	r.checks = append(r.checks, ui.Check{Name: name, Passed: passed, Detail: detail})
}

func (r *recital) verdict(name string) ui.Verdict {
	v := ui.Verdict{Passed: !r.failed, Checks: r.checks, Sentence: fmt.Sprintf("%s can be raised and taken down: the rehearsal passed", name)}
	switch {
	case r.failed:
		v.Sentence = fmt.Sprintf("the rehearsal of %s failed at %s", name, r.checks[len(r.checks)-1].Name)
	case r.keep:
		v.Sentence = name + " is up on the simulated region and stays"
	}
	return v
}

// sayHowToEnter writes the exports that a person needs and says what to do, with
// this program called as it was called now: it need not be in the PATH.
func (a *app) sayHowToEnter(s *rehearsal.Stage, access sim.Access) error {
	if err := os.WriteFile(s.Script, []byte(sim.Exports(s.Environ(access))), 0o600); err != nil {
		return err
	}
	a.ui.Result("kept", fmt.Sprintf(`come in:   . %[1]s
           %[2]s door %[3]s -- kubectl get nodes -o wide
look:      %[4]s/sim/
take down: %[2]s destroy %[3]s
end:       %[2]s sim stop --dir %[5]s`, s.Script, os.Args[0], s.Env, access.URL, s.Region),
		map[string]string{"exports": s.Script, "env": s.Env, "url": access.URL, "region": s.Region})
	return nil
}
