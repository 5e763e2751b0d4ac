package cli

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/spf13/cobra"

	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/price"
	"bastide/internal/run"
	"bastide/internal/session"
	"bastide/internal/talos"
	"bastide/internal/ui"
)

func (a *app) upCommand() *cobra.Command {
	var yes, verbose bool
	cmd := env(&cobra.Command{
		Use:   "up ENV",
		Short: "Raise the estate, or bring it to what the file says",
		Long: `Raise the estate, or bring it to what the file says: plan, ask, carry the plan
out, then check on the running nodes that it is so. It can be stopped and killed
at any moment; running it again continues. Where the file names a replica, the
encrypted secrets bundle is copied there and to the estate's bucket first.`,
		Annotations: map[string]string{streams: "yes"},
		Example: `  bastide up envs/staging
  bastide up envs/staging --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Nodes that an earlier run left booting are waited for.
			a.patience, a.writes = 3*time.Minute, true
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error { return a.up(ctx, s, args[0], yes, verbose) })
		},
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "list the checks that passed as well")
	return cmd
}

func (a *app) up(ctx context.Context, s *session.Session, path string, yes, verbose bool) error {
	if _, err := s.Unlock(); err != nil {
		return err
	}
	if err := s.CheckReplica(); err != nil {
		return err
	}
	v, p, err := a.look(ctx, s)
	if err != nil {
		return err
	}
	a.show(v, p)
	copies, err := s.Copies(ctx)
	if err != nil {
		return err
	}
	lacking := copies.Lacking()
	for _, place := range lacking {
		a.ui.Notice(place + " has no copy of the secrets bundle as it is now; one is made first")
	}
	if !p.Empty() || len(lacking) > 0 {
		if v, err = a.raise(ctx, s, path, v, p, yes); err != nil {
			return err
		}
	}
	return a.judge(s.Estate.Name, s.Verify(ctx, v), verbose || a.output == "json")
}

// look reads what is there and compares it with the file. Beside that the
// catalogue is asked for prices, once.
func (a *app) look(ctx context.Context, s *session.Session) (*session.Survey, plan.Plan, error) {
	if a.quote == nil {
		quote, err := s.Quote(ctx)
		if err != nil {
			return nil, plan.Plan{}, err
		}
		a.quote = quote
	}
	v, err := s.Survey(ctx)
	if err != nil {
		return nil, plan.Plan{}, err
	}
	return v, v.Plan(), nil
}

// show prints a plan with its price. The catalogue is hardly waited for: a plan
// is complete without it.
func (a *app) show(v *session.Survey, p plan.Plan) {
	bill := price.Make(v.Graph, &v.Live, a.quote.Book(time.Second))
	a.ui.Plan(p, &bill)
}

// raise carries a plan out under the estate's lock, after the secrets bundle was
// copied. Without either to do nothing comes here: looking takes no lock.
func (a *app) raise(ctx context.Context, s *session.Session, path string, v *session.Survey, p plan.Plan, yes bool) (*session.Survey, error) {
	opening := doorOf(p)
	if err := a.agreeToBegin(ctx, s, v, p, yes); err != nil {
		return nil, err
	}
	err := a.holding(ctx, s, func(ctx context.Context, h *session.Hold) error {
		a.resume = "bastide up " + path
		agreed := p
		var err error
		if v, p, err = a.look(ctx, s); err != nil {
			return err
		}
		if opening = doorOf(p); !opening.Empty() {
			if v, err = a.openDoor(ctx, s, h, v, opening); err != nil {
				return err
			}
			p = v.Plan()
		}
		if !p.Empty() && !reflect.DeepEqual(agreed.Actions, p.Actions) { // the door is open now, or another run has just ended
			a.show(v, p)
			if err := a.agree(ctx, s, v, p, yes); err != nil {
				return err
			}
		}
		// Before anything is made that nobody can manage without the bundle.
		if err := s.KeepCopies(ctx); err != nil || p.Empty() {
			return err
		}
		progress, end := a.begin("up "+s.Estate.Name, len(p.Actions)-len(p.Having(plan.Keep)))
		defer end()
		return s.Up(ctx, v, p, a.tells(progress, h))
	})
	return v, err
}

// agree checks that a plan can be carried out and asks whether it is to be.
func (a *app) agree(ctx context.Context, s *session.Session, v *session.Survey, p plan.Plan, yes bool) error {
	if err := run.Blocked(p); err != nil {
		return err
	}
	if err := s.Ready(ctx, v, p); err != nil {
		return err
	}
	return a.confirm(ctx, yes, "carry this plan out?")
}

// doorOf is the part of a plan that lets bastide reach the nodes, such as a
// changed admin range; empty while they are reached. As long as the door is shut
// no node can be read, and nothing else is done while one cannot be read.
func doorOf(p plan.Plan) plan.Plan {
	if len(p.Having(plan.Unknown)) == 0 {
		return plan.Plan{}
	}
	return p.OpensDoor()
}

// agreeToBegin asks for what can be done with what is known before the lock is
// held: the whole plan, or only what lets the nodes be read.
func (a *app) agreeToBegin(ctx context.Context, s *session.Session, v *session.Survey, p plan.Plan, yes bool) error {
	switch opening := doorOf(p); {
	case !opening.Empty():
		return a.agreeToDoor(ctx, opening, yes)
	case v.Stale():
		// The survey under the lock does it.
		a.ui.Notice("the nodes cannot be read: the bastion accepts none of the SSH keys that were offered; it is made to read the project's keys again first")
		return a.confirm(ctx, yes, "do that, and look again?")
	case p.Empty():
		return a.confirm(ctx, yes, "make the copies?")
	}
	return a.agree(ctx, s, v, p, yes)
}

func (a *app) agreeToDoor(ctx context.Context, p plan.Plan, yes bool) error {
	if err := run.Blocked(p); err != nil {
		return err
	}
	a.ui.Notice("the nodes cannot be read; what opens the door is done first")
	return a.confirm(ctx, yes, "do that, and look again?")
}

// openDoor carries out what lets bastide reach the nodes and looks again.
func (a *app) openDoor(ctx context.Context, s *session.Session, h *session.Hold, v *session.Survey, p plan.Plan) (*session.Survey, error) {
	if err := run.Blocked(p); err != nil {
		return nil, err
	}
	progress, end := a.begin("open the door of "+s.Estate.Name, len(p.Actions)-len(p.Having(plan.Keep)))
	err := s.Up(ctx, v, p, a.tells(progress, h))
	end()
	if err != nil {
		return nil, err
	}
	return s.Survey(ctx)
}

// tells passes events on to the progress account and the journal.
func (a *app) tells(p ui.Progress, h *session.Hold) func(run.Event) {
	return func(e run.Event) {
		tell(p, e)
		h.Note(e)
	}
}

// tell passes a step's event on to the progress account.
func tell(p ui.Progress, e run.Event) {
	switch e.Phase {
	case run.Started:
		p.Start(e.Step.ID)
	case run.Finished:
		p.Done(e.Step.ID, e.Took)
	case run.Broke:
		p.Failed(e.Step.ID, e.Took, interrupted(e.Err))
	case run.Skipped:
		p.Skipped(e.Step.ID, "an earlier step did not happen")
	}
}

// interrupted says of a step that was called off what a person knows, and not what
// the language calls it.
func interrupted(err error) error {
	var told *outcome.Error
	if errors.Is(err, context.Canceled) && !errors.As(err, &told) {
		return errors.New("interrupted")
	}
	return err
}

// judge prints the checks on the running nodes, those that passed only on
// request, and fails when one did not pass.
func (a *app) judge(name string, checks []talos.Check, all bool) error {
	bad := talos.Failed(checks)
	v := ui.Verdict{Passed: len(bad) == 0}
	for _, c := range checks {
		if c.OK && !all {
			continue
		}
		detail := c.Have
		if !c.OK {
			detail = fmt.Sprintf("have %s, want %s; %s", c.Have, c.Want, c.Fix)
		}
		v.Checks = append(v.Checks, ui.Check{Name: c.Node + ": " + c.Name, Passed: c.OK, Detail: detail})
	}
	if v.Passed {
		v.Sentence = fmt.Sprintf("%s is up: %d checks on the running nodes passed", name, len(checks))
		a.ui.Verdict(v)
		return nil
	}
	v.Sentence = fmt.Sprintf("%s is up and not as it should be: %d of %d checks failed", name, len(bad), len(checks))
	a.ui.Verdict(v)
	return outcome.Fail(name+" is not as the file says", fmt.Sprintf("%d of %d checks failed, the first is %s", len(bad), len(checks), bad[0].Node+" "+bad[0].Name), "see the checks above")
}
