package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bastide/internal/image/format"
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

func TestAWholeFile(t *testing.T) {
	o := &origin{content: noise(megabyte), etag: `"one"`}
	var read, total int64
	got, s, err := all(serve(t, o), Options{Progress: func(r, n int64) { read, total = r, n }})
	if err != nil || !bytes.Equal(got, o.content) {
		t.Fatal(len(got), err)
	}
	if s.Length() != megabyte || s.Version() != `"one"` || read != megabyte || total != megabyte || s.At() != nil {
		t.Errorf("length %d, version %s, progress %d of %d", s.Length(), s.Version(), read, total)
	}
	if strings.Contains(s.Name(), "hush") || o.requests[0].Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("name %s, headers %v", s.Name(), o.requests[0].Header)
	}
}

func TestABrokenDownloadIsTakenUp(t *testing.T) {
	for name, c := range map[string]struct {
		origin *origin
		ranges bool // the second request asks for a part
	}{
		"with an ETag":                 {&origin{etag: `"one"`, cut: once}, true},
		"and breaks seven times":       {&origin{etag: `"one"`, cut: func(n int, _ *origin) int { return 90_000 + 1e7*(n/8) }}, true},
		"from a server without ranges": {&origin{etag: `"one"`, noRanges: true, cut: once}, true},
		"without anything to go by":    {&origin{cut: once}, false},
		"with an ETag that is weak":    {&origin{etag: `W/"one"`, cut: once}, false},
		"that did not even begin":      {&origin{etag: `"one"`, cut: func(n int, _ *origin) int { return n * 1e7 }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.origin
			o.content = noise(megabyte)
			var last int64
			got, _, err := all(serve(t, o), Options{Progress: func(r, _ int64) { last = r }})
			if err != nil || !bytes.Equal(got, o.content) || last != megabyte {
				t.Fatal(len(got), last, err)
			}
			second := o.requests[1].Header
			if asked := second.Get("Range") != "" || o.noRanges; asked != c.ranges || c.ranges && second.Get("If-Range") != `"one"` {
				t.Errorf("the second request has %v", second)
			}
		})
	}
}

// Two versions of a file are never mixed.
func TestAFileThatChangesIsNotTakenUp(t *testing.T) {
	other := func(length int, etag string) func(int, *origin) int {
		return func(number int, o *origin) int {
			if number == 0 {
				return len(o.content) * 6 / 10
			}
			o.content, o.etag = append([]byte("new"), noise(length)...), etag
			return -1
		}
	}
	for name, c := range map[string]struct {
		origin *origin
		says   string
	}{
		"another ETag":                  {&origin{etag: `"one"`, cut: other(megabyte, `"two"`)}, "ETag"},
		"another ETag, no ranges":       {&origin{etag: `"one"`, noRanges: true, cut: other(megabyte, `"two"`)}, "ETag"},
		"another length, the same ETag": {&origin{etag: `"one"`, cut: other(megabyte, `"one"`)}, "bytes"},
		"shorter than what was read":    {&origin{etag: `"one"`, cut: other(100, `"one"`)}, "no byte 600000"},
		"nothing but the content":       {&origin{cut: other(megabyte-3, "")}, "first 600000 bytes are others"},
		"content and length, no ETag":   {&origin{cut: other(megabyte, "")}, "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.origin
			o.content = noise(megabyte)
			was := o.content
			got, _, err := all(serve(t, o), Options{})
			var changed *Changed
			if !errors.As(err, &changed) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if !bytes.HasPrefix(was, got) {
				t.Error("something of the new file was given away")
			}
		})
	}
}

func TestAnswersThatAreNotTheFile(t *testing.T) {
	for code, c := range map[int]struct {
		body, says string
	}{
		400: {"unknown extension siderolabs/nope\n", "400 Bad Request: unknown extension siderolabs/nope"},
		401: {"", "401"},
		402: {"enterprise only", "402 Payment Required: enterprise only"},
		403: {"<?xml version=\"1.0\"?><Error><Code>AccessDenied", "403 Forbidden"},
		404: {"not \x1b[31mfound", "404 Not Found: not [31mfound"},
		501: {"", "501"},
	} {
		requests := 0
		from := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			w.WriteHeader(code)
			_, _ = io.WriteString(w, c.body)
		}))
		_, _, err := all(from, Options{})
		var status *Status
		if !errors.As(err, &status) || status.Code != code || !strings.HasSuffix(err.Error(), c.says) && c.body != "" || requests != 1 || strings.Contains(err.Error(), "hush") {
			t.Errorf("%d: %v after %d requests", code, err, requests)
		}
	}
	page := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "<!doctype html><html>sign in</html>")
	}))
	if _, _, err := all(page, Options{}); format.Refused(err) == nil || format.Refused(err).Reason != format.ServerMessage {
		t.Errorf("a page: %v", err)
	}
	part := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Range", "bytes 0-1/9")
		w.WriteHeader(206)
		_, _ = io.WriteString(w, "ab")
	}))
	if _, _, err := all(part, Options{}); err == nil {
		t.Error("a part that nobody asked for was taken")
	}
}

func TestAServerThatIsBusyIsAskedAgain(t *testing.T) {
	o := &origin{content: noise(1000)}
	answers := []int{503, 429, 200}
	from := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code := answers[0]
		answers = answers[1:]
		if code != 200 {
			w.WriteHeader(code)
			return
		}
		o.ServeHTTP(w, r)
	}))
	if got, _, err := all(from, Options{}); err != nil || !bytes.Equal(got, o.content) {
		t.Error(len(got), err)
	}
	ever := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502) }))
	_, _, err := all(ever, Options{Patience: 50 * time.Millisecond})
	var status *Status
	if !errors.As(err, &status) || status.Code != 502 {
		t.Error(err)
	}
}

func TestAConnectionThatHangsIsCut(t *testing.T) {
	o := &origin{content: noise(megabyte), etag: `"one"`}
	number := 0
	from := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number++
		if number > 1 {
			o.ServeHTTP(w, r)
			return
		}
		w.Header().Set("ETag", o.etag)
		w.Header().Set("Content-Length", fmt.Sprint(len(o.content)))
		_, _ = w.Write(o.content[:megabyte/2])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // says nothing more
	}))
	if got, _, err := all(from, Options{Patience: 2 * time.Second}); err != nil || !bytes.Equal(got, o.content) || number != 2 {
		t.Error(len(got), number, err)
	}
}

func TestPatienceEnds(t *testing.T) {
	o := &origin{content: noise(megabyte), etag: `"one"`, cut: func(number int, _ *origin) int {
		if number == 0 {
			return megabyte / 2
		}
		return 0
	}}
	got, _, err := all(serve(t, o), Options{Patience: 300 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "after 500000 bytes") || strings.Contains(err.Error(), "hush") || !bytes.Equal(got, o.content[:megabyte/2]) {
		t.Error(len(got), err)
	}
}

// Whoever waits is told why.
func TestTroubleIsTold(t *testing.T) {
	ever := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }))
	o := &origin{content: noise(megabyte), noRanges: true, cut: func(number int, _ *origin) int { return megabyte / 2 }}
	for name, c := range map[string]struct{ from, says string }{
		"it keeps answering 500":   {ever, "500 Internal Server Error; trying again until "},
		"it breaks off, no ranges": {serve(t, o), "; trying again until "},
	} {
		var said []string
		_, _, err := all(c.from, Options{Patience: 300 * time.Millisecond, Notice: func(s string) { said = append(said, s) }})
		if err == nil || len(said) != 1 || !strings.Contains(said[0], c.says) || strings.Contains(said[0], "hush") {
			t.Errorf("%s: %q, %v", name, said, err)
		}
	}
}

func TestNobodyAtTheAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	from := "http://" + l.Addr().String() + "/disk.raw.zst"
	_ = l.Close()
	// With an hour's patience only the number of tries can end it.
	if _, _, err := all(from, Options{Patience: time.Hour, Knocks: 3}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
}

func TestRedirectsToNoServer(t *testing.T) {
	for _, to := range []string{"file:///etc/passwd", "http:///disk", "ftp://127.0.0.1/disk", "http://[::1", "%zz"} {
		requests := 0
		from := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			w.Header().Set("Location", to)
			w.WriteHeader(302)
		}))
		if _, _, err := all(from, Options{Patience: time.Hour}); !errors.Is(err, ErrRedirect) || requests != 1 {
			t.Errorf("%s: %v after %d requests", to, err, requests)
		}
	}
}

func TestRedirects(t *testing.T) {
	o := &origin{content: noise(1000), etag: `"one"`, cut: once}
	storage := serve(t, o)
	from := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, storage, 302) }))
	if got, s, err := all(from, Options{}); err != nil || !bytes.Equal(got, o.content) || s.Version() != `"one"` {
		t.Error(len(got), err)
	}
	requests := 0
	loop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { requests++; http.Redirect(w, r, r.URL.Path, 302) }))
	if _, _, err := all(loop, Options{}); !errors.Is(err, ErrRedirect) || requests > 11 {
		t.Error(requests, err)
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, storage, 302) }))
	defer secure.Close()
	if _, err := Open(context.Background(), secure.URL, secure.Client(), Options{}); !errors.Is(err, ErrRedirect) {
		t.Errorf("from https to http: %v", err)
	}
	if _, err := Open(context.Background(), secure.URL, nil, Options{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
}

// Of chunks the end shows; of a connection that is simply closed it does not.
func TestAServerThatDoesNotSayHowLong(t *testing.T) {
	content := noise(megabyte)
	number := 0
	chunked := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number++
		w.Header().Set("ETag", `"one"`)
		_, _ = w.Write(content[:600_000])
		_ = http.NewResponseController(w).Flush()
		if number == 1 {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(content[600_000:])
	}))
	if got, s, err := all(chunked, Options{}); err != nil || !bytes.Equal(got, content) || s.Length() != -1 || number != 2 {
		t.Error(len(got), err)
	}
	closed := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, out, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = out.WriteString("HTTP/1.0 200 OK\r\nContent-Type: application/octet-stream\r\n\r\nQFI")
		_ = out.Flush()
	}))
	if _, _, err := all(closed, Options{}); err == nil || !strings.Contains(err.Error(), "how long") {
		t.Error(err)
	}
}

func TestTheUserEndsIt(t *testing.T) {
	hang := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write(make([]byte, 10))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(context.Background())
	s, err := Open(ctx, hang, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := io.ReadFull(s, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := s.Read(make([]byte, 10)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "disk.raw")
	if err := os.WriteFile(name, noise(5000), 0o600); err != nil {
		t.Fatal(err)
	}
	var read int64
	got, s, err := all(name, Options{Progress: func(r, _ int64) { read = r }})
	if err != nil || !bytes.Equal(got, noise(5000)) || s.Length() != 5000 || s.At() == nil || s.Name() != name || read != 5000 {
		t.Error(len(got), read, err)
	}
	if _, _, err := all(dir, Options{}); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Error(err)
	}
	if _, _, err := all(name+"x", Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
