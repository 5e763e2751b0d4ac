package scaleway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Retry bounds how hard a call is tried. The SDK itself never tries twice.
type Retry struct {
	Attempt time.Duration // limit of one attempt, so that a hang ends; default 30 s
	Base    time.Duration // first back-off; default 250 ms
	Cap     time.Duration // longest back-off; default 10 s
	Budget  time.Duration // no new attempt is begun after this; default 90 s
	Quiet   time.Duration // a call may fail for so long before the user is told; default 2 s
}

func (r Retry) orDefaults() Retry {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&r.Attempt, 30*time.Second)
	set(&r.Base, 250*time.Millisecond)
	set(&r.Cap, 10*time.Second)
	set(&r.Budget, 90*time.Second)
	set(&r.Quiet, 2*time.Second)
	return r
}

// pause is the back-off before attempt n (from 1) with full jitter: Scaleway's
// rate limit gives no time to wait, and callers in step trip it again together.
func (r Retry) pause(n int) time.Duration {
	top := r.Cap
	if n < 20 {
		top = min(top, r.Base<<(n-1))
	}
	return time.Duration(rand.Int64N(int64(top) + 1))
}

// protocol is what retrying must know of the language that is spoken.
type protocol interface {
	// readable says why an answer cannot be one of the service's; nil if it can.
	readable(req *http.Request, res *http.Response, answer []byte) error
	// repeatable says that a call has the same effect when it is made twice.
	repeatable(req *http.Request) bool
	// passing says that an answer may be another one a little later.
	passing(res *http.Response) bool
	String() string // who speaks it, for messages
}

// retrying repeats calls that may be repeated. A call that is not idempotent is
// repeated only when it had no effect for certain: the rate limiter turned it
// away, or no connection was made to send it on. What became of any other failed
// one is for the caller to find out.
type retrying struct {
	protocol
	next    http.RoundTripper
	retry   Retry
	reached atomic.Bool // something answered once, so the endpoint is right
	trouble trouble
}

func (t *retrying) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := bodyOf(req)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	deadline := begun.Add(t.retry.Budget)
	for n := 1; ; n++ {
		res, err := t.attempt(req, body)
		if res != nil {
			t.reached.Store(true)
		}
		if !t.again(req, res, err) {
			return res, err
		}
		// A wait that the server asks for and that goes beyond the budget is
		// not cut short: coming back earlier is what it asked not to do.
		wait := max(t.retry.pause(n), retryAfter(res))
		if time.Now().Add(wait).After(deadline) {
			return res, err
		}
		if time.Since(begun)+wait > t.retry.Quiet {
			t.trouble.tell(t.String(), res, err, deadline)
		}
		if sleep(req.Context(), wait) != nil {
			return res, err
		}
	}
}

// attempt makes the call once and reads the answer whole: a connection that is
// cut half way through an answer, or an answer that is no answer of the API, is
// then a failed attempt like any other.
func (t *retrying) attempt(req *http.Request, body []byte) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), t.retry.Attempt)
	defer cancel()
	once := req.Clone(ctx)
	if body != nil {
		once.Body = io.NopCloser(bytes.NewReader(body))
	}
	res, err := t.next.RoundTrip(once)
	if err != nil {
		return nil, t.lost(req, err)
	}
	answer, err := readAll(res.Body)
	if err != nil {
		return nil, t.lost(req, err)
	}
	if err := t.readable(req, res, answer); err != nil {
		t.reached.Store(true)
		return nil, t.lost(req, err)
	}
	res.Body = io.NopCloser(bytes.NewReader(answer))
	res.ContentLength = int64(len(answer))
	return res, nil
}

// jsonAPI is the protocol of Scaleway's APIs: JSON over HTTP. Reads, PUT, PATCH and
// DELETE are idempotent at Scaleway, POST is not.
type jsonAPI struct{}

func (jsonAPI) String() string { return "the Scaleway API" }

func (jsonAPI) repeatable(req *http.Request) bool { return req.Method != http.MethodPost }

func (jsonAPI) passing(res *http.Response) bool { return res.StatusCode >= 500 && !settledRefusal(res) }

// readable says why an answer cannot be the API's. A page of a proxy with
// status 200 is not a success: taken for one, a deletion would count as done.
func (jsonAPI) readable(req *http.Request, res *http.Response, answer []byte) error {
	anyText := strings.Contains(req.URL.Path, "/user_data/")
	switch {
	case len(answer) == 0 && req.Method == http.MethodGet && res.StatusCode < 300 && !anyText:
		return errors.New("the answer is empty")
	case len(answer) == 0:
		return nil
	case isJSON(res) && !json.Valid(answer):
		return errors.New("the answer is cut short")
	case isJSON(res) || res.StatusCode >= 300 || anyText:
		return nil
	}
	return fmt.Errorf("the answer is %s and no JSON", orText(res.Header.Get("Content-Type"), "of no known type"))
}

func (t *retrying) again(req *http.Request, res *http.Response, err error) bool {
	var nobody *unreachableError
	if req.Context().Err() != nil || held(err) || errors.As(err, &nobody) {
		return false
	}
	if res != nil && res.StatusCode == http.StatusTooManyRequests || unsent(err) {
		return true
	}
	return t.repeatable(req) && (err != nil || t.passing(res))
}

// retryAfter is the wait that an answer asks for, in seconds or until a date.
func retryAfter(res *http.Response) time.Duration {
	if res == nil {
		return 0
	}
	text := res.Header.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 1<<20 {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// settledRefusal recognises permanent refusals behind a status that looks
// passing: their body says so.
func settledRefusal(res *http.Response) bool {
	if res.StatusCode == http.StatusNotImplemented {
		return true
	}
	answer, _ := readAll(res.Body) // in memory already
	res.Body = io.NopCloser(bytes.NewReader(answer))
	var body struct {
		Type string `json:"type"`
	}
	if !isJSON(res) || json.Unmarshal(answer, &body) != nil {
		return false
	}
	switch body.Type {
	case "out_of_stock", "quotas_exceeded", "permissions_denied", "invalid_arguments", "denied_authentication", "not_found", "locked":
		return true
	}
	return false
}

// metadata refuses the SDK's question about the platform without asking anyone.
// The SDK asks it after nearly every call, caches the answer without a lock,
// which is a data race, and then dereferences every entry of a listing to note
// it, empty ones included. Without an answer it does none of that, and nothing
// here reads the fields that would hold it.
type metadata struct{ next http.RoundTripper }

func (t *metadata) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet || !strings.HasSuffix(req.URL.Path, "/metadata") {
		return t.next.RoundTrip(req)
	}
	return &http.Response{Status: "404 Not Found", StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

func isJSON(res *http.Response) bool {
	return strings.HasPrefix(res.Header.Get("Content-Type"), "application/json")
}

// maxAnswer bounds an answer, in bytes: a page of a listing is under 1 MiB.
const maxAnswer = 64 << 20

// inMemory is the key of a body in a call's context.
type inMemory struct{}

// Sending says that the body of a call is in memory already, so that it is sent
// from there and not copied. Nobody may write to it until the call has succeeded;
// after one that failed, it may still be read.
func Sending(ctx context.Context, body []byte) context.Context {
	return context.WithValue(ctx, inMemory{}, body)
}

// bodyOf reads what is to be sent, into no more memory than it has.
func bodyOf(req *http.Request) ([]byte, error) {
	if body, ok := req.Context().Value(inMemory{}).([]byte); ok && int64(len(body)) == req.ContentLength {
		return body, req.Body.Close()
	}
	if req.Body == nil || req.ContentLength <= 0 || req.ContentLength > maxAnswer {
		return readAll(req.Body)
	}
	defer req.Body.Close()
	data := make([]byte, req.ContentLength)
	if _, err := io.ReadFull(req.Body, data); err != nil {
		return nil, fmt.Errorf("what is to be sent is shorter than announced: %w", err)
	}
	return data, nil
}

// readAll reads a body to its end; nil stays nil.
func readAll(body io.ReadCloser) ([]byte, error) {
	if body == nil || body == http.NoBody {
		return nil, nil
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = fmt.Errorf("it has more than %d MiB, which no answer of this API has", maxAnswer>>20)
	}
	return data, err
}

// sleep waits, or returns early with the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
