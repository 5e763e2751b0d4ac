// Package run carries out a plan: every step as soon as what it needs is there,
// in parallel, and nothing more after the first failure. It keeps no state; a
// run that was cut short is continued by planning again.
package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"
)

// Executor makes one step true. It must be safe to repeat: a run may have been
// killed at any point of an earlier attempt. It returns what is there now.
type Executor interface {
	Apply(ctx context.Context, a plan.Action, known plan.Known) (plan.Observed, error)
}

// Phase is where a step stands.
type Phase string

// The phases.
const (
	Started  Phase = "started"
	Finished Phase = "finished"
	Broke    Phase = "failed"
	Skipped  Phase = "skipped" // something that it needs did not happen
)

// Event reports progress.
type Event struct {
	Step  blueprint.Step
	Op    plan.Op
	Phase Phase
	At    time.Time
	Took  time.Duration // for Finished and Broke
	Err   error         // for Broke
}

// Width is how many steps may run at once. Steps mostly wait for the provider,
// whose rate limit is what this protects.
const Width = 24

// Walk is one carrying out of a plan.
type Walk struct {
	plan    plan.Plan
	known   *known
	results chan result
	slots   chan struct{}
}

// New prepares to carry out a plan from what is live.
func New(p plan.Plan, live plan.Live) *Walk {
	w := &Walk{plan: p, known: &known{steps: map[string]plan.Observed{}}, results: make(chan result), slots: make(chan struct{}, Width)}
	for id, o := range live.Steps {
		w.known.put(id, o)
	}
	return w
}

// Known is what is live as the walk goes on. It may be read at any time.
func (w *Walk) Known() plan.Known { return w.known }

// Run carries the plan out. executors gives the executor of a kind; report is
// called from one goroutine. The first failure stops new steps; those that run
// are let finish, and all failures are returned together.
func (w *Walk) Run(ctx context.Context, executors func(blueprint.Kind) Executor, report func(Event)) error {
	if err := Blocked(w.plan); err != nil {
		return err
	}
	return w.run(ctx, executors, report)
}

type result struct {
	action  plan.Action
	started time.Time
	seen    plan.Observed
	err     error
}

// Blocked says why a plan cannot be carried out at all; nil when it can.
func Blocked(p plan.Plan) error {
	for _, a := range p.Having(plan.Unknown) {
		return outcome.CannotTell("the state of "+a.Step.ID+" is not known", a.Reason, "see that it can be reached, then run the command again")
	}
	for _, a := range p.Having(plan.Refuse) {
		return outcome.Refuse(a.Step.ID+" cannot be brought to what the file asks", a.Reason, "decide what is right and change the file, or the thing itself")
	}
	return nil
}

func (w *Walk) run(ctx context.Context, executors func(blueprint.Kind) Executor, report func(Event)) error {
	done := map[string]bool{}
	var pending []plan.Action
	for _, a := range w.plan.Actions {
		if a.Op == plan.Keep {
			done[a.Step.ID] = true
		} else {
			pending = append(pending, a)
		}
	}
	var failures []error
	running := 0
	for {
		if len(failures) == 0 && ctx.Err() == nil {
			var rest []plan.Action
			for _, a := range pending {
				if !ready(a, done) {
					rest = append(rest, a)
					continue
				}
				running++
				report(Event{Step: a.Step, Op: a.Op, Phase: Started, At: time.Now()})
				go w.step(ctx, executors(a.Step.Kind), a)
			}
			pending = rest
		}
		if running == 0 {
			break
		}
		r := <-w.results
		running--
		took := time.Since(r.started)
		if r.err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", r.action.Step.ID, r.err))
			report(Event{Step: r.action.Step, Op: r.action.Op, Phase: Broke, At: time.Now(), Took: took, Err: r.err})
			continue
		}
		done[r.action.Step.ID] = true
		w.known.put(r.action.Step.ID, r.seen)
		report(Event{Step: r.action.Step, Op: r.action.Op, Phase: Finished, At: time.Now(), Took: took})
	}
	for _, a := range pending {
		report(Event{Step: a.Step, Op: a.Op, Phase: Skipped, At: time.Now()})
	}
	return verdict(ctx, failures)
}

func (w *Walk) step(ctx context.Context, e Executor, a plan.Action) {
	r := result{action: a, started: time.Now()}
	select {
	case w.slots <- struct{}{}:
		r.started = time.Now()
		r.seen, r.err = e.Apply(ctx, a, w.known)
		<-w.slots
	case <-ctx.Done():
		r.err = ctx.Err()
	}
	w.results <- r
}

func ready(a plan.Action, done map[string]bool) bool {
	for _, need := range a.Step.Needs {
		if !done[need] {
			return false
		}
	}
	return true
}

// verdict turns the failures into one error. A run that the user stopped is
// interrupted, whatever its steps said on the way out.
func verdict(ctx context.Context, failures []error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return &outcome.Error{Code: outcome.Interrupted, What: "stopped before the end", Why: "the run was interrupted", Do: "run it again: it continues", Err: context.Canceled}
	}
	var why *outcome.Error
	if ctx.Err() != nil && errors.As(context.Cause(ctx), &why) && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return why // what the steps say is only that they were called off
	}
	if ctx.Err() != nil {
		failures = append(failures, context.Cause(ctx))
	}
	if len(failures) == 1 {
		return failures[0]
	}
	return errors.Join(failures...)
}

type known struct {
	mu    sync.RWMutex
	steps map[string]plan.Observed
}

func (k *known) Get(id string) (plan.Observed, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	o, ok := k.steps[id]
	return o, ok
}

func (k *known) put(id string, o plan.Observed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.steps[id] = o
}
