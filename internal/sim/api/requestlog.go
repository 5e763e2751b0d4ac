package api

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"bastide/internal/sim/fault"
)

// Request is a call as the log shows it. Keys and bodies are never kept.
type Request struct {
	Seq      int       `json:"seq"` // from 1, in order of arrival
	Time     time.Time `json:"time"`
	Host     string    `json:"host,omitempty"` // s3 for object storage
	Method   string    `json:"method"`
	Path     string    `json:"path"`
	Query    string    `json:"query,omitempty"`
	Status   int       `json:"status"`         // 0 while the call runs and when the connection was cut
	Code     string    `json:"code,omitempty"` // of a call of the Talos API: how it was answered
	Caller   string    `json:"caller"`         // user agent
	Mutating bool      `json:"mutating"`
	Effects  []Effect  `json:"effects,omitempty"`
	Fault    string    `json:"fault,omitempty"`
	Millis   float64   `json:"ms"`
}

// requestLog remembers every call since the start or the last reset.
type requestLog struct {
	mu      sync.Mutex
	entries []*Request
}

func newRequestLog() *requestLog { return &requestLog{} }

func (l *requestLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

// What the log says of a call at which the caller was killed.
const (
	killedBefore = "killed before it took effect"
	killedAfter  = "killed after it took effect"
)

type logEntry struct {
	log *requestLog
	*Request
	start time.Time
}

func (l *requestLog) begin(r *http.Request) logEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &Request{Seq: len(l.entries) + 1, Time: now(), Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		Caller: r.UserAgent(), Mutating: fault.Mutates(r.Method)}
	l.entries = append(l.entries, e)
	return logEntry{l, e, time.Now()}
}

func (e logEntry) finish(a answer, f *fault.HTTP) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.Effects = a.effects
	if !a.cut {
		e.Request.Status = a.status
	}
	e.Fault = a.fault
	if f != nil {
		e.Fault = strings.TrimSpace(f.Describe() + " " + a.fault)
	}
	if a.killed != "" {
		e.Fault = a.killed
	}
	e.Millis = float64(time.Since(e.start).Microseconds()) / 1000
}

// Outside notes a call of another room's server, such as object storage, beside
// those of the API. The function that it returns ends the entry; a status of 0
// means that the connection was cut, and killed says when the caller was, before
// or after the call took effect, if it was; ruled names the rule that took a
// right from the call's key.
func (r *Region) Outside(host, path, query string, req *http.Request) func(status int, effects []Effect, f *fault.HTTP, killed, ruled string) {
	entry := r.log.begin(req)
	r.log.mu.Lock()
	entry.Host, entry.Path, entry.Query = host, path, query
	entry.Mutating = entry.Mutating && req.Method != http.MethodOptions
	r.log.mu.Unlock()
	moments := map[string]string{"before": killedBefore, "after": killedAfter}
	return func(status int, effects []Effect, f *fault.HTTP, killed, ruled string) {
		entry.finish(answer{status: status, effects: effects, cut: status == 0, killed: moments[killed], fault: ruled}, f)
	}
}

// since copies the calls after a sequence number.
func (l *requestLog) since(seq int) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []Request{}
	for _, e := range l.entries {
		if e.Seq > seq {
			out = append(out, *e)
		}
	}
	return out
}

// Requests are the calls made after a sequence number; 0 means all.
func (r *Region) Requests(since int) []Request { return r.log.since(since) }

func sinceOf(req *http.Request) int {
	n, _ := strconv.Atoi(req.URL.Query().Get("since"))
	return n
}
