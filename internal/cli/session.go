package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"bastide/internal/outcome"
	"bastide/internal/session"
	"bastide/internal/ui"
	"bastide/internal/vault"
)

// open opens the environment that a command names. progress, when there is one,
// is told what nodes are waited for.
func (a *app) open(path string) (*session.Session, error) {
	c := session.Config{
		Path: path, Need: a.need, LookupEnv: os.LookupEnv, UserAgent: "bastide/" + Version, Command: a.command + " " + path, Patience: a.patience, ReadOnly: !a.writes, Notice: a.ui.Notice, Learnt: a.ui.Redact,
		Note: func(node, text string) {
			if p := a.progress.Load(); p != nil {
				(*p).Note("machine/"+node, text)
				return
			}
			// Looking has no steps to show: it is said once for each node.
			if _, said := a.waiting.LoadOrStore(node, true); !said {
				if a.patience < time.Second { // looked at once
					a.ui.Notice(node + ": " + text)
					return
				}
				a.ui.Notice(fmt.Sprintf("waiting for %s, at most %s: %s", node, a.patience, text))
			}
		},
	}
	c.Step = func(step, text string) {
		if p := a.progress.Load(); p != nil {
			(*p).Note(step, text)
		}
	}
	c.Reading = func(step, text string, r session.Reading) {
		if p := a.progress.Load(); p != nil {
			(*p).Reading(step, text, ui.Reading(r))
		}
	}
	questions := a.questions()
	if questions.Anybody() {
		c.Ask = func(label string) (vault.Secret, error) {
			text, err := questions.Secret(label)
			return vault.NewSecret(string(text)), err
		}
	}
	a.environment = true
	return session.Open(c)
}

func (a *app) questions() ui.Questions { return ui.Questions{In: a.In, Err: a.Err} }

// confirm asks before something is written, unless --yes said so already.
func (a *app) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	ok, err := a.questions().Confirm(ctx, question)
	if err == nil && !ok {
		err = outcome.Refuse("nothing was done", "it was not confirmed", "run the command again and answer yes")
	}
	return err
}

// holding does something under the estate's lock. The result goes into the
// journal, and the lock is given back whatever it is.
func (a *app) holding(ctx context.Context, s *session.Session, do func(context.Context, *session.Hold) error) error {
	ctx, h, err := s.Hold(ctx)
	if err != nil {
		return err
	}
	defer func() { h.Release(ctx, err) }()
	err = do(ctx, h)
	return err
}

// begin starts a progress account that notes about nodes go to.
func (a *app) begin(title string, steps int) (ui.Progress, func()) {
	p := a.ui.Progress(title, steps)
	a.progress.Store(&p)
	return p, func() {
		a.progress.Store(nil)
		p.End()
	}
}

// env is the argument that every command about an environment has.
func env(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	return cmd
}

// withSession opens the environment for the time of f. Once f has changed
// anything, what it ends with is no refusal any more.
func (a *app) withSession(ctx context.Context, path string, f func(context.Context, *session.Session) error) error {
	s, err := a.open(path)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if err = f(ctx, s); s.Wrote() {
		err = outcome.Begun(err)
	}
	return err
}
