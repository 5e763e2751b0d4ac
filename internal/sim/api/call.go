package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// call is one request on its way through a handler, under the region's lock.
type call struct {
	*world
	req    *http.Request
	asked  url.Values // see fields
	body   []byte
	header http.Header // of the answer
	fault  string      // what the fault script did to its rights, for the log
	// granted is what its key may do.
	granted Credential
	// awaits is what the answer waits for: the hardware's work for this key.
	awaits string
	// lasts and finish make the call take its time; see takes.
	lasts  time.Duration
	finish handler
}

// takes lets a call take a time of the region's, during which others are
// served; what it is answered with, and its change, come at the end.
func (c *call) takes(d time.Duration, finish handler) { c.lasts, c.finish = d, finish }

// handler answers a call with a JSON value, raw text, or nothing (nil), or with
// a refusal.
type handler func(*call) (any, error)

// raw is an answer that is not JSON.
type raw struct {
	contentType string
	body        []byte
}

// route serves "METHOD /path/{name}" with a status for success.
func (r *Region) route(pattern string, status int, h handler) {
	r.operations = append(r.operations, pattern)
	r.mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) { r.serve(w, req, status, h) })
}

func (c *call) path(name string) string  { return c.req.PathValue(name) }
func (c *call) zone() string             { return c.req.PathValue("zone") }
func (c *call) regionName() string       { return c.req.PathValue("region") }
func (c *call) query(name string) string { return c.fields().Get(name) }

// fields are the query, taken apart once: filters ask for it with every item.
func (c *call) fields() url.Values {
	if c.asked == nil {
		c.asked = c.req.URL.Query()
	}
	return c.asked
}

// decode reads the JSON body. Unknown fields are ignored, as the real API does;
// a field of the wrong type is refused by name.
func (c *call) decode(into any) error {
	if len(bytes.TrimSpace(c.body)) == 0 {
		return nil
	}
	err := json.Unmarshal(c.body, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return invalid(wrong.Field, "format", "expected "+wrong.Type.String())
	}
	return untyped(http.StatusBadRequest, "invalid json: %s", err)
}

// paged is a listing's answer in the envelope of most products: one page, named
// after the resource, and how many there are in all; the oldest come first.
func paged[T resource](c *call, name string, items []T, view func(T) doc) (any, error) {
	return pagedFrom(c, name, items, view, "created_at_asc")
}

// pagedFrom is the same with another order where none is asked for.
func pagedFrom[T resource](c *call, name string, items []T, view func(T) doc, order string) (any, error) {
	items = visible(c, items)
	sortBy(items, c.query("order_by"), order)
	total := len(items)
	items = page(c, items, "page_size", 20)
	return doc{name: views(items, view), "total_count": total}, nil
}

// pagedV1 is the same for instance v1, which tells the total in a header.
func pagedV1[T resource](c *call, name string, items []T, view func(T) doc) (any, error) {
	items = visible(c, items)
	order := "created_at_asc"
	if name == "servers" {
		order = "created_at_desc" // the only listing of instance v1 that knows orders
	}
	sortBy(items, map[string]string{"creation_date_asc": "created_at_asc", "creation_date_desc": "created_at_desc",
		"modification_date_asc": "updated_at_asc", "modification_date_desc": "updated_at_desc"}[c.query("order")], order)
	c.total(len(items))
	return doc{name: views(page(c, items, "per_page", 50), view)}, nil
}

// total writes the headers that carry the size of an instance v1 listing and
// the ways to its other pages. These lack the product's prefix, as recorded.
func (c *call) total(n int) {
	size, at := c.number("per_page", 50), c.number("page", 1)
	last := (n + size - 1) / size // 0 when there is nothing
	short := c.req.URL.Path
	if parts := strings.SplitN(short, "/", 6); len(parts) == 6 {
		short = "/" + parts[5]
	}
	rest := c.req.URL.Query()
	rest.Del("page")
	rest.Del("per_page")
	var links []string
	link := func(page int, rel string) {
		links = append(links, fmt.Sprintf("<%s?page=%d&per_page=%d&%s>; rel=%q", short, page, size, rest.Encode(), rel))
	}
	if at > 1 {
		link(1, "first")
		link(at-1, "previous")
	}
	if at < last {
		link(at+1, "next")
	}
	link(last, "last")
	c.header.Set("X-Total-Count", strconv.Itoa(n))
	c.header.Set("Link", strings.Join(links, ","))
}

func views[T any](items []T, view func(T) doc) []doc {
	out := make([]doc, 0, len(items))
	for _, v := range items {
		out = append(out, view(v))
	}
	return out
}

// page cuts one page out of a listing. A size over 100 counts as 100.
func page[T any](c *call, items []T, sizeKey string, size int) []T {
	size = c.number(sizeKey, size)
	from := (c.number("page", 1) - 1) * size
	if from >= len(items) {
		return nil
	}
	return items[from:min(len(items), from+size)]
}

// number reads a positive number from the query, at most 100 for page sizes.
func (c *call) number(name string, otherwise int) int {
	n, err := strconv.Atoi(c.query(name))
	if err != nil || n < 1 {
		return otherwise
	}
	if name != "page" {
		n = min(n, 100)
	}
	return n
}

// tags are the tags that a query asks for: repeated or joined by commas.
func (c *call) tags() []string {
	var out []string
	for _, v := range c.fields()["tags"] {
		for _, t := range strings.Split(v, ",") {
			if t != "" {
				out = append(out, t)
			}
		}
	}
	return out
}

// flag reads a boolean filter: given or not, and its value.
func (c *call) flag(name string) (value, given bool) {
	v := c.query(name)
	return v == "true", v != ""
}

// values are all values of a query field, split at commas.
func (c *call) values(names ...string) []string {
	var out []string
	for _, name := range names {
		for _, v := range c.fields()[name] {
			for _, x := range strings.Split(v, ",") {
				if x != "" {
					out = append(out, x)
				}
			}
		}
	}
	return out
}

// known are the values of a field for an enumeration, without the "unknown" that
// the SDK sends for one that is not to filter.
func (c *call) known(names ...string) []string {
	return slices.DeleteFunc(c.values(names...), func(v string) bool { return strings.HasPrefix(v, "unknown") })
}

// agrees says whether a fact is as a boolean filter wants it, if there is one.
func (c *call) agrees(name string, fact bool) bool {
	value, given := c.flag(name)
	return !given || value == fact
}

// oneOf says whether a value is among those asked for, if any are.
func oneOf(value string, wanted []string) bool {
	if len(wanted) == 0 {
		return true
	}
	for _, w := range wanted {
		if w == value {
			return true
		}
	}
	return false
}

// matches applies the filters that nearly all listings share: project,
// organization, part of a name, any of the tags.
func (c *call) matches(m *record) bool {
	return oneOf(m.Project, c.values("project_id", "project")) &&
		oneOf(c.organization(m.Project), c.values("organization_id", "organization")) &&
		strings.Contains(m.Name, c.query("name")) && anyTag(m.Tags, c.tags())
}
