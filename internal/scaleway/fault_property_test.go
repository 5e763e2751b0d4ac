package scaleway_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bastide/internal/outcome"
	"bastide/internal/sim/fault"

	"pgregory.net/rapid"
)

// afflictions are what may happen to a call. permanent ones end a run; all
// others it may survive or not, but may never lead it astray.
var afflictions = map[string]fault.HTTPRule{
	"429":               {Status: 429},
	"429, come later":   {Status: 429, Headers: map[string]string{"Retry-After": "0"}},
	"500":               {Status: 500, Body: map[string]any{"message": "internal error"}},
	"502 of a proxy":    {Status: 502, Body: "<html>bad gateway</html>", Headers: map[string]string{"Content-Type": "text/html"}},
	"503":               {Status: 503, Body: map[string]any{"message": "internal error"}},
	"504":               {Status: 504, Body: "upstream request timeout", Headers: map[string]string{"Content-Type": "text/plain"}},
	"page with 200":     {Status: 200, Body: "<html>welcome</html>", Headers: map[string]string{"Content-Type": "text/html"}},
	"empty 200":         {Status: 200, Body: "", Headers: map[string]string{"Content-Type": "application/json"}},
	"empty object":      {Status: 200, Body: map[string]any{}},
	"null":              {Status: 200, Body: "null", Headers: map[string]string{"Content-Type": "application/json"}},
	"404 of a proxy":    {Status: 404, Body: "<html>not here</html>", Headers: map[string]string{"Content-Type": "text/html"}},
	"403":               {Status: 403, Body: map[string]any{"type": "permissions_denied", "message": "m", "details": []map[string]any{{"action": "write", "resource": "x"}}}},
	"409 busy":          {Status: 409, Body: map[string]any{"type": "transient_state", "message": "m", "resource": "x", "resource_id": "y", "current_state": "updating"}},
	"cut before":        {Drop: true},
	"cut after":         {ApplyThenDrop: true},
	"hang":              {Hang: true},
	"half an answer":    {Truncate: 20},
	"late":              {Delay: fault.Duration(time.Second)},
	"stale":             {Stale: fault.Duration(2 * time.Second)},
	"short page":        {ShortPage: 1},
	"stale and cut off": {Stale: fault.Duration(2 * time.Second), Truncate: 20},
}

var products = []string{"/**", "/vpc/**", "/vpc-gw/**", "/ipam/**", "/iam/**", "/instance/**", "/instance/**/servers", "/instance/**/private_nics", "/instance/**/action",
	"/block/**", "/registry/**", "/secret-manager/**", "/secret-manager/**/versions", "/domain/**", "/rdb/**", "/rdb/**/users", "/rdb/**/instances", "/lb/**", "/lb/**/private-networks", "/lb/**/backends"}

// scripts draws fault scripts of up to four rules. Rules end: a region that
// fails for ever is another test.
func scripts(t *rapid.T) fault.Script {
	var s fault.Script
	for i := range rapid.IntRange(1, 4).Draw(t, "rules") {
		name := rapid.SampledFrom(sortedKeys(afflictions)).Draw(t, fmt.Sprint("fault ", i))
		r := afflictions[name]
		r.Name = name
		r.Path = rapid.SampledFrom(products).Draw(t, fmt.Sprint("path ", i))
		r.Method = rapid.SampledFrom([]string{"POST", "mutating", "GET", "PATCH|PUT|DELETE", "*"}).Draw(t, fmt.Sprint("method ", i))
		r.Per = rapid.SampledFrom([]string{"", "path", "request"}).Draw(t, fmt.Sprint("per ", i))
		r.From = rapid.IntRange(1, 4).Draw(t, fmt.Sprint("from ", i))
		r.Count = rapid.IntRange(1, 3).Draw(t, fmt.Sprint("count ", i))
		if r.Stale > 0 { // an eventually consistent region is so throughout
			r.Method, r.Per, r.From, r.Count = "GET", "", 0, 0
		}
		s.HTTP = append(s.HTTP, r)
	}
	return s
}

var setChecks sync.Once

// fewChecks has a property tried a fifth of rapid's usual times, which takes some
// seconds; -rapid.checks asks for more. A failure prints its seed and what was drawn.
func fewChecks(t *testing.T) {
	t.Helper()
	setChecks.Do(func() {
		if n := flag.Lookup("rapid.checks"); n.Value.String() == n.DefValue {
			if err := n.Value.Set("20"); err != nil {
				t.Error(err)
			}
		}
	})
}

// Whatever goes wrong, in whatever combination: a run ends well or with 1 or 4,
// and once nothing goes wrong any more a repeated run ends in the same estate,
// nothing doubled. The same for taking it down.
func TestAnyFaultsConverge(t *testing.T) {
	t.Parallel()
	whole := scene{nil, allServices}.fresh(t)
	whole.mustUp()
	want := whole.census()
	fewChecks(t)
	ends := map[string]*[5]atomic.Int32{"up": {}, "destroy": {}}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorldAt(t, allServices(), 200)
		w.seed(exampleDomain)
		defer w.region.Close()
		calm := *w
		empty := w.census()
		afflicted := func(what string, do func() error) {
			if err := w.region.LoadFaults(scripts(rt)); err != nil {
				rt.Fatal(err)
			}
			w.attempt, w.budget = 150*time.Millisecond, 300*time.Millisecond
			err := do()
			w.attempt, w.budget = calm.attempt, calm.budget // a busy test machine is no fault
			code := outcome.CodeOf(err)
			if code != outcome.Done && code != outcome.Failed && code != outcome.Unknown {
				rt.Fatalf("%s ended with %d: %v", what, code, err)
			}
			ends[what][code].Add(1)
			w.region.Faults().Clear()
			w.served.drain()
			w.settled()
		}
		afflicted("up", func() error { return w.up(t.Context(), w.cloud()) })
		if err := w.up(t.Context(), w.cloud()); err != nil {
			rt.Fatalf("up again, without faults: %v", err)
		}
		if got := w.census(); got != want {
			rt.Fatalf("got\n%s\nwant\n%s", got, want)
		}
		if w.wantConverged(); t.Failed() {
			rt.FailNow()
		}
		afflicted("destroy", func() error { return w.raze(t.Context(), w.cloud()) })
		if err := w.raze(t.Context(), w.cloud()); err != nil {
			rt.Fatalf("destroy again, without faults: %v", err)
		}
		if got := w.census(); minusDefaults(got) != minusDefaults(empty) {
			rt.Fatalf("left:\n%s", got)
		}
	})
	for what, n := range ends {
		t.Logf("%s under faults: %d ended well, %d failed, %d could not tell", what, n[0].Load(), n[1].Load(), n[4].Load())
	}
}

// late plays a server that carries out a creation after the client has given it
// up: every POST is answered by nothing and takes effect some time later.
func late(path string, by time.Duration, once *atomic.Bool) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return transport(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, path) || !once.CompareAndSwap(false, true) {
				return next.RoundTrip(req)
			}
			body, _ := io.ReadAll(req.Body)
			later := req.Clone(context.WithoutCancel(req.Context()))
			later.Body = io.NopCloser(strings.NewReader(string(body)))
			go func() {
				time.Sleep(by)
				if res, err := next.RoundTrip(later); err == nil {
					_ = res.Body.Close()
				}
			}()
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
	}
}

// A creation that was given up and is carried out after that, while readings
// lag as well, is found and not repeated. (Products without any uniqueness: a
// second one would stay.)
func TestLateCreationIsNotDoubled(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	whole := scene{nil, allServices}.fresh(t)
	whole.mustUp()
	want := whole.census()
	for _, path := range []string{"/vpcs", "/private-networks", "/ips", "/gateways", "/gateway-networks", "/security_groups", "/placement_groups", "/volumes", "/servers",
		"/private_nics", "/lbs", "/attach-private-network", "/backends", "/frontends", "/ssh-keys", "/namespaces", "/secrets", "/rdb/v1/regions/fr-par/instances", "/users", "/databases", "/versions"} {
		t.Run(strings.Trim(path, "/"), func(t *testing.T) {
			t.Parallel()
			w := newWorldAt(t, allServices(), 100)
			w.seed(exampleDomain)
			w.attempt = time.Second
			if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{{Method: "GET", Path: "/**", Stale: fault.Duration(2e9)}}}); err != nil {
				t.Fatal(err)
			}
			var once atomic.Bool
			if err := w.up(t.Context(), w.cloud(late(path, 1500*time.Millisecond, &once))); err != nil {
				t.Fatal(err)
			}
			if !once.Load() {
				t.Fatalf("no POST %s was made", path)
			}
			w.region.Faults().Clear()
			w.settled()
			w.wantConverged()
			if got := w.census(); got != want {
				t.Fatalf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
