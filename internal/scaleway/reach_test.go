package scaleway

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"bastide/internal/outcome"

	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// closedPort is an address at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// An endpoint at which nothing ever answered is a mistake: one attempt a call,
// and a sentence with the setting's name. Nothing may take it for "absent".
func TestNobodyAtTheEndpoint(t *testing.T) {
	https := httptest.NewUnstartedServer(http.NotFoundHandler())
	https.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of what is meant to fail
	https.StartTLS()
	t.Cleanup(https.Close)
	noName := func(http.RoundTripper) http.RoundTripper {
		return roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "api.invalid", IsNotFound: true}}
		})
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for name, test := range map[string]struct {
		url, want string
		network   Decorator
	}{
		"refused":           {"http://" + closedPort(t), "connection refused", nil},
		"no such name":      {"http://api.invalid", "no such host", noName},
		"wrong certificate": {https.URL, "certificate", nil},
		"no TLS":            {strings.Replace(plain.URL, "http:", "https:", 1), "does not look like a TLS handshake", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, tries := testCloud(t, http.NotFoundHandler(), func(o *Options) {
				o.LookupEnv, o.Retry.Budget = environment(test.url), time.Hour
				if test.network != nil {
					o.Decorators = append(o.Decorators, test.network)
				}
			})
			_, err := c.Inventory(t.Context())
			if outcome.CodeOf(err) != outcome.Unknown || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "SCW_API_URL") {
				t.Fatalf("want exit code 4 with %q and the setting, got %v", test.want, err)
			}
			seen := map[string]int{}
			for _, call := range tries() {
				if seen[call.Path]++; seen[call.Path] > 1 {
					t.Errorf("%s was tried again", call.Path)
				}
			}
		})
	}
}

// flaky answers once, is gone for some connections, and is back.
type flaky struct {
	mu    sync.Mutex
	calls int
}

func (f *flaky) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.calls > 1 && f.calls < 5 {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("connect: network is unreachable")}
	}
	return http.DefaultTransport.RoundTrip(req)
}

// Once something has answered, the same failures are a disturbance; and what was
// never sent is sent again, a creation too.
func TestConnectionsFailForAWhile(t *testing.T) {
	f := &flaky{}
	server := &script{replies: []reply{{status: 200, body: oneVPC}}}
	c, _ := testCloud(t, server, func(o *Options) {
		o.Decorators = append(o.Decorators, func(http.RoundTripper) http.RoundTripper { return f })
	})
	for range 2 {
		if _, err := c.vpc.CreateVPC(&vpc.CreateVPCRequest{Region: "fr-par", ProjectID: testProject}, scw.WithContext(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	if f.calls != 5 || server.served != 2 {
		t.Fatalf("want two creations in five attempts, got %d in %d", server.served, f.calls)
	}
}

// A wait that the server asks for is kept; one beyond all patience ends the call.
func TestRetryAfter(t *testing.T) {
	ok := reply{status: 200, body: oneVPC}
	get := func(c *Cloud) error {
		_, err := c.vpc.GetVPC(&vpc.GetVPCRequest{Region: "fr-par", VpcID: "x"}, scw.WithContext(context.Background()))
		return err
	}
	t.Run("kept", func(t *testing.T) {
		c, tries := testCloud(t, &script{replies: []reply{{status: 429, plain: true, header: map[string]string{"Retry-After": "1"}}, ok}})
		begun := time.Now()
		if err := get(c); err != nil || len(tries()) != 2 || time.Since(begun) < time.Second {
			t.Fatalf("%d calls in %s, %v", len(tries()), time.Since(begun), err)
		}
	})
	for name, value := range map[string]string{"seconds": "3600", "date": time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)} {
		t.Run("too long in "+name, func(t *testing.T) {
			c, tries := testCloud(t, &script{replies: []reply{{status: 503, plain: true, header: map[string]string{"Retry-After": value}}, ok}})
			if err := get(c); statusOf(err) != 503 || len(tries()) != 1 {
				t.Fatalf("%d calls, %v", len(tries()), err)
			}
		})
	}
	for _, odd := range []string{"", "-5", "soon", "99999999999999999999"} {
		c, tries := testCloud(t, &script{replies: []reply{{status: 429, plain: true, header: map[string]string{"Retry-After": odd}}, ok}})
		if err := get(c); err != nil || len(tries()) != 2 {
			t.Errorf("%q: %d calls, %v", odd, len(tries()), err)
		}
	}
}

// What is repeated for long is told, once, with the reason and the end.
func TestTroubleIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		reply reply
		want  string
	}{
		"503":  {reply{status: 503, plain: true}, "the Scaleway API answers 503, trying again until "},
		"429":  {reply{status: 429, plain: true}, "limits the rate of calls (429), trying again until "},
		"cut":  {reply{drop: true}, "gives no usable answer to GET /vpc/"},
		"page": {reply{status: 200, body: "<html>", plain: true}, "no JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var said []string
			c, _ := testCloud(t, &script{replies: []reply{test.reply}}, func(o *Options) {
				o.Retry.Budget, o.Retry.Quiet = 60*time.Millisecond, 10*time.Millisecond
				o.Notice = func(s string) { mu.Lock(); defer mu.Unlock(); said = append(said, s) }
			})
			_, err := c.listVPCs(t.Context(), nil)
			if outcome.CodeOf(err) != outcome.Unknown || len(said) != 1 || !strings.Contains(said[0], test.want) {
				t.Fatalf("said %q, %v", said, err)
			}
			if strings.Contains(err.Error(), "?") || strings.Contains(err.Error(), "Get ") {
				t.Errorf("a raw address: %v", err)
			}
		})
	}
}

// A short disturbance is nobody's business.
func TestShortTroubleIsNotTold(t *testing.T) {
	c, _ := testCloud(t, &script{replies: []reply{{status: 503, plain: true}, {status: 200, body: oneVPC}}}, func(o *Options) {
		o.Retry.Quiet = time.Minute
		o.Notice = func(s string) { t.Errorf("said %q", s) }
	})
	if _, err := c.vpc.GetVPC(&vpc.GetVPCRequest{Region: "fr-par", VpcID: "x"}, scw.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// The secret key stays with the endpoint of the settings.
func TestNobodyIsSentElsewhere(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s came with the key %q", r.URL, r.Header.Get("X-Auth-Token"))
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 307, 308} {
		c, _ := testCloud(t, http.RedirectHandler(elsewhere.URL, status))
		_, err := c.Inventory(t.Context())
		if outcome.CodeOf(err) != outcome.Unknown {
			t.Errorf("%d: %v", status, err)
		}
		for _, w := range []string{fmt.Sprint("answered ", status), "sends the call elsewhere", "check the API's address in SCW_API_URL"} {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%d: %q lacks %q", status, err, w)
			}
		}
	}
}

// An answer that drips is over with the attempt.
func TestDrippingAnswer(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, b := range []byte(`{"vpcs":[` + strings.Repeat(" ", 1000)) {
			if _, err := w.Write([]byte{b}); err != nil || r.Context().Err() != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond) // it is the dripping that is tested
		}
	})
	c, _ := testCloud(t, h, func(o *Options) { o.Retry.Attempt, o.Retry.Budget = 60*time.Millisecond, 100*time.Millisecond })
	if _, err := c.listVPCs(t.Context(), nil); outcome.CodeOf(err) != outcome.Unknown || !strings.Contains(err.Error(), "none within 60ms") {
		t.Fatal(err)
	}
}

// The command's own limit is told from a hang of the server.
func TestOutOfTimeSaysWhatItWaitedFor(t *testing.T) {
	c, _ := testCloud(t, &script{replies: []reply{{status: 200, body: oneVPC, hang: time.Minute}}})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := c.listVPCs(ctx, nil)
	if outcome.CodeOf(err) != outcome.Unknown || !strings.Contains(err.Error(), "VPCs could not be listed: no usable answer to GET /vpc/v2/regions/fr-par/vpcs: the command's time was over") ||
		!strings.Contains(err.Error(), "--timeout") {
		t.Fatal(err)
	}
}

// Answers to a creation that cannot be used mean that it has to be looked for.
func TestUselessAnswersToACreation(t *testing.T) {
	for name, r := range map[string]reply{
		"empty":        {status: 200},
		"null":         {status: 200, body: "null"},
		"an object":    {status: 200, body: "{}"},
		"a list":       {status: 200, body: "[]"},
		"another type": {status: 200, body: `{"id":7}`},
		"a page":       {status: 200, body: "<html>", plain: true},
		"a huge ID":    {status: 200, body: `{"id":1e999}`},
		"no content":   {status: 204},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := testCloud(t, &script{replies: []reply{r}})
			looks, posts := 0, 0
			v, err := ensure(t.Context(), c, time.Minute,
				func(context.Context) (*vpc.VPC, bool, error) { looks++; return &vpc.VPC{ID: "x"}, looks > 3, nil },
				func(ctx context.Context) (*vpc.VPC, error) {
					posts++
					return c.vpc.CreateVPC(&vpc.CreateVPCRequest{Region: "fr-par", ProjectID: testProject}, scw.WithContext(ctx))
				})
			if err != nil || v.ID != "x" || posts != 1 {
				t.Fatalf("%+v, %v after %d posts", v, err, posts)
			}
		})
	}
}

// A server that fails for ever ends the run, in bounded time, with its words.
func TestFailingForEver(t *testing.T) {
	c, tries := testCloud(t, &script{replies: []reply{{status: 500, body: `{"message":"internal error"}`}}}, func(o *Options) { o.Retry.Budget = 20 * time.Millisecond })
	posts := 0
	_, err := ensure(t.Context(), c, time.Hour, func(context.Context) (*vpc.VPC, bool, error) { return nil, false, nil },
		func(ctx context.Context) (*vpc.VPC, error) {
			posts++
			return c.vpc.CreateVPC(&vpc.CreateVPCRequest{Region: "fr-par", ProjectID: testProject}, scw.WithContext(ctx))
		})
	if why, _ := c.explain(err); posts != attempts || len(tries()) != attempts || why != "Scaleway answered 500: internal error" {
		t.Fatalf("%d posts, %q", posts, why)
	}
}
