package store

import (
	"context"
	"testing"
	"time"

	"bastide/internal/outcome"
)

// A lock that was removed or taken over ends what runs under it, found by the
// renewal, or by asking before a step.
func TestALostLockEndsTheRun(t *testing.T) {
	for name, take := range map[string]func(*place, *Store, *Held){
		"unlocked": func(p *place, s *Store, h *Held) {
			if was, err := s.Unlock(p.Context(), h.ID, request.Unlock); err != nil || was.ID != h.ID {
				p.Fatalf("%v, %v", was, err)
			}
		},
		"taken over": func(p *place, s *Store, h *Held) {
			there, err := s.current(p.Context())
			if err != nil {
				p.Fatal(err)
			}
			other := there.Lock
			other.ID = "ffffffffffffffff"
			if _, err := s.write(p.Context(), other, unchanged(there.object.etag)); err != nil {
				p.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			s := p.store(Terms{})
			asked := p.acquire(s)
			asked.confirmed = time.Time{}
			take(p, s, asked)
			wantError(t, asked.Check(t.Context()), outcome.Failed, "the lock of staging was lost", "run the command again")
			if asked.Err() == nil {
				t.Error("writes may go on")
			}
			asked.Release(t.Context())
			if st, err := s.current(t.Context()); err != nil || (st != nil) != (name == "taken over") {
				t.Errorf("after the loser's release: %v, %v", st, err)
			}

			p = newPlace(t)
			s = p.store(Terms{Life: time.Hour, Renew: 20 * time.Millisecond})
			renewed := p.acquire(s)
			ctx := renewed.Keep(t.Context())
			for {
				there, err := s.current(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if there.Renewed > 2 { // it is renewed as long as it is held
					break
				}
			}
			renewed.stopRenewing(func() { take(p, s, renewed) })
			<-ctx.Done()
			wantError(t, context.Cause(ctx), outcome.Failed, "the lock of staging was lost")
			renewed.Release(t.Context())
		})
	}
}

// stopRenewing does something between two renewals.
func (h *Held) stopRenewing(do func()) {
	close(h.stop)
	h.stopped.Wait()
	do()
	h.renew(context.Background())
	h.stop = make(chan struct{})
}

// A lock that cannot be renewed in time is not held any more, whoever is at fault.
func TestALockThatCannotBeRenewed(t *testing.T) {
	t.Parallel() // it waits for patience to end
	p := newPlace(t)
	s := p.store(Terms{Life: 2 * time.Second, Renew: 20 * time.Millisecond})
	h := p.acquire(s)
	p.faults(`{http: [{method: PUT, path: "/bastide-staging/lock.json", status: 503}]}`)
	ctx := h.Keep(t.Context())
	<-ctx.Done()
	wantError(t, context.Cause(ctx), outcome.Failed, "could not be renewed in time")
	p.faults(`{}`)
	h.Release(t.Context())
	if st, err := s.Current(t.Context()); err != nil || st != nil {
		t.Errorf("the lock is still there: %v, %v", st, err)
	}
}
