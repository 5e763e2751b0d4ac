package kube

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// leaseServer holds one lease as an API server does: an update of another
// version than the present one is refused.
type leaseServer struct {
	mu    sync.Mutex
	lease *coordination.Lease
}

func (s *leaseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sent coordination.Lease
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	switch {
	case r.Method == http.MethodGet && s.lease == nil:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	case r.Method == http.MethodPost && s.lease != nil:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		return
	case r.Method == http.MethodPut && sent.ResourceVersion != s.lease.ResourceVersion:
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	case r.Method != http.MethodGet:
		n, _ := strconv.Atoi(sent.ResourceVersion)
		sent.ResourceVersion = strconv.Itoa(n + 1)
		s.lease = &sent
	}
	w.Header().Set("Content-Type", "application/json")
	out := *s.lease
	out.APIVersion, out.Kind = "coordination.k8s.io/v1", "Lease"
	_ = json.NewEncoder(w).Encode(out)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code)})
}

// One leads; when it stops renewing, another does, and never both.
func TestOneLeadsAtATime(t *testing.T) {
	server := httptest.NewServer(&leaseServer{})
	defer server.Close()
	c, err := New(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	election := func(name string) Election {
		return Election{Lease: metav1.ObjectMeta{Namespace: "kube-system", Name: "boss"}, Identity: name,
			Duration: 4 * time.Second, Renew: time.Second, Retry: 20 * time.Millisecond} // far apart, on a machine that stalls too
	}
	var leading sync.Mutex
	led := make(chan string, 10)
	work := func(name string) func(context.Context) {
		return func(ctx context.Context) {
			if !leading.TryLock() {
				t.Errorf("%s leads while another does", name)
				return
			}
			led <- name
			<-ctx.Done()
			leading.Unlock()
		}
	}
	all, stopAll := context.WithCancel(t.Context())
	var candidates sync.WaitGroup
	stop := map[string]context.CancelFunc{}
	for _, name := range []string{"a", "b"} {
		ctx, cancel := context.WithCancel(all)
		stop[name] = cancel
		candidates.Go(func() { c.Lead(ctx, election(name), work(name)) })
	}
	first := <-led
	stop[first]()
	if second := <-led; second == first {
		t.Errorf("%s leads again after it was stopped", second)
	}
	stopAll()
	candidates.Wait()
}
