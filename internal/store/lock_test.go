package store

import (
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bastide/internal/outcome"
	"bastide/internal/scaleway"
)

func TestALockIsHeldByOne(t *testing.T) {
	p := newPlace(t)
	s := p.store(Terms{})
	var mu sync.Mutex
	var winner *Held
	var refused []error
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			h, err := p.store(Terms{}).Acquire(t.Context(), request)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refused = append(refused, err)
			} else if winner != nil {
				t.Error("two hold the lock")
			} else {
				winner = h
			}
		})
	}
	all.Wait()
	if winner == nil || len(refused) != 7 {
		t.Fatalf("%d of 8 were refused", len(refused))
	}
	me := self()
	for _, err := range refused {
		wantError(t, err, outcome.Refused, "staging is locked", winner.ID, me.Host, me.User, "bastide up envs/staging", "bastide unlock envs/staging "+winner.ID)
	}
	if err := winner.Check(t.Context()); err != nil {
		t.Error(err)
	}
	winner.Release(t.Context())
	if got := p.keys(s.Bucket); !slices.Equal(got, []string{proofKey}) {
		t.Errorf("after the release the bucket holds %v", got)
	}
	p.acquire(s).Release(t.Context())
	if p.heard() != "" {
		t.Errorf("told: %s", p.heard())
	}
}

// ended is a process that has ended, and has this one's numbering.
func ended(t *testing.T) Holder {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := self()
	h.PID, h.Started = cmd.Process.Pid, startOf(cmd.Process.Pid)
	if h.Started == "" || h.gone() {
		t.Fatalf("a process that lives is taken for gone: %+v", h)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return h
}

// leave puts a lock into the bucket as another process would have left it.
func (p *place) leave(s *Store, h Holder) Lock {
	p.Helper()
	if err := s.ready(p.Context()); err != nil {
		p.Fatal(err)
	}
	l := Lock{ID: "00112233445566aa", Command: "bastide up envs/staging", Holder: h, Version: "bastide/test", Acquired: time.Now().UTC(), Life: s.o.Terms.Life.String()}
	if _, err := s.write(p.Context(), l, fresh); err != nil {
		p.Fatal(err)
	}
	return l
}

// Field report 60: a run that was killed left its lock. On the same machine the
// next run sees that the process has ended, says so and takes over; where that
// cannot be seen it is refused with everything that a person needs to decide.
func TestFieldReport60TheLockOfADeadProcess(t *testing.T) {
	dead := ended(t)
	elsewhere, cloned, restarted, contained, unknown := dead, dead, dead, dead, dead
	elsewhere.Host, elsewhere.Boot = "build-7", "other"
	cloned.Host = "build-8"
	restarted.Boot = "before the last start"
	contained.Namespace = "pid:[1]"
	unknown.Boot, unknown.Namespace, unknown.Started = "", "", ""
	reused := self()
	reused.Started = "1"
	for name, c := range map[string]struct {
		holder Holder
		takes  bool
	}{
		"ended here":             {dead, true},
		"number is used again":   {reused, true},
		"lives here":             {self(), false},
		"on another machine":     {elsewhere, false},
		"on a clone of this one": {cloned, false},
		"before a restart":       {restarted, false},
		"in another container":   {contained, false},
		"a system without /proc": {unknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			s := p.store(Terms{})
			l := p.leave(s, c.holder)
			h, err := s.Acquire(t.Context(), request)
			if !c.takes {
				wantError(t, err, outcome.Refused, l.ID, c.holder.Host, l.Command, "ago", "bastide unlock envs/staging "+l.ID)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{l.ID, "was taken over", "has ended without releasing it", "renewed last"} {
				if !strings.Contains(p.heard(), part) {
					t.Errorf("%q was not told: %s", part, p.heard())
				}
			}
			h.Release(t.Context())
			if st, err := s.Current(t.Context()); err != nil || st != nil {
				t.Errorf("the lock that was taken over is back: %v, %v", st, err)
			}
		})
	}
}

// later shifts the store's clock, and not the times at which objects were written.
func later(by time.Duration) scaleway.Decorator {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			res, err := next.RoundTrip(r)
			if err == nil {
				at, perr := http.ParseTime(res.Header.Get("Date"))
				if perr != nil {
					return nil, perr
				}
				res.Header.Set("Date", at.Add(by).Format(http.TimeFormat))
			}
			return res, err
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An expired lock is taken over, by one; whether it has expired is the store's
// clock's to say.
func TestALockExpires(t *testing.T) {
	p := newPlace(t)
	h := self()
	h.Boot = "other"
	life := Terms{}.orDefaults().Life
	l := p.leave(p.store(Terms{}), h)
	if _, err := p.store(Terms{}, later(life-10*time.Second)).Acquire(t.Context(), request); err == nil {
		t.Fatal("a lock was taken over before it expired")
	}
	var won []*Held
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			// The winner's new lock is as new as it looks only by a true clock.
			if h, err := p.store(Terms{Life: 24 * time.Hour}, later(life+10*time.Second)).Acquire(t.Context(), request); err == nil {
				mu.Lock()
				won = append(won, h)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Fatalf("%d took the expired lock over", len(won))
	}
	if !strings.Contains(p.heard(), "the lock "+l.ID) || !strings.Contains(p.heard(), "it had expired") {
		t.Errorf("told: %s", p.heard())
	}
}

func TestUnlockNeedsTheID(t *testing.T) {
	p := newPlace(t)
	s := p.store(Terms{})
	if was, err := s.Unlock(t.Context(), "x", request.Unlock); was != nil || err != nil || len(p.writes()) != 0 {
		t.Fatalf("without a bucket: %v, %v, %v", was, err, p.writes())
	}
	h := p.acquire(s)
	for _, id := range []string{"", "x", h.ID[:15], h.ID + "0"} {
		_, err := s.Unlock(t.Context(), id, request.Unlock)
		wantError(t, err, outcome.Refused, "is not the id of its lock", h.ID)
	}
	if err := h.Check(t.Context()); err != nil {
		t.Error(err)
	}
	st, err := s.Current(t.Context())
	if err != nil || st == nil || !strings.Contains(st.String(), h.ID) || !strings.Contains(st.String(), request.Command) {
		t.Fatalf("%v, %v", st, err)
	}
	if _, err := s.Unlock(t.Context(), h.ID, request.Unlock); err != nil {
		t.Fatal(err)
	}
	p.acquire(s).Release(t.Context())
}

// A lock of a form that is not known is somebody's.
func TestALockOfAnotherVersion(t *testing.T) {
	p := newPlace(t)
	s := p.store(Terms{})
	if err := s.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, err := s.put(t.Context(), lockKey, []byte("v2: {}"), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Acquire(t.Context(), request)
	wantError(t, err, outcome.Refused, "cannot read", o.etag)
	if _, err := s.Unlock(t.Context(), o.etag, request.Unlock); err != nil {
		t.Fatal(err)
	}
	p.acquire(s).Release(t.Context())
}
