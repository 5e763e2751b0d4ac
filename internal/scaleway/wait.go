package scaleway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bastide/internal/outcome"
)

// Pace is how often things that take time are looked at: soon at first, then in
// proportion to how long they have taken already, so that waiting adds little
// to a short wait and few calls to a long one.
type Pace struct {
	First time.Duration // default 80 ms
	Share float64       // of the time already waited; default 0.1
	Max   time.Duration // default 5 s
	// Settle is how long a reading may lag behind a change. Before something is
	// made again after an answer was lost, it is looked for that long; default 5 s.
	Settle time.Duration
	// Tell is how long a wait is silent before it says what it waits for; default 2 s.
	Tell time.Duration
}

func (p Pace) orDefaults() Pace {
	if p.First == 0 {
		p.First = 80 * time.Millisecond
	}
	if p.Share == 0 {
		p.Share = 0.1
	}
	if p.Max == 0 {
		p.Max = 5 * time.Second
	}
	if p.Settle == 0 {
		p.Settle = 5 * time.Second
	}
	if p.Tell == 0 {
		p.Tell = 2 * time.Second
	}
	return p
}

type teller struct{}

// Telling has the waits under a context say what they wait for, to whoever carries
// out the step that they are part of.
func Telling(ctx context.Context, say func(text string)) context.Context {
	return context.WithValue(ctx, teller{}, say)
}

// tell says what is waited for, once the wait is long enough to be wondered at.
func (w waiting) tell(ctx context.Context, p Pace, waited time.Duration, seen string) {
	if say, ok := ctx.Value(teller{}).(func(string)); ok && waited >= p.Tell {
		say(fmt.Sprintf("waiting for %s to %s, at most %s: %s", w.what, w.to, w.limit, seen))
	}
}

func (p Pace) next(waited time.Duration) time.Duration {
	return min(p.Max, max(p.First, time.Duration(float64(waited)*p.Share)))
}

// How long each change may take before the wait for it fails: several times the
// longest that was seen.
const (
	forServer  = 10 * time.Minute // start 20 s, stop 40 s
	forVolume  = 10 * time.Minute // 5 s
	forImport  = 30 * time.Minute // 212 s for a disk that is nearly empty
	forGateway = 10 * time.Minute // 15 s
	forLB      = 15 * time.Minute // 30 s
	forNIC     = 5 * time.Minute  // at once, 90 s on a running server
	forGroup   = 5 * time.Minute  // 1 s
	forFree    = 5 * time.Minute  // until what was in the way of a deletion is gone
	forVisible = time.Minute      // until something new can be read
)

// verdict is what one look at a thing says.
type verdict struct {
	done   bool
	status string // the provider's word
	failed string // why it can never be done; ends the wait
}

// waiting describes a wait: for what, to be what, for how long at most.
type waiting struct {
	what  string // "the gateway staging-gateway"
	to    string // "run", "be gone": the rest of the sentence "did not ..."
	limit time.Duration
	gone  bool // not found is the goal
	fresh bool // it was just made: not found may mean "not visible yet", otherwise it means gone
}

// until looks at a thing until it is as wanted. Only the wanted state ends the
// wait: right after a change the old state, or nothing at all, may still be
// shown. A look that fails in passing is repeated; the limit ends everything.
func until[T any](ctx context.Context, c *Cloud, w waiting, look func(context.Context) (T, error), judge func(T) verdict) (T, error) {
	begun := time.Now()
	seen, leaving := "it was not seen at all", !w.fresh
	for {
		v, err := look(ctx)
		waited := time.Since(begun)
		switch {
		case err == nil:
			j := judge(v)
			if j.failed != "" {
				return v, outcome.Fail(fmt.Sprintf("%s did not %s", w.what, w.to), j.failed, "look at it in the Scaleway console; then run the command again")
			}
			if j.done && !w.gone {
				return v, nil
			}
			seen, leaving = fmt.Sprintf("it is %s", j.status), !w.fresh || isLeaving(j.status)
		case ctx.Err() != nil:
			return v, w.cut(ctx, seen)
		case notFound(err) && w.gone:
			return v, nil
		case notFound(err) && !leaving && waited < forVisible:
			seen = "it cannot be found"
		case notFound(err):
			return v, outcome.Fail(fmt.Sprintf("%s did not %s", w.what, w.to), "it cannot be found any more", "run the command again; it continues where this one stopped").Because(err)
		case !passing(err):
			return v, c.failed(fmt.Sprintf("%s did not %s", w.what, w.to), err)
		default:
			seen = err.Error()
		}
		if waited > w.limit {
			return v, outcome.Fail(fmt.Sprintf("%s did not %s within %s", w.what, w.to, w.limit), seen,
				"run the command again to go on waiting, or look at it in the Scaleway console")
		}
		w.tell(ctx, c.pace, waited, seen)
		if sleep(ctx, c.pace.next(waited)) != nil {
			return v, w.cut(ctx, seen)
		}
	}
}

// cut ends a wait with its context. A command's own time limit is a failure that
// says how far things were; an interruption is just that.
func (w waiting) cut(ctx context.Context, seen string) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return outcome.Fail(fmt.Sprintf("%s did not %s in the time given", w.what, w.to), seen, "run the command again to go on waiting").Because(ctx.Err())
}

// isLeaving recognises the words for something that is on its way out.
func isLeaving(status string) bool {
	switch status {
	case "deleting", "to_delete", "detaching", "deleted":
		return true
	}
	return false
}

// steady makes a change, again and again while the thing is busy with another.
// Both the look and the change may meet a gateway or a load balancer that
// somebody else's change has just made busy.
func (c *Cloud) steady(ctx context.Context, limit time.Duration, change func(context.Context) error) error {
	begun := time.Now()
	for {
		err := change(ctx)
		waited := time.Since(begun)
		if err == nil || !busy(err) || waited > limit {
			return err
		}
		if ended := sleep(ctx, c.pace.next(waited)); ended != nil {
			return orLast(ended, err)
		}
	}
}

// orLast is the error of a wait that its context ended: an interruption is just
// that, a time limit leaves what was waited for.
func orLast(ended, last error) error {
	if last == nil || errors.Is(ended, context.Canceled) {
		return ended
	}
	return last
}
