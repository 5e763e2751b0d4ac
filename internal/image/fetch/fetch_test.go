package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
