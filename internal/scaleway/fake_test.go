package scaleway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"bastide/internal/estate"
)

const (
	testProject = "11111111-1111-4111-8111-111111111111"
	testKey     = "SCWXXXXXXXXXXXXXXXXX"
	testSecret  = "22222222-2222-4222-8222-222222222222"
)

func testEstate() *estate.Estate {
	return &estate.Estate{Name: "staging",
		Scaleway: estate.Scaleway{Project: testProject, Region: "fr-par", Zones: []string{"fr-par-1"}},
		Talos:    estate.Talos{Version: "v1.13.5", Snapshot: "talos"},
	}
}

// quick keeps tests short without changing what is done.
var (
	quickRetry = Retry{Attempt: 2 * time.Second, Base: time.Millisecond, Cap: 5 * time.Millisecond, Budget: 3 * time.Second}
	quickPace  = Pace{First: time.Millisecond, Max: 10 * time.Millisecond, Settle: 50 * time.Millisecond}
)

func environment(url string, more ...string) func(string) (string, bool) {
	vars := map[string]string{"SCW_ACCESS_KEY": testKey, "SCW_SECRET_KEY": testSecret, "SCW_API_URL": url}
	for i := 0; i+1 < len(more); i += 2 {
		vars[more[i]] = more[i+1]
	}
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

// testCloud is a cloud against a handler, and the log of attempts.
func testCloud(t *testing.T, h http.Handler, change ...func(*Options)) (*Cloud, func() []Call) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	var mu sync.Mutex
	var calls []Call
	o := Options{Estate: testEstate(), LookupEnv: environment(server.URL), Retry: quickRetry, Pace: quickPace,
		Decorators: []Decorator{Record(func(c Call) { mu.Lock(); defer mu.Unlock(); calls = append(calls, c) })}}
	for _, f := range change {
		f(&o)
	}
	c, _, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c, func() []Call { mu.Lock(); defer mu.Unlock(); return append([]Call(nil), calls...) }
}

// reply is one prepared answer.
type reply struct {
	status  int
	body    string
	plain   bool          // no JSON content type
	hang    time.Duration // before answering
	drop    bool          // cut the connection instead of answering
	cut     bool          // send half of the body
	header  map[string]string
	perform func() // what the server does before its answer is lost
}

// script answers calls in turn; the last answer stays.
type script struct {
	mu      sync.Mutex
	replies []reply
	served  int
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // so that the server notices when the client hangs up
	s.mu.Lock()
	at := s.replies[min(s.served, len(s.replies)-1)]
	s.served++
	s.mu.Unlock()
	if at.perform != nil {
		at.perform()
	}
	if at.hang > 0 {
		select {
		case <-time.After(at.hang):
		case <-r.Context().Done():
			return
		}
	}
	if at.drop {
		panic(http.ErrAbortHandler)
	}
	for k, v := range at.header {
		w.Header().Set(k, v)
	}
	if !at.plain {
		w.Header().Set("Content-Type", "application/json")
	}
	body := at.body
	if at.cut {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		body = body[:len(body)/2]
	}
	w.WriteHeader(at.status)
	_, _ = w.Write([]byte(body))
	if at.cut {
		panic(http.ErrAbortHandler)
	}
}
