package fetch

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// origin is a server with one file, and with what goes wrong with it.
type origin struct {
	content  []byte
	etag     string
	noRanges bool
	// each request is told its number, from 0; what it returns: after how many
	// bytes of the answer the connection is cut, -1 for never.
	cut func(request int, o *origin) int

	mu       sync.Mutex
	requests []*http.Request
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	number := len(o.requests)
	o.requests = append(o.requests, r)
	cut := -1
	if o.cut != nil {
		cut = o.cut(number, o)
	}
	if o.etag != "" {
		w.Header().Set("ETag", o.etag)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if o.noRanges {
		r.Header.Del("Range")
	}
	if cut >= 0 {
		w = &cutter{w, cut}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(o.content))
}

// cutter ends the connection after some bytes.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if len(p) <= c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func noise(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(p)
	return p
}

func serve(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/image/scaleway-amd64.raw.zst?signature=hush"
}

func all(from string, o Options) ([]byte, *Source, error) {
	s, err := Open(context.Background(), from, nil, o)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	p, err := io.ReadAll(s)
	return p, s, err
}

const megabyte = 1_000_000

// once cuts the first answer at 60 %.
func once(number int, o *origin) int {
	if number == 0 {
		return len(o.content) * 6 / 10
	}
	return -1
}
