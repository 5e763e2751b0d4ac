package scaleway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/scaleway"
)

// recorded is what a whole inventory of a live estate answers, by call.
type recorded struct {
	mu      sync.Mutex
	answers map[string][]byte
	headers map[string]http.Header
}

func (r *recorded) listen(next http.RoundTripper) http.RoundTripper {
	return transport(func(req *http.Request) (*http.Response, error) {
		res, err := next.RoundTrip(req)
		if err != nil {
			return res, err
		}
		body, _ := io.ReadAll(res.Body)
		res.Body = io.NopCloser(bytes.NewReader(body))
		r.mu.Lock()
		defer r.mu.Unlock()
		r.answers[key(req)], r.headers[key(req)] = body, res.Header
		return res, nil
	})
}

// play answers from the record, with one answer replaced.
func (r *recorded) play(changed string, with []byte) scaleway.Decorator {
	return func(http.RoundTripper) http.RoundTripper {
		return transport(func(req *http.Request) (*http.Response, error) {
			k := key(req)
			body, ok := r.answers[k]
			if k == changed {
				body = with
			}
			if !ok {
				return &http.Response{StatusCode: 404, Status: "404 Not Found", Header: http.Header{}, Body: http.NoBody, Request: req}, nil
			}
			return &http.Response{StatusCode: 200, Status: "200 OK", Header: r.headers[k].Clone(), Body: io.NopCloser(bytes.NewReader(body)), Request: req}, nil
		})
	}
}

func key(req *http.Request) string { return req.URL.Path + "?" + req.URL.RawQuery }

func record(w *world) *recorded {
	w.Helper()
	r := &recorded{answers: map[string][]byte{}, headers: map[string]http.Header{}}
	if _, err := w.cloud(r.listen).Inventory(w.Context()); err != nil {
		w.Fatal(err)
	}
	return r
}

// mutants are copies of a JSON document with one value replaced each: of every
// key, and of the first element of every list.
func mutants(body []byte) [][]byte {
	var out [][]byte
	var walk func(doc any, put func(any))
	var root any
	_ = json.Unmarshal(body, &root)
	emit := func() { b, _ := json.Marshal(root); out = append(out, b) }
	walk = func(v any, put func(any)) {
		for _, other := range []any{nil, "", "x", -1, []any{}, []any{nil}, map[string]any{}, true} {
			put(other)
			emit()
		}
		put(v)
		switch v := v.(type) {
		case map[string]any:
			names := make([]string, 0, len(v))
			for k := range v {
				names = append(names, k)
			}
			sort.Strings(names)
			for _, k := range names {
				if k != "lb" { // a copy of the load balancer that nothing reads
					walk(v[k], func(x any) { v[k] = x })
				}
			}
		case []any:
			if len(v) > 0 {
				walk(v[0], func(x any) { v[0] = x })
			}
		}
	}
	walk(root, func(x any) { root = x })
	return out
}

// in is the same world for a part of a test.
func (w *world) in(t testing.TB) *world {
	part := *w
	part.TB = t
	return &part
}

// read makes all that can be made of an inventory; it may fail, not panic.
func (w *world) read(c *scaleway.Cloud) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	inv, err := c.Inventory(w.Context())
	if err != nil {
		return err
	}
	g, err := blueprint.Build(w.estate, inv.Booked(), []string{sshKey})
	if err != nil {
		return outcome.Refuse(err.Error(), "", "")
	}
	_ = inv.Live(g)
	inv.GatewayIP()
	_, err = c.Teardown(inv, nil)
	return err
}

// Whatever a single value of an answer turns into, reading the estate ends in a
// result or in an error with a place, never in a panic or a hang.
func TestStrangeAnswers(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	w := newWorld(t, privateEstate(1))
	w.mustUp()
	w.budget, w.backoff = 1, time.Microsecond
	r := record(w)
	for call, body := range r.answers {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w := w.in(t)
			for i, mutant := range mutants(body) {
				if testing.Short() && i%5 != 0 {
					continue
				}
				err := w.read(w.cloud(r.play(call, mutant)))
				code := outcome.CodeOf(err)
				if err != nil && (strings.HasPrefix(err.Error(), "panic") || code != outcome.Unknown && code != outcome.Refused) {
					t.Fatalf("answered\n%s\n%v", mutant, err)
				}
			}
		})
	}
}

// FuzzAnswers feeds arbitrary bytes to each listing in turn: reading ends in an
// inventory, in "unknown" or in a refusal, all of which write nothing.
func FuzzAnswers(f *testing.F) {
	w := newWorld(f, privateEstate(1))
	w.mustUp()
	w.budget, w.backoff = 1, time.Microsecond
	r := record(w)
	calls := make([]string, 0, len(r.answers))
	for c := range r.answers {
		calls = append(calls, c)
	}
	sort.Strings(calls)
	const owned = `"tags":["bastide:estate=staging","bastide:step=`
	for n, c := range calls {
		f.Add(n, r.answers[c])
		f.Add(n, r.answers[c][:len(r.answers[c])/2])
		for _, whole := range []string{"", "null", "{}", "[]", "0", `"x"`, "\x00", "<html>", `{"message":"x"}`, strings.Repeat("[", 20000), `{"total_count":-1}`, `{"total_count":4294967297}`} {
			f.Add(n, []byte(whole))
		}
		for _, list := range []string{"vpcs", "private_networks", "servers", "volumes", "ips", "gateways", "gateway_networks", "lbs", "security_groups", "placement_groups", "private_nics", "ssh_keys", "snapshots"} {
			if strings.Contains(string(r.answers[c]), `"`+list+`"`) {
				for _, item := range []string{"null", "{}", `{"id":"x"}`, `{"id":"x",` + owned + `"]}`, `{"id":"x",` + owned + `server/"]}`, `{"id":"x",` + owned + `gateway/staging-gateway"],"ipv4":null,"ip":[null]}`,
					`{"id":"x",` + owned + `server/staging-cp-1"],"volumes":{"0":null},"private_nics":[null],"security_group":null,"boot_type":1}`} {
					f.Add(n, []byte(`{"`+list+`":[`+item+`],"total_count":1}`))
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, n int, body []byte) {
		w := w.in(t)
		err := w.read(w.cloud(r.play(calls[uint(n)%uint(len(calls))], body)))
		if code := outcome.CodeOf(err); err != nil && (strings.HasPrefix(err.Error(), "panic") || code != outcome.Unknown && code != outcome.Refused) {
			t.Fatalf("code %d: %v", code, err)
		}
	})
}
