package scaleway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// lostError is an attempt without a usable answer. Whether the server acted on
// it is not known.
type lostError struct {
	method, path string
	err          error
	late         bool // it was given up while the server may still be at work on it
}

func (e *lostError) Error() string {
	return fmt.Sprintf("no usable answer to %s %s: %s", e.method, e.path, e.err)
}
func (e *lostError) Unwrap() error { return e.err }

// unreachableError is an endpoint at which nothing ever answered and, as things
// are, nothing will: a mistake of the settings or no network. Nothing was sent.
type unreachableError struct {
	endpoint string // such as https://api.scaleway.com
	err      error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("%s cannot be reached: %s", e.endpoint, e.err)
}
func (e *unreachableError) Unwrap() error { return e.err }

// errOutOfTime is a call that ran into the command's own deadline.
var errOutOfTime = fmt.Errorf("the command's time was over (%w)", context.DeadlineExceeded)

func (t *retrying) lost(req *http.Request, err error) error {
	ended := req.Context().Err()
	switch {
	case errors.Is(ended, context.DeadlineExceeded):
		return &lostError{req.Method, req.URL.Path, errOutOfTime, true}
	case ended != nil:
		return ended
	case held(err):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &lostError{req.Method, req.URL.Path, fmt.Errorf("none within %s", t.retry.Attempt), true}
	case hopeless(err) && !t.reached.Load():
		return &unreachableError{req.URL.Scheme + "://" + req.URL.Host, err}
	}
	return &lostError{req.Method, req.URL.Path, err, false}
}

// hopeless recognises failures to connect that waiting does not mend, unless
// the endpoint has answered before.
func hopeless(err error) bool {
	var (
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		noTLS     tls.RecordHeaderError
	)
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &name) && name.IsNotFound ||
		errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) ||
		errors.As(err, &noTLS) || errors.Is(err, http.ErrSchemeMismatch)
}

// unsent says that no connection was made, so that a call cannot have had an
// effect.
func unsent(err error) bool {
	var op *net.OpError
	return err != nil && (hopeless(err) || errors.As(err, &op) && op.Op == "dial")
}

// reminder is the least time between two notices of trouble: many calls meet it
// at the same time.
const reminder = 15 * time.Second

// trouble tells the user why nothing seems to happen.
type trouble struct {
	notice func(string)
	mu     sync.Mutex
	last   time.Time
}

func (t *trouble) tell(who string, res *http.Response, err error, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.notice == nil || !t.last.IsZero() && time.Since(t.last) < reminder {
		return
	}
	t.last = time.Now()
	what := "gives no usable answer"
	var lost *lostError
	switch {
	case res != nil && res.StatusCode == http.StatusTooManyRequests:
		what = "limits the rate of calls (429)"
	case res != nil:
		what = fmt.Sprintf("answers %d", res.StatusCode)
	case errors.As(err, &lost):
		what += fmt.Sprintf(" to %s %s (%s)", lost.method, lost.path, lost.err)
	}
	t.notice(fmt.Sprintf("%s %s, trying again until %s", who, what, until.Format(time.TimeOnly)))
}
