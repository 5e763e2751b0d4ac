package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"bastide/internal/sim/fault"
)

const largestBody = 10 << 20

// ServeHTTP answers one request.
func (r *Region) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.mux.ServeHTTP(w, req) }

// answer is a finished response, not sent yet.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	isJSON  bool
	cut     bool // the connection ends before or within the answer
	killed  string
	fault   string // what the script did to the call's rights
	effects []Effect
}

// serve takes a call of the Scaleway API through faults, rights, its handler
// and the log.
func (r *Region) serve(w http.ResponseWriter, req *http.Request, status int, h handler) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, largestBody))
	if err != nil {
		http.Error(w, "body too large or cut short", http.StatusBadRequest)
		return
	}
	entry := r.log.begin(req)
	mutating := fault.Mutates(req.Method)
	f := r.faults.HTTP(req.Method, req.URL.Path, req.URL.Query(), body)
	due := r.faults.DueAtHTTP(req.Method, req.URL.Path)
	r.happen(due.Before)
	killed, after := false, func() bool { return false }
	if mutating {
		killed, after = r.faults.Mutating(req.URL.Path)
	}
	a, passed := answer{cut: true, killed: killedBefore}, false
	if !killed {
		a, passed = r.intercept(req.Context(), f)
	}
	if passed {
		a = r.handle(req, body, status, h, f)
		r.happen(due.After)
		if after() {
			a.cut, a.killed = true, killedAfter
		}
	}
	entry.finish(a, f)
	send(w, a, f)
}

// intercept acts out the faults that keep a call from its handler.
func (r *Region) intercept(ctx context.Context, f *fault.HTTP) (a answer, passed bool) {
	if f == nil {
		return answer{}, true
	}
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return answer{cut: true}, false
		}
	}
	switch {
	case f.Hang:
		<-ctx.Done()
		return answer{cut: true}, false
	case f.Drop, f.CutAfter > 0:
		return answer{cut: true}, false
	case f.Status != 0:
		a := answer{status: f.Status, header: http.Header{}}
		switch b := f.Body.(type) {
		case nil:
		case string:
			a.body = []byte(b)
		default:
			a.body, _ = json.Marshal(b)
			a.isJSON = true
		}
		if f.Status == http.StatusTooManyRequests && f.Body == nil {
			a.header.Set("X-Envoy-Ratelimited", "true") // all that the real one says
		}
		for k, v := range f.Headers {
			a.header.Set(k, v)
		}
		return a, false
	}
	return answer{}, true
}

// handle runs the handler, and what comes after it for calls that take a time
// or wait for the hardware.
func (r *Region) handle(req *http.Request, body []byte, status int, h handler, f *fault.HTTP) answer {
	a, c := r.locked(req, body, status, func(c *call) (any, error) { return c.admitted(h) }, f)
	if c.finish != nil {
		_ = r.opts.Clock.Wait(r.background, c.lasts) // whoever called may be gone; the change comes all the same
		a, c = r.locked(req, body, status, c.finish, f)
	}
	if c.awaits != "" {
		r.effects.idle(c.awaits)
	}
	return a
}

// locked runs a handler under the region's lock.
func (r *Region) locked(req *http.Request, body []byte, status int, h handler, f *fault.HTTP) (answer, *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.world
	if f != nil && f.Stale > 0 && !fault.Mutates(req.Method) {
		w = r.asOf(time.Now().Add(-f.Stale))
	}
	c := &call{world: w, req: req, body: body, header: http.Header{}}
	if fault.Mutates(req.Method) {
		r.remember()
	}
	w.touched = nil
	value, err := h(c)
	a := answer{status: status, header: c.header, effects: w.touched, fault: c.fault}
	w.touched = nil
	var no *refusal
	switch {
	case errors.As(err, &no):
		a.status, value = no.status, no.body
	case err != nil:
		r.opts.Log.Error("simulated region: handler failed", "path", req.URL.Path, "error", err)
		a.status, value = http.StatusInternalServerError, doc{"message": "internal error"}
	}
	switch v := value.(type) {
	case nil:
	case raw:
		a.header.Set("Content-Type", v.contentType)
		a.body = v.body
	default:
		if f != nil && f.ShortPage > 0 {
			value = shorten(value, f.ShortPage)
		}
		a.isJSON = true
		if a.body, err = json.Marshal(value); err != nil {
			r.opts.Log.Error("simulated region: answer is no JSON", "path", req.URL.Path, "error", err)
		}
	}
	a.cut = f != nil && f.ApplyThenDrop
	return a, c
}

// shorten leaves items off the end of a listing.
func shorten(value any, n int) any {
	d, ok := value.(doc)
	if !ok {
		return value
	}
	for k, v := range d {
		if items, ok := v.([]doc); ok {
			d[k] = items[:max(0, len(items)-n)]
		}
	}
	return d
}

// send writes an answer, or what a fault leaves of it.
func send(w http.ResponseWriter, a answer, f *fault.HTTP) {
	if a.cut {
		panic(http.ErrAbortHandler) // closes the connection without a reply
	}
	h := w.Header()
	for k, v := range a.header {
		h[k] = v
	}
	h.Set("X-Request-Id", newID())
	h.Set("Server", "Scaleway API Gateway (fr-par-1;edge01)")
	h.Set("Strict-Transport-Security", "max-age=63072000")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	if a.isJSON {
		h.Set("Content-Type", "application/json")
	} else if h.Get("Content-Type") == "" {
		h["Content-Type"] = nil // no guess from the body
	}
	if len(a.body) > 0 {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	if f != nil && f.Truncate > 0 && f.Truncate < len(a.body) {
		_, _ = w.Write(a.body[:f.Truncate])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(a.body)
}

// admitted checks the key, its rights and the place, then runs the handler.
func (c *call) admitted(h handler) (any, error) {
	token := c.req.Header.Get("X-Auth-Token")
	public := strings.HasPrefix(c.req.URL.Path, "/marketplace/") || strings.HasPrefix(c.req.URL.Path, "/product-catalog/") ||
		c.req.URL.Path == "/metadata"
	if token == "" && !public {
		return nil, unauthenticated("not_found")
	}
	if token != "" && !uuidPattern.MatchString(token) {
		return nil, unauthenticated("invalid_argument")
	}
	if err := c.permitted(token, public); err != nil {
		return nil, err
	}
	if z := c.zone(); z != "" && !knownZone(z) {
		return nil, invalid("zone", "constraint", fmt.Sprintf("zone %s does not exist", z))
	}
	if g := c.regionName(); g != "" && !knownRegion(g) {
		return nil, invalid("region", "constraint", fmt.Sprintf("region %s does not exist", g))
	}
	if err := c.checkIdentifiers(); err != nil {
		return nil, err
	}
	return h(c)
}
