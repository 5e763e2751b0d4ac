package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"bastide/internal/image/format"
)

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
