package scaleway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"sync/atomic"
	"testing"

	"bastide/internal/outcome"
	"bastide/internal/scaleway"
	"bastide/internal/sim/fault"

	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
)

// A kill is played in process: from the nth mutating call on, nothing reaches
// the region any more; with after set, that call still takes effect, but its
// answer is never seen. What was under way when it died lands before the run ends,
// so that the next one meets it: the kill at a call that lands late is another test.
func killAt(n int64, after bool, cancel context.CancelFunc) (scaleway.Decorator, *atomic.Bool) {
	var count atomic.Int64
	dead := &atomic.Bool{}
	return func(next http.RoundTripper) http.RoundTripper {
		return transport(func(req *http.Request) (*http.Response, error) {
			mine := fault.Mutates(req.Method) && count.Add(1) == n
			if dead.Load() || mine && !after {
				dead.Store(true)
				cancel()
				return nil, errors.New("killed")
			}
			res, err := next.RoundTrip(req.WithContext(context.WithoutCancel(req.Context())))
			if mine {
				dead.Store(true)
				cancel()
			}
			if dead.Load() {
				if err == nil {
					_ = res.Body.Close()
				}
				return nil, errors.New("killed")
			}
			return res, err
		})
	}, dead
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// census counts what is in the region, kind by kind, marked or not.
func (w *world) census() string {
	n := map[string]int{}
	for product, kinds := range w.region.State()["products"].(map[string]map[string][]map[string]any) {
		for kind, all := range kinds {
			for _, v := range all {
				if v["deletion_requested_at"] == nil { // a secret goes seven days later
					n[product+" "+kind]++
				}
				if kind == "dns_zone" {
					n["domain records"] += w.records(fmt.Sprint(v["domain"]))
				}
			}
		}
	}
	var lines []string
	for k, v := range n {
		lines = append(lines, fmt.Sprintf("%s %d", k, v))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// wantBastionShut checks that no gateway is open to more than the file allows.
func (w *world) wantBastionShut() {
	w.Helper()
	gateways, err := vpcgw.NewAPI(w.somebody()).ListGateways(&vpcgw.ListGatewaysRequest{})
	if err != nil {
		w.Fatal(err)
	}
	for _, g := range gateways.Gateways {
		if g.BastionEnabled && len(g.BastionAllowedIPs) != len(w.estate.Admin.CIDRs) {
			w.Errorf("the bastion is open to %v", g.BastionAllowedIPs)
		}
	}
}

// notWithRace leaves out what takes minutes under the race detector, which runs
// with -short. Without it all of the tests run.
func notWithRace(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs without -short: see unit in the Makefile")
	}
}

// Killed at each mutating call in turn, before or after it takes effect, a run
// that is repeated ends in the same estate: nothing doubled, nothing orphaned.
func TestKilledAtEveryCallOfUp(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	for name, s := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.killUps(t)
		})
	}
}

func (s scene) killUps(t *testing.T) {
	whole := s.ready(t)
	whole.mustUp()
	want := whole.census()
	for _, after := range []bool{false, true} {
		kills := 0
		for n := int64(1); ; n++ {
			w := s.ready(t)
			ctx, cancel := context.WithCancel(t.Context())
			kill, dead := killAt(n, after, cancel)
			err := w.up(ctx, w.cloud(kill))
			cancel()
			if !dead.Load() {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			kills++
			w.served.drain() // what was on its way when the run died still lands
			w.wantBastionShut()
			w.mustUp()
			w.wantConverged()
			if got := w.census(); got != want {
				t.Fatalf("killed at %d (after: %v) and repeated:\n%s\nwant\n%s", n, after, got, want)
			}
			if t.Failed() {
				t.Fatalf("killed at %d (after: %v)", n, after)
			}
			w.region.Close()
		}
		t.Logf("up: %d kills survived (after the call: %v)", kills, after)
	}
}

func TestKilledAtEveryCallOfDestroy(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	for name, s := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.killDestroys(t)
		})
	}
}

func (s scene) killDestroys(t *testing.T) {
	for _, after := range []bool{false, true} {
		kills := 0
		for n := int64(1); ; n++ {
			w := s.fresh(t)
			empty := w.census()
			w.mustUp()
			ctx, cancel := context.WithCancel(t.Context())
			kill, dead := killAt(n, after, cancel)
			err := w.raze(ctx, w.cloud(kill))
			cancel()
			if !dead.Load() {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			kills++
			w.served.drain()
			if err := w.raze(t.Context(), w.cloud()); err != nil {
				t.Fatalf("killed at %d (after: %v) and repeated: %v", n, after, err)
			}
			w.wantNothingLeft()
			if got := w.census(); minusDefaults(got) != minusDefaults(empty) {
				t.Fatalf("killed at %d (after: %v), left:\n%s", n, after, got)
			}
			w.region.Close()
		}
		t.Logf("destroy: %d kills survived (after the call: %v)", kills, after)
	}
}

// A teardown that was killed and thought better of: up builds the estate again
// from whatever is left, things on their way out included.
func TestUpAfterKilledDestroy(t *testing.T) {
	t.Parallel()
	whole := newWorld(t, privateEstate(1))
	whole.mustUp()
	want := whole.census()
	for n := int64(1); n < 30; n += 3 {
		w := newWorld(t, privateEstate(1))
		w.mustUp()
		ctx, cancel := context.WithCancel(t.Context())
		kill, _ := killAt(n, true, cancel)
		if err := w.raze(ctx, w.cloud(kill)); err == nil {
			break
		}
		cancel()
		w.served.drain()
		// A deletion that was still under way may take something from under the
		// first run; it then says so, and the next one continues.
		if err := w.up(t.Context(), w.cloud()); err != nil {
			wantError(t, err, outcome.Failed, "run the command again")
			w.settled()
			w.mustUp()
		}
		w.wantConverged()
		if got := w.census(); got != want || t.Failed() {
			t.Fatalf("killed at %d:\n%s\nwant\n%s", n, got, want)
		}
		w.region.Close()
	}
}

// minusDefaults leaves out what a region makes by itself on first use.
func minusDefaults(census string) string {
	var kept []string
	for _, line := range strings.Split(census, "\n") {
		if !strings.HasPrefix(line, "vpc vpc 1") && !strings.HasPrefix(line, "instance security") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
