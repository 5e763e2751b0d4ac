package scaleway_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"
)

// A reading is two rounds of calls: what there is, and what is inside. Within a
// round no call waits for another one's answer.
func TestAReadingIsTwoRounds(t *testing.T) {
	t.Parallel()
	w := newServicesWorld(t, smallServices())
	w.mustUp()
	w.wantConverged() // so that nothing lags
	r := &rounds{left: []int{20, 11}, full: make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := w.cloud(func(next http.RoundTripper) http.RoundTripper { r.next = next; return r }).Inventory(ctx)
	if err != nil || len(r.left) > 0 || len(r.calls) > 0 {
		t.Errorf("rounds of %v calls did not come to be; calls of none: %q; %v", r.left, r.calls, err)
	}
}

// rounds holds calls back until as many are under way as a round has.
type rounds struct {
	next http.RoundTripper

	mu    sync.Mutex
	left  []int         // how many calls the rounds have that are to come
	calls []string      // of the round that is not full yet
	full  chan struct{} // closed when it is
}

func (r *rounds) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-r.join(req.URL.String()):
		return r.next.RoundTrip(req)
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

func (r *rounds) join(call string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	round := r.full
	switch {
	case len(r.left) == 0: // one too many: it goes on and is told
		done := make(chan struct{})
		close(done)
		return done
	case len(r.calls) == r.left[0]:
		close(r.full)
		r.left, r.calls, r.full = r.left[1:], nil, make(chan struct{})
	}
	return round
}
