package fetch

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

// reminder is the least time between two notices of trouble.
const reminder = 15 * time.Second

// trouble tells why nothing seems to happen: that what failed is tried again.
func (d *download) trouble(err error, until time.Time) {
	if d.o.Notice == nil || !d.told.IsZero() && time.Since(d.told) < reminder {
		return
	}
	d.told = time.Now()
	d.o.Notice(fmt.Sprintf("%v; trying again until %s", err, until.Format(time.TimeOnly)))
}

// hopeless recognises failures to connect that waiting seldom mends: nobody is at
// the address, or nobody has the name.
func hopeless(err error) bool {
	var name *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &name) && name.IsNotFound
}

// final says that another attempt would end in the same way.
func final(err error) bool {
	var (
		changed *Changed
		cert    *tls.CertificateVerificationError
		noTLS   tls.RecordHeaderError
	)
	return errors.As(err, &changed) || errors.As(err, &cert) || errors.As(err, &noTLS) ||
		errors.Is(err, ErrRedirect) || errors.Is(err, http.ErrSchemeMismatch)
}

// ErrRedirect is a redirect that is not followed.
var ErrRedirect = errors.New("it redirects to where nothing can be read")

// careful is the client as a download needs it: without a limit for the whole, and
// with redirects that do not give up encryption and lead to a server.
func careful(client *http.Client) *http.Client {
	if client == nil {
		client = http.DefaultClient
	}
	c := *client
	c.Timeout = 0
	c.Transport = legible{c.Transport}
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		switch to := r.URL; {
		case len(via) >= 10:
			return fmt.Errorf("%w: redirected too often", ErrRedirect)
		case to.Scheme != "http" && to.Scheme != "https":
			return fmt.Errorf("%w: an address with %s, not http or https", ErrRedirect, to.Scheme)
		case to.Host == "":
			return fmt.Errorf("%w: an address without a host", ErrRedirect)
		case via[0].URL.Scheme == "https" && to.Scheme != "https":
			return fmt.Errorf("%w: from https to %s", ErrRedirect, to.Scheme)
		}
		return nil
	}
	return &c
}

// legible refuses a redirect to what is no URL. The client would do so as well, with
// an error that cannot be told from those of a connection.
type legible struct{ under http.RoundTripper }

func (l legible) RoundTrip(r *http.Request) (*http.Response, error) {
	under := l.under
	if under == nil {
		under = http.DefaultTransport
	}
	answer, err := under.RoundTrip(r)
	if err != nil || answer.StatusCode/100 != 3 {
		return answer, err
	}
	if _, bad := url.Parse(answer.Header.Get("Location")); bad != nil {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%w: an address that is none", ErrRedirect)
	}
	return answer, nil
}
