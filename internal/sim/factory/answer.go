package factory

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"bastide/internal/sim/fault"
)

// answer is a response on its way: what it was, and what a fault leaves of it.
type answer struct {
	http.ResponseWriter
	status int
	made   string // the id of what the call made
	limit  int64  // bytes of the body that leave before the connection is cut; -1 for all
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body, and cuts the connection where a fault says so.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if a.limit < 0 {
		return a.ResponseWriter.Write(p)
	}
	if int64(len(p)) <= a.limit {
		a.limit -= int64(len(p))
		return a.ResponseWriter.Write(p)
	}
	_, _ = a.ResponseWriter.Write(p[:a.limit])
	_ = http.NewResponseController(a.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// unsent keeps an answer back until it is certain that somebody is there to
// read it.
type unsent struct {
	*answer
	status int
	body   bytes.Buffer
}

func (u *unsent) WriteHeader(status int)      { u.status = status }
func (u *unsent) Write(p []byte) (int, error) { return u.body.Write(p) }

func (u *unsent) send() {
	u.answer.WriteHeader(u.status)
	_, _ = u.answer.Write(u.body.Bytes())
}

// act acts out the faults that keep a call from the Factory; false means that
// the call is over.
func act(w http.ResponseWriter, r *http.Request, f *fault.HTTP) (passed bool) {
	if f == nil {
		return true
	}
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	switch {
	case f.Hang:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case f.Drop, f.CutAfter > 0:
		panic(http.ErrAbortHandler)
	case f.Status == 0:
		return true
	}
	var body []byte
	switch b := f.Body.(type) {
	case nil:
		body = []byte(http.StatusText(f.Status) + "\n")
	case string:
		body = []byte(b)
	default:
		body, _ = json.Marshal(b)
		w.Header().Set("Content-Type", "application/json")
	}
	for k, v := range f.Headers {
		w.Header().Set(k, v)
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write(body)
	return false
}
