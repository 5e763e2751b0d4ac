package scaleway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"bastide/internal/outcome"

	"github.com/scaleway/scaleway-sdk-go/scw"
)

// pageSize is the largest that every product accepts.
const pageSize = 100

// rereads is how often a listing is read that does not add up before it counts
// as unreadable. Something may come or go between two pages.
const rereads = 4

// mostPages is more than any estate or project has; a longer listing is a lie.
const mostPages = 1000

// untold is the total of a listing that does not say how long it is.
const untold = -1

// page is one page of a listing, and how long the whole says it is.
type page[T any] struct {
	items []T
	total int
}

// list reads a listing to its end, page by page. The SDK's own WithAllPages is
// not used: it trusts a total that some products do not send, and stops after
// the first page. read makes the call and returns the items and the total that
// the body tells.
func list[T any](ctx context.Context, c *Cloud, what string, id func(*T) string, read func(ctx context.Context, n *int32, size *uint32) ([]*T, uint64, error)) ([]*T, error) {
	return listing[*T]{what, id, func(ctx context.Context, n int32) (page[*T], error) {
		ctx, h := seeHeader(ctx)
		items, inBody, err := read(ctx, &n, scw.Uint32Ptr(pageSize))
		for _, v := range items {
			if v == nil || id(v) == "" {
				return page[*T]{}, errors.New("the listing has an entry without an ID")
			}
		}
		return page[*T]{items, total(inBody, h)}, err
	}}.all(ctx, c)
}

// listing is one listing call in terms of pages.
type listing[T any] struct {
	what string // for messages: "servers in fr-par-1"
	id   func(T) string
	read func(ctx context.Context, n int32) (page[T], error)
}

// all reads a listing to its end. What comes back is complete: as many
// different items as the API says there are. Otherwise it is an error that
// means "cannot tell".
func (l listing[T]) all(ctx context.Context, c *Cloud) ([]T, error) {
	var doubt error
	for n := 1; n <= rereads; n++ {
		items, err := l.once(ctx)
		if err != nil {
			return nil, c.cannotTell(fmt.Sprintf("the %s could not be listed", l.what), err)
		}
		if doubt = l.check(items); doubt == nil {
			return items.items, nil
		}
		if err := sleep(ctx, c.retry.pause(n)); err != nil {
			return nil, orLast(err, outcome.CannotTell(fmt.Sprintf("the %s could not be listed", l.what), doubt.Error(), readAgain))
		}
	}
	return nil, outcome.CannotTell(fmt.Sprintf("the %s could not be listed", l.what), doubt.Error(),
		readAgain).Because(doubt)
}

// once reads the first page, then all others at the same time.
func (l listing[T]) once(ctx context.Context) (page[T], error) {
	first, err := l.read(ctx, 1)
	if err != nil || len(first.items) == 0 || len(first.items) == first.total {
		return first, err
	}
	if first.total == untold {
		return l.toTheEnd(ctx, first)
	}
	last := (first.total + len(first.items) - 1) / len(first.items)
	if last > mostPages {
		return first, fmt.Errorf("the listing says that there are %d and shows %d on its first page", first.total, len(first.items))
	}
	rest := make([]page[T], max(last-1, 0))
	err = together(ctx, len(rest), func(ctx context.Context, i int) (err error) {
		rest[i], err = l.read(ctx, int32(i)+2)
		return err
	})
	for _, p := range rest {
		first.items = append(first.items, p.items...)
		if p.total != first.total {
			first.total = max(p.total, first.total)
		}
	}
	return first, err
}

// toTheEnd reads page after page until one is empty.
func (l listing[T]) toTheEnd(ctx context.Context, whole page[T]) (page[T], error) {
	for n := int32(2); ; n++ {
		p, err := l.read(ctx, n)
		if err != nil || len(p.items) == 0 {
			return whole, err
		}
		if n > mostPages {
			return whole, errors.New("the listing has no end")
		}
		whole.items = append(whole.items, p.items...)
	}
}

func (l listing[T]) check(whole page[T]) error {
	seen := map[string]bool{}
	for _, v := range whole.items {
		seen[l.id(v)] = true
	}
	if len(seen) != len(whole.items) {
		return fmt.Errorf("the listing names one thing twice; it changed while it was read")
	}
	if whole.total != untold && whole.total != len(whole.items) {
		return fmt.Errorf("the listing says that there are %d and shows %d", whole.total, len(whole.items))
	}
	return nil
}

// total reads a listing's length, which most products tell in the body and the
// Instance API in a header that the SDK passes on for some listings only.
func total(inBody uint64, seen *http.Header) int {
	if h := seen.Get("X-Total-Count"); h != "" {
		if n, err := strconv.Atoi(h); err == nil {
			return n
		}
	}
	if inBody == 0 {
		return untold
	}
	return int(inBody)
}

type headerKey struct{}

// seeHeader makes the next call made with the context leave its answer's header
// in the returned place.
func seeHeader(ctx context.Context) (context.Context, *http.Header) {
	h := &http.Header{}
	return context.WithValue(ctx, headerKey{}, h), h
}

// headers serves seeHeader.
type headers struct{ next http.RoundTripper }

func (t *headers) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	h, ok := req.Context().Value(headerKey{}).(*http.Header)
	if !ok || err != nil {
		return res, err
	}
	*h = res.Header
	if res.StatusCode >= 300 {
		return res, nil
	}
	if err := holdsList(res); err != nil {
		return nil, err
	}
	return res, nil
}

// holdsList fails an answer to a listing that holds no list. The SDK would take
// it for an empty one, and an empty listing is what lets a destroy end well.
func holdsList(res *http.Response) error {
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		return err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return fmt.Errorf("the answer to a listing is no JSON object: %w", err)
	}
	for _, v := range fields {
		if v = bytes.TrimSpace(v); bytes.HasPrefix(v, []byte("[")) || bytes.HasPrefix(v, []byte("{")) || bytes.Equal(v, []byte("null")) {
			return nil
		}
	}
	return errors.New("the answer to a listing holds no list")
}

// atOnce is how many calls one reading makes at the same time: more than there
// are kinds of things, so that no listing waits for another one of them.
const atOnce = 32

// together calls f for 0 to n-1 at the same time, at most atOnce, and returns the
// first error after all have ended. An error cancels the others.
func together(ctx context.Context, n int, f func(context.Context, int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slots := make(chan struct{}, atOnce)
	errs := make(chan error, n)
	for i := range n {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs <- f(ctx, i)
		}()
	}
	var first error
	for range n {
		if err := <-errs; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	return first
}
