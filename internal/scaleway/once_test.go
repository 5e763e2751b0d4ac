package scaleway_test

import (
	"slices"
	"strings"
	"testing"

	"bastide/internal/outcome"
	"bastide/internal/sim/fault"

	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// faults that every mutating call meets once. All but the last kind change
// nothing or hide the answer; none may keep a run from its end.
var once = map[string]fault.HTTPRule{
	"429 without a body": {Status: 429, Body: "", Headers: map[string]string{"Content-Type": "", "X-Envoy-Ratelimited": "true"}},
	"500":                {Status: 500, Body: map[string]any{"message": "internal error"}},
	"503":                {Status: 503, Body: map[string]any{"message": "internal error"}},
	"cut before":         {Drop: true},
	"cut after":          {ApplyThenDrop: true},
	"hang":               {Hang: true},
	"half an answer":     {Truncate: 20},
	"429, come later":    {Status: 429, Headers: map[string]string{"Retry-After": "0"}},
	"502 of a proxy":     {Status: 502, Body: "<html>bad gateway</html>", Headers: map[string]string{"Content-Type": "text/html"}},
	"504":                {Status: 504, Body: "upstream request timeout", Headers: map[string]string{"Content-Type": "text/plain"}},
	"page with 200":      {Status: 200, Body: "<html>welcome</html>", Headers: map[string]string{"Content-Type": "text/html"}},
	"busy":               {Status: 409, Body: map[string]any{"type": "transient_state", "message": "m", "resource": "x", "resource_id": "y", "current_state": "updating"}},
	"503 three times":    {Status: 503, Body: map[string]any{"message": "internal error"}, When: fault.When{Count: 3}},
}

// afflict sets a fault on every mutating call: once, unless it says how often.
func (w *world) afflict(rule fault.HTTPRule) {
	w.Helper()
	rule.Method, rule.Path, rule.Per = "mutating", "/**", "request"
	if rule.Hang {
		w.attempt = 300e6 // it must end; nothing here takes that long
	}
	if rule.Count == 0 {
		rule.Count = 1
	}
	if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{rule}}); err != nil {
		w.Fatal(err)
	}
}

func TestEveryMutatingCallFailsOnce(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	for of, s := range scenes {
		whole := s.ready(t)
		whole.mustUp()
		want := whole.census()
		for name, rule := range once {
			t.Run(of+", "+name, func(t *testing.T) {
				t.Parallel()
				empty := s.fresh(t).census()
				w := s.ready(t)
				w.afflict(rule)
				w.mustUp()
				w.wantConverged()
				if got := w.census(); got != want {
					t.Fatalf("got\n%s\nwant\n%s", got, want)
				}
				if err := w.raze(t.Context(), w.cloud()); err != nil {
					t.Fatal(err)
				}
				w.wantNothingLeft()
				if got := w.census(); minusDefaults(got) != minusDefaults(empty) {
					t.Fatalf("left:\n%s", got)
				}
			})
		}
	}
}

// Every listing that lies or fails for good stops a run before it writes.
func TestUnreadableListingsStopEverything(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	const edge = "/lb/v1/zones/" + zone + "/ips"
	for name, of := range map[string]struct{ unused, empty []string }{
		"private estate": {[]string{"/registry/", "/secret-manager/", "/domain/", "/rdb/"}, []string{edge}},
		"services":       {[]string{"/rdb/"}, []string{"/staging-app"}}, // a bucket answers about itself without a listing
		"database":       {[]string{"/registry/", "/domain/"}, []string{edge}},
		"image":          {[]string{"/registry/", "/secret-manager/", "/domain/", "/rdb/"}, []string{edge}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := scenes[name].fresh(t)
			w.mustUp()
			w.listingsThatFail(t, of.unused, of.empty)
		})
	}
}

func (w *world) listingsThatFail(t *testing.T, unused, empty []string) {
	for _, z := range []scw.Zone{"fr-par-2", "fr-par-3"} { // or there would be nothing to cut short
		must(lb.NewZonedAPI(w.somebody()).CreateLB(&lb.ZonedAPICreateLBRequest{Zone: z, Name: "elsewhere", Type: "LB-S"}))(t)
	}
	calm := *w
	w.budget, w.attempt, w.backoff = 15e6, 1e9, 2e6
	mark := len(w.region.Requests(0))
	cloud := w.cloud() // one for all: each keeps connections open
	var listings []string
	ofUp := map[string]bool{} // up reads less of the project than destroy
	if _, err := cloud.Inventory(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.region.Requests(mark) {
		ofUp[r.Path] = true
	}
	mark = len(w.region.Requests(0))
	w.whole(t.Context())
	for _, r := range w.region.Requests(mark) {
		if !slices.Contains(listings, r.Path) {
			listings = append(listings, r.Path)
		}
	}
	for name, rule := range map[string]fault.HTTPRule{
		"cut short": {ShortPage: 1},
		"forbidden": {Status: 403, Body: map[string]any{"type": "permissions_denied", "message": "insufficient permissions",
			"details": []map[string]any{{"action": "read", "resource": "x"}}}},
		"denied":         {Status: 403}, // in object storage's own words
		"failing":        {Status: 500, Body: map[string]any{"message": "internal error"}},
		"limited":        {Status: 429},
		"truncated":      {Truncate: 10},
		"cut off":        {Drop: true},
		"hanging":        {Hang: true},
		"a page":         {Status: 200, Body: "<html>welcome</html>", Headers: map[string]string{"Content-Type": "text/html"}},
		"a missing page": {Status: 404, Body: "<html>not here</html>", Headers: map[string]string{"Content-Type": "text/html"}},
		"sent elsewhere": {Status: 302, Body: "", Headers: map[string]string{"Location": "/"}},
		"nothing":        {Status: 200, Body: ""},
		"no content":     {Status: 204, Body: ""},
		"null":           {Status: 200, Body: "null", Headers: map[string]string{"Content-Type": "application/json"}},
		"a list":         {Status: 200, Body: "[]", Headers: map[string]string{"Content-Type": "application/json"}},
		"an object":      {Status: 200, Body: map[string]any{}},
	} {
		for _, path := range listings {
			if name == "forbidden" && strings.Contains(path, "ssh-keys") {
				continue // allowed: see TestNoPermissionForKeys
			}
			if name == "forbidden" && slices.ContainsFunc(unused, func(p string) bool { return strings.HasPrefix(path, p) }) {
				continue // allowed while the file does not use it: see TestProductsThatTheFileDoesNotUse
			}
			if name == "cut short" && slices.ContainsFunc(slices.Concat(unused, empty), func(p string) bool { return strings.HasPrefix(path, p) }) {
				continue // there is nothing in it that could be cut
			}
			ofBuckets := path == "/" || strings.HasPrefix(path, "/staging-app")
			if name == "denied" && !ofBuckets || (name == "denied" || name == "cut short") && path == "/" && len(w.estate.Services.Buckets) == 0 {
				continue // nothing is in the listing of buckets, or the file asks for none
			}
			rule.Method, rule.Path = "GET", path
			if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{rule}}); err != nil {
				t.Fatal(err)
			}
			mark := len(w.region.Requests(0))
			if err := w.up(t.Context(), cloud); ofUp[path] && outcome.CodeOf(err) != outcome.Unknown {
				t.Errorf("up, %s %s: want exit code 4, got %v", path, name, err)
			}
			if err := w.raze(t.Context(), cloud); outcome.CodeOf(err) != outcome.Unknown {
				t.Errorf("destroy, %s %s: want exit code 4, got %v", path, name, err)
			}
			if n, which := w.writes(mark); n > 0 {
				t.Fatalf("%s %s: %d writes: %v", path, name, n, which)
			}
		}
	}
	w.region.Faults().Clear()
	w.budget, w.attempt, w.backoff = calm.budget, calm.attempt, calm.backoff
	w.wantConverged()
}

// Readings that lag two seconds behind delay a run and spoil nothing.
func TestStaleReads(t *testing.T) {
	t.Parallel()
	w := newWorldAt(t, privateEstate(1), 100)
	empty := w.census()
	if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{{Method: "GET", Path: "/**", Stale: fault.Duration(2e9)}}}); err != nil {
		t.Fatal(err)
	}
	w.mustUp()
	w.settled()
	w.wantConverged()
	if err := w.raze(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	w.settled()
	w.wantNothingLeft()
	if got := w.census(); minusDefaults(got) != minusDefaults(empty) {
		t.Fatalf("left:\n%s", got)
	}
}
