package scaleway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bastide/internal/outcome"
)

// book serves placement groups page by page as the Instance API does: the total
// is in a header only, and the SDK ignores it for this listing.
type book struct {
	items  int
	header bool
	calls  atomic.Int32
	spoil  func(call int32, items []map[string]string, total *int) []map[string]string
}

func (b *book) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := b.calls.Add(1)
	n, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	var items []map[string]string
	for i := (n - 1) * size; i < min(n*size, b.items); i++ {
		items = append(items, map[string]string{"id": fmt.Sprint(i), "name": fmt.Sprint("group-", i)})
	}
	total := b.items
	if b.spoil != nil {
		items = b.spoil(call, items, &total)
	}
	w.Header().Set("Content-Type", "application/json")
	if b.header {
		w.Header().Set("X-Total-Count", fmt.Sprint(total))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"placement_groups": items})
}

func TestListingIsReadToItsEnd(t *testing.T) {
	for _, header := range []bool{true, false} {
		for _, items := range []int{0, 1, 99, 100, 101, 200, 457} {
			b := &book{items: items, header: header}
			c, _ := testCloud(t, b)
			got, err := c.listPlacementGroups(t.Context(), nil)
			if err != nil || len(got) != items {
				t.Fatalf("header %v: want %d, got %d and %v", header, items, len(got), err)
			}
			if header && int(b.calls.Load()) != max(1, (items+99)/100) {
				t.Errorf("%d items took %d calls", items, b.calls.Load())
			}
		}
	}
}

func TestListingThatDoesNotAddUp(t *testing.T) {
	lose := func(_ int32, items []map[string]string, _ *int) []map[string]string {
		return items[:max(0, len(items)-1)]
	}
	for name, test := range map[string]struct {
		items int
		spoil func(int32, []map[string]string, *int) []map[string]string
		want  string // of the error; empty for success
	}{
		"loses its last item once": {5, func(n int32, items []map[string]string, total *int) []map[string]string {
			if n <= 2 {
				return lose(n, items, total)
			}
			return items
		}, ""},
		"always loses its last item": {5, lose, "says that there are 5 and shows 4"},
		"loses everything":           {5, func(int32, []map[string]string, *int) []map[string]string { return nil }, "says that there are 5 and shows 0"},
		"second page repeats the first": {150, func(n int32, items []map[string]string, _ *int) []map[string]string {
			if len(items) == 50 {
				for i := range items {
					items[i]["id"] = "0"
				}
			}
			return items
		}, "names one thing twice"},
		"grows between two pages": {150, func(n int32, items []map[string]string, total *int) []map[string]string {
			if n == 2 {
				*total = 151
			}
			return items
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := testCloud(t, &book{items: test.items, header: true, spoil: test.spoil})
			got, err := c.listPlacementGroups(t.Context(), nil)
			if test.want == "" {
				if err != nil || len(got) != test.items {
					t.Fatalf("want %d, got %d and %v", test.items, len(got), err)
				}
				return
			}
			if outcome.CodeOf(err) != outcome.Unknown || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("want exit code 4 and %q, got %v", test.want, err)
			}
		})
	}
}

// Whatever keeps one listing from being read makes the whole inventory unknown.
func TestUnreadableIsNotAbsent(t *testing.T) {
	for name, r := range map[string]reply{
		"forbidden":    {status: 403, body: `{"type":"permissions_denied","message":"insufficient permissions","details":[{"resource":"lb","action":"read"}]}`},
		"failing":      {status: 500, body: `{"message":"internal error"}`},
		"hanging":      {status: 200, body: `{}`, hang: 1e12},
		"not JSON":     {status: 200, body: `{"lbs":`},
		"wrong shape":  {status: 200, body: `{"lbs":"none","total_count":0}`},
		"no list":      {status: 200, body: `{}`},
		"only a total": {status: 200, body: `{"total_count":0}`},
		"no key":       {status: 401, body: `{"type":"denied_authentication","method":"api_key","reason":"expired","message":"denied"}`},
		"not there":    {status: 404, body: `{"message":"lbs not Found"}`},
	} {
		t.Run(name, func(t *testing.T) {
			bad := &script{replies: []reply{r}}
			h := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if strings.HasPrefix(req.URL.Path, "/lb/") {
					bad.ServeHTTP(w, req)
					return
				}
				(&script{replies: []reply{{status: 200, body: `{"items":[],"total_count":0}`}}}).ServeHTTP(w, req)
			})
			c, _ := testCloud(t, h, func(o *Options) { o.Retry.Attempt, o.Retry.Budget = 50e6, 100e6 })
			_, err := c.Inventory(t.Context())
			if outcome.CodeOf(err) != outcome.Unknown || !strings.Contains(err.Error(), "load balancers could not be listed") {
				t.Fatalf("want exit code 4 naming the load balancers, got %v (%d)", err, outcome.CodeOf(err))
			}
		})
	}
}

// What goes wrong on the second page only is no better than on the first.
func TestSecondPage(t *testing.T) {
	second := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("page") == "2" {
				h(w, r)
				return
			}
			(&book{items: 150, header: true}).ServeHTTP(w, r)
		}
	}
	answer := func(r reply) http.HandlerFunc { return (&script{replies: []reply{r}}).ServeHTTP }
	spoilt := func(total int, change func([]map[string]string) []map[string]string) http.HandlerFunc {
		return (&book{items: 150, header: true, spoil: func(_ int32, items []map[string]string, n *int) []map[string]string {
			*n += total
			return change(items)
		}}).ServeHTTP
	}
	same := func(items []map[string]string) []map[string]string { return items }
	for name, test := range map[string]struct {
		second http.HandlerFunc
		want   string
	}{
		"forbidden":         {answer(reply{status: 403, body: `{"type":"permissions_denied","message":"m","details":[{"resource":"instance","action":"read"}]}`}), "lacks the permission read on instance"},
		"failing":           {answer(reply{status: 500, body: `{"message":"internal error"}`}), "Scaleway answered 500: internal error"},
		"limited":           {answer(reply{status: 429, plain: true}), "429"},
		"cut off":           {answer(reply{drop: true}), "EOF"},
		"half":              {answer(reply{status: 200, body: `{"placement_groups":[{"id":"a"}]}`, cut: true}), "EOF"},
		"hanging":           {answer(reply{status: 200, hang: time.Minute}), "none within"},
		"missing":           {answer(reply{status: 404, body: `{"message":"no such page"}`}), "404"},
		"no list":           {answer(reply{status: 200, body: `{}`}), "holds no list"},
		"null":              {answer(reply{status: 200, body: `{"placement_groups":null}`}), "says that there are"},
		"empty":             {answer(reply{status: 200, body: `{"placement_groups":[]}`}), "says that there are 150 and shows 100"},
		"one less":          {spoilt(0, func(items []map[string]string) []map[string]string { return items[1:] }), "says that there are 150 and shows 149"},
		"one without an ID": {spoilt(0, func(items []map[string]string) []map[string]string { items[0]["id"] = ""; return items }), "without an ID"},
		"one of the first":  {spoilt(0, func(items []map[string]string) []map[string]string { items[0]["id"] = "0"; return items }), "names one thing twice"},
		"another total":     {spoilt(40, same), "says that there are 190 and shows 150"},
		"a huge total":      {spoilt(1<<40, same), "says that there are 1099511627926"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := testCloud(t, second(test.second), func(o *Options) { o.Retry.Attempt, o.Retry.Budget = 100*time.Millisecond, 100*time.Millisecond })
			_, err := c.listPlacementGroups(t.Context(), nil)
			if outcome.CodeOf(err) != outcome.Unknown || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "placement groups could not be listed") {
				t.Fatalf("want exit code 4 and %q, got %v", test.want, err)
			}
		})
	}
}
