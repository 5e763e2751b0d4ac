package scaleway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Decorator wraps the transport. Decorators see every attempt of every call, on
// its way to the network.
type Decorator func(http.RoundTripper) http.RoundTripper

// Call is one attempt as a log may hold it: no header and no body, so no secret.
type Call struct {
	Method, Path, Query string
	Status              int // 0 when there was no answer
	Err                 error
	Took                time.Duration
}

// Record reports every attempt. The function is called from many goroutines.
func Record(report func(Call)) Decorator {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			begun := time.Now()
			res, err := next.RoundTrip(req)
			c := Call{Method: req.Method, Path: req.URL.Path, Query: req.URL.RawQuery, Err: err, Took: time.Since(begun)}
			if res != nil {
				c.Status = res.StatusCode
			}
			report(c)
			return res, err
		})
	}
}

// ErrReadOnly is how a call fails that would change something in a dry run.
var ErrReadOnly = errors.New("a dry run changes nothing")

// ReadOnly lets reads through and refuses everything else: a dry run that is
// dry whatever the code above it tries.
func ReadOnly() Decorator {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodGet && req.Method != http.MethodHead {
				return nil, fmt.Errorf("%s %s was not sent: %w", req.Method, req.URL.Path, ErrReadOnly)
			}
			return next.RoundTrip(req)
		})
	}
}

// Guard asks before every call that would change something, and fails it with
// what allowed says. It is for a condition that the right to change anything
// depends on, such as a lock that is held.
func Guard(allowed func(context.Context) error) Decorator {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodGet && req.Method != http.MethodHead {
				if err := allowed(req.Context()); err != nil {
					return nil, &guardedError{err}
				}
			}
			return next.RoundTrip(req)
		})
	}
}

// guardedError is a call that was not sent because it is not allowed any more.
type guardedError struct{ err error }

// held says that a decorator did not let a call go out.
func held(err error) bool {
	var guarded *guardedError
	return errors.Is(err, ErrReadOnly) || errors.As(err, &guarded)
}

func (e *guardedError) Error() string { return e.err.Error() }
func (e *guardedError) Unwrap() error { return e.err }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
