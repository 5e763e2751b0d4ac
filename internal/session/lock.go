package session

import (
	"context"
	"errors"
	"strings"

	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/run"
	"bastide/internal/scaleway"
	"bastide/internal/store"
	"bastide/internal/vault"
)

// Store is the estate's bucket. It makes no call.
func (s *Session) Store() (*store.Store, error) {
	if s.kept == nil {
		// The warnings are those that Cloud gives.
		objects, _, err := scaleway.NewObjectStorage(s.reach())
		if err != nil {
			return nil, err
		}
		s.kept = store.New(store.Options{Objects: objects, Bucket: s.Estate.BucketName(), Estate: s.Estate.Name, Seal: s.Vault().Seal, Notice: s.config.Notice})
	}
	return s.kept, nil
}

// UnlockCommand is what removes the lock, without the lock's id behind it.
func (s *Session) UnlockCommand() string { return "bastide unlock " + s.config.Path }

// Hold is the right to change the estate, for one command.
type Hold struct {
	session *Session
	held    *store.Held
	journal *store.Journal
}

// Hold takes the estate's lock. The context that it returns ends when the lock is
// lost. What was read before is to be read again: another run may have ended just
// before.
func (s *Session) Hold(ctx context.Context) (context.Context, *Hold, error) {
	kept, err := s.Store()
	if err != nil {
		return ctx, nil, err
	}
	held, err := kept.Acquire(ctx, store.Request{Command: s.config.Command, Version: s.config.UserAgent, Unlock: s.UnlockCommand()})
	if err != nil {
		return ctx, nil, err
	}
	ctx = held.Keep(ctx)
	s.held.Store(held)
	return ctx, &Hold{session: s, held: held, journal: kept.Journal(ctx, held, s.config.Command)}, nil
}

// Release ends the journal with what came of the command and gives the lock back.
func (h *Hold) Release(ctx context.Context, result error) {
	h.journal.Close(ctx, h.session.masked(result))
	h.held.Release(ctx)
	h.session.held.Store(nil)
}

// Retire gives the lock back and removes the estate's bucket, unless it holds
// more than locks and journals; then it is kept, and its name is told. With all,
// whatever it holds goes as well.
func (h *Hold) Retire(ctx context.Context, all bool) (kept string, err error) {
	h.journal.Close(ctx, nil)
	stays, err := h.session.kept.Retire(ctx, h.held, all)
	h.held.Release(ctx)
	h.session.held.Store(nil)
	if stays {
		kept = h.session.kept.Name
	}
	return kept, err
}

// Note writes what became of a step into the journal.
func (h *Hold) Note(e run.Event) {
	entry := store.Entry{At: e.At, Step: e.Step.ID, Op: string(e.Op), Phase: string(e.Phase), TookMS: e.Took.Milliseconds()}
	if err := h.session.masked(e.Err); err != nil {
		entry.Error = err.Error()
	}
	h.journal.Add(entry)
}

// masked is an error's text without any secret of the bundle.
func (s *Session) masked(err error) error {
	if err == nil || s.bundle == nil {
		return err
	}
	text := err.Error()
	for _, secret := range s.bundle.Secrets() {
		text = strings.ReplaceAll(text, secret.Reveal(), vault.Mask)
	}
	return errors.New(text)
}

// mayWrite is asked before every call that changes something at Scaleway.
func (s *Session) mayWrite(ctx context.Context) error {
	held := s.held.Load()
	if held == nil {
		return outcome.Fail("nothing was changed", "the estate's lock is not held", "report this as a mistake of bastide")
	}
	return held.Check(ctx)
}

// writes lets a call go out that changes something at Scaleway.
func (s *Session) writes(ctx context.Context) error {
	err := s.mayWrite(ctx)
	if err == nil {
		s.wrote.Store(true)
	}
	return err
}

// Wrote says whether anything was changed, at Scaleway or on a node: from then on
// what ends the command is no refusal.
func (s *Session) Wrote() bool { return s.wrote.Load() }

// locked is an executor that asks before each step whether the lock is still this
// run's.
func (s *Session) locked(e run.Executor) run.Executor { return underLock{e, s} }

type underLock struct {
	run.Executor
	session *Session
}

func (u underLock) Apply(ctx context.Context, a plan.Action, known plan.Known) (plan.Observed, error) {
	if err := u.session.mayWrite(ctx); err != nil {
		return plan.Observed{}, err
	}
	ctx = scaleway.Telling(ctx, func(text string) { u.session.say(a.Step.ID, text) })
	o, err := u.Executor.Apply(ctx, a, known)
	if err == nil && a.Step.Kind.Cluster() {
		u.session.wrote.Store(true)
	}
	return o, err
}
