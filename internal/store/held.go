package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bastide/internal/outcome"
)

// Held is the lock as this process holds it. It is renewed until it is released.
type Held struct {
	ID string

	s       *Store
	stop    chan struct{}
	stopped sync.WaitGroup

	asking    sync.Mutex // one question to the store at a time
	mu        sync.Mutex // of what follows; never held while the store is asked
	lock      Lock
	now       object // as it was written last
	good      time.Time
	lost      error
	confirmed time.Time
	cancel    context.CancelCauseFunc // of the context that Keep gave
}

// hold begins to hold a lock that was written no earlier than from.
func (s *Store) hold(l Lock, o object, from time.Time, over *State) *Held {
	h := &Held{ID: l.ID, s: s, lock: l, now: o, good: from.Add(s.o.Terms.Life), confirmed: time.Now(), stop: make(chan struct{}), cancel: func(error) {}}
	if over != nil {
		why := "it had expired"
		if over.Ended {
			why = "that process has ended without releasing it"
		}
		s.o.Notice(fmt.Sprintf("the lock %s of %s on %s (process %d, %s) was taken over: %s, %s after it was renewed last",
			over.ID, over.Holder.User, over.Holder.Host, over.Holder.PID, over.Command, why, over.Age.Round(time.Second)))
	}
	return h
}

// Keep renews the lock in the background. The context that it returns ends when
// the lock is lost, with the reason as its cause.
func (h *Held) Keep(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	h.mu.Lock()
	h.cancel = cancel
	h.mu.Unlock()
	// An interrupted run still tidies up under the lock.
	beyond := context.WithoutCancel(ctx)
	h.stopped.Go(func() {
		tick := time.NewTicker(h.s.o.Terms.Renew)
		defer tick.Stop()
		for {
			select {
			case <-h.stop:
				return
			case <-tick.C:
				h.renew(beyond)
			}
		}
	})
	return ctx
}

// renew writes the lock again, on condition that it is still as it was written.
func (h *Held) renew(ctx context.Context) {
	h.mu.Lock()
	next, before, good, lost := h.lock, h.now, h.good, h.lost
	h.mu.Unlock()
	if lost != nil {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, good)
	defer cancel()
	next.Renewed++
	from := time.Now()
	o, err := h.s.write(ctx, next, unchanged(before.etag))
	if has(err, "PreconditionFailed") { // perhaps by this very write, whose answer was lost
		there, looked := h.s.current(ctx)
		if looked == nil && there != nil && there.ID == next.ID && there.Renewed == next.Renewed {
			o, err = there.object, nil
		}
	}
	if err == nil {
		// What is superseded goes, so that it never comes back when its
		// successor is removed. If it does not, the release removes it.
		_ = h.s.erase(ctx, lockKey, before.version)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		h.lock, h.now, h.good, h.confirmed = next, o, from.Add(h.s.o.Terms.Life), time.Now()
	case has(err, "PreconditionFailed", "NoSuchKey", "NoSuchBucket"):
		h.lose("it was removed or taken over while this run held it")
	case passed(good):
		h.lose("it could not be renewed in time: " + err.Error())
	}
}

// passed says that a moment is over, by the clock that goes on while the machine
// sleeps as well as by the one that nobody can set.
func passed(t time.Time) bool {
	return !time.Now().Before(t) || !time.Now().Round(0).Before(t.Round(0))
}

// lose ends what runs under the lock.
func (h *Held) lose(why string) {
	h.lost = outcome.Fail("the lock of "+h.s.o.Estate+" was lost", why, "see who works on the estate (bastide unlock without a lock id says it), then run the command again: it continues where this one stopped")
	h.cancel(h.lost)
}

// Err says why the lock is not held any more; nil while it is, as far as is known
// without asking. It is cheap.
func (h *Held) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost == nil && passed(h.good) {
		h.lose("it could not be renewed in time")
	}
	return h.lost
}

// trust is how long an answer about the lock counts for those who ask at the
// same time.
const trust = 250 * time.Millisecond

// Check asks the store whether the lock is still this run's.
func (h *Held) Check(ctx context.Context) error {
	if err := h.Err(); err != nil {
		return err
	}
	h.asking.Lock() // those who come meanwhile share the answer
	defer h.asking.Unlock()
	h.mu.Lock()
	recent, lost := time.Since(h.confirmed) < trust, h.lost
	h.mu.Unlock()
	if lost != nil || recent {
		return lost
	}
	there, err := h.s.current(ctx)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if there != nil && there.ID == h.ID {
		h.confirmed = time.Now()
		return h.lost
	}
	who := "it was removed while this run held it"
	if there != nil {
		who = "it was taken over while this run held it: " + there.String()
	}
	h.lose(who)
	return h.lost
}

// forRelease bounds how long an ending run tries to give the lock back.
const forRelease = 20 * time.Second

// Release gives the lock back, also when the context has ended. What is not given
// back expires.
func (h *Held) Release(ctx context.Context) {
	h.end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forRelease)
	defer cancel()
	if err := h.s.eraseLock(ctx, h.ID, h.now.version); err != nil && h.lost == nil {
		h.s.o.Notice(fmt.Sprintf("the lock %s of %s could not be removed and is in the way until %s: %v", h.ID, h.s.o.Estate, h.good.Format(time.RFC3339), err))
	}
}

// end stops the renewals.
func (h *Held) end() {
	select {
	case <-h.stop:
	default:
		close(h.stop)
	}
	h.stopped.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancel(nil)
}

// eraseLock removes one version of the lock, and before it all older ones, which
// would be the lock again without it. A newer one is somebody else's and stays.
func (s *Store) eraseLock(ctx context.Context, id, version string) error {
	all, err := s.versions(ctx, lockKey)
	if has(err, "NoSuchBucket") {
		return nil
	}
	if err != nil {
		return s.objects.Failed("the lock "+id+" was not removed", err)
	}
	older := false
	for _, v := range all {
		if older {
			if err := s.erase(ctx, lockKey, v.VersionID); err != nil {
				return s.objects.Failed("the lock "+id+" was not removed", err)
			}
		}
		older = older || v.VersionID == version
	}
	if err := s.erase(ctx, lockKey, version); err != nil {
		return s.objects.Failed("the lock "+id+" was not removed", err)
	}
	return nil
}
