package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"
)

// recorder is an executor that remembers the order of its calls.
type recorder struct {
	mu    sync.Mutex
	began []string
	ended map[string]bool
	fail  map[string]error
	hook  func(ctx context.Context, id string) error
	early []string // steps that began before what they need had ended
}

func (r *recorder) Apply(ctx context.Context, a plan.Action, _ plan.Known) (plan.Observed, error) {
	r.mu.Lock()
	r.began = append(r.began, a.Step.ID)
	for _, n := range a.Step.Needs {
		if !r.ended[n] {
			r.early = append(r.early, a.Step.ID+" before "+n)
		}
	}
	err := r.fail[a.Step.ID]
	r.mu.Unlock()
	if err == nil && r.hook != nil {
		err = r.hook(ctx, a.Step.ID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.ended[a.Step.ID] = true
	}
	return plan.Observed{Step: a.Step.ID}, err
}

func chain(ids ...string) plan.Plan {
	var p plan.Plan
	for i, id := range ids {
		s := blueprint.Step{ID: id, Kind: blueprint.KindVPC}
		if i > 0 {
			s.Needs = []string{ids[i-1]}
		}
		p.Actions = append(p.Actions, plan.Action{Step: s, Op: plan.Create})
	}
	return p
}

func walkWith(ctx context.Context, p plan.Plan, r *recorder) (map[string]Phase, error) {
	phases := map[string]Phase{}
	err := New(p, plan.Live{}).Run(ctx, func(blueprint.Kind) Executor { return r }, func(e Event) { phases[e.Step.ID] = e.Phase })
	return phases, err
}

func TestWalkStopsAtTheFirstFailureAndSkipsTheRest(t *testing.T) {
	r := &recorder{ended: map[string]bool{}, fail: map[string]error{"b": errors.New("no stock")}}
	phases, err := walkWith(t.Context(), chain("a", "b", "c"), r)
	if err == nil || !strings.Contains(err.Error(), "b: no stock") {
		t.Fatalf("got error %v, want one that names b", err)
	}
	want := map[string]Phase{"a": Finished, "b": Broke, "c": Skipped}
	if fmt.Sprint(phases) != fmt.Sprint(want) {
		t.Fatalf("got phases %v, want %v", phases, want)
	}
}

func TestWalkInterruptedSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &recorder{ended: map[string]bool{}, hook: func(ctx context.Context, id string) error {
		if id == "b" {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}}
	_, err := walkWith(ctx, chain("a", "b", "c"), r)
	if outcome.CodeOf(err) != outcome.Interrupted {
		t.Fatalf("got %v with code %d, want code %d", err, outcome.CodeOf(err), outcome.Interrupted)
	}
}

func TestWalkRefusesWithoutTouchingAnything(t *testing.T) {
	p := chain("a", "b")
	p.Actions[1].Op = plan.Refuse
	r := &recorder{ended: map[string]bool{}}
	_, err := walkWith(t.Context(), p, r)
	if outcome.CodeOf(err) != outcome.Refused || len(r.began) != 0 {
		t.Fatalf("got %v after steps %v, want a refusal before any step", err, r.began)
	}
}

// However the graph looks, no step begins before all that it needs has ended,
// and without failures every step runs once.
func TestWalkKeepsTheOrderOfAnyGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "steps")
		var p plan.Plan
		r := &recorder{ended: map[string]bool{}}
		runs := 0
		for i := range n {
			s := blueprint.Step{ID: fmt.Sprint("s", i), Kind: blueprint.KindVPC}
			for j := range i {
				if rapid.IntRange(0, 4).Draw(t, "edge") == 0 {
					s.Needs = append(s.Needs, fmt.Sprint("s", j))
				}
			}
			op := rapid.SampledFrom([]plan.Op{plan.Create, plan.Update, plan.Wait, plan.Keep}).Draw(t, "op")
			if op == plan.Keep {
				r.ended[s.ID] = true
			} else {
				runs++
			}
			p.Actions = append(p.Actions, plan.Action{Step: s, Op: op})
		}
		if _, err := walkWith(context.Background(), p, r); err != nil {
			t.Fatal(err)
		}
		if len(r.early) > 0 || len(r.began) != runs {
			t.Fatalf("began early: %v; ran %d steps, want %d", r.early, len(r.began), runs)
		}
	})
}
