package s3_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/signer"

	"bastide/internal/sim/clock"
	"bastide/internal/sim/fault"
	"bastide/internal/sim/s3"
)

const (
	access  = "SCWBASTIDEREHEARSAL0"
	secret  = "6a1b1b7e-0000-4000-8000-000000000001"
	project = "11111111-1111-4111-8111-111111111111"
	other   = "22222222-2222-4222-8222-222222222222"
	reader  = "SCWBASTIDEREADERKEY0" // may not write
	region  = "fr-par"
)

// store is a store under test.
type store struct {
	t      *testing.T
	url    string
	dir    string
	server *s3.Server
	engine *fault.Engine
}

// watch gives a store a fault script and no log.
type watch struct{ engine *fault.Engine }

func (w watch) Faults() *fault.Engine { return w.engine }

func (watch) Begin(*http.Request, string, string) func(s3.End) {
	return func(s3.End) {}
}

func start(t *testing.T) *store { return startAt(t, 1) }

func startAt(t *testing.T, speed float64) *store {
	t.Helper()
	c := clock.New(speed)
	engine := fault.NewEngine(c)
	dir := t.TempDir()
	server, err := s3.New(s3.Options{Dir: dir, Region: region, Clock: c, Watch: watch{engine}, Keys: func(id string) (s3.Key, bool) {
		switch id {
		case access:
			return s3.Key{Secret: secret, Project: project}, true
		case reader:
			return s3.Key{Secret: secret, Project: project, Projects: []string{}, May: func(r s3.Right, _ string) (bool, string) { return r.Action == s3.List || r.Action == s3.Read, "" }}, true
		}
		return s3.Key{}, false
	}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		web.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return &store{t, web.URL, dir, server, engine}
}

// script puts a fault script in force.
func (s *store) script(text string) {
	s.t.Helper()
	script, err := fault.Parse([]byte(text))
	if err == nil {
		err = s.engine.Load(script)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// client is the library that the product uses.
func (s *store) client() *minio.Client { return s.clientAs(access) }

func (s *store) clientAs(key string) *minio.Client { return s.clientWith(key, false) }

// trailing is a client that sends checksums behind bodies.
func (s *store) trailing() *minio.Client { return s.clientWith(access, true) }

func (s *store) clientWith(key string, trailing bool) *minio.Client {
	s.t.Helper()
	c, err := minio.New(strings.TrimPrefix(s.url, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(key, secret, ""), TrailingHeaders: trailing, Region: region, BucketLookup: minio.BucketLookupPath, MaxRetries: 1,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// bucket makes a bucket.
func (s *store) bucket(name string, header ...string) {
	s.t.Helper()
	s.want(200, "", s.do("PUT", "/"+name, "", header...))
}

// versionedBucket makes a bucket with versions.
func (s *store) versionedBucket(name string) {
	s.t.Helper()
	s.bucket(name)
	s.want(200, "", s.do("PUT", "/"+name+"?versioning", `<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>`))
}

// answer is a response, read whole.
type answer struct {
	what   string
	status int
	header http.Header
	body   string
	code   string // of an error
}

// do sends a signed request; headers are given as name, value.
func (s *store) do(method, path, body string, header ...string) answer {
	s.t.Helper()
	return s.doAs(access, method, path, body, header...)
}

func (s *store) doAs(key, method, path, body string, header ...string) answer {
	s.t.Helper()
	r := s.request(method, path, body, header...)
	return s.send(s.sign(r, key, secret, region))
}

func (s *store) request(method, path, body string, header ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	if r.Header.Get("X-Amz-Content-Sha256") == "" {
		sum := sha256.Sum256([]byte(body))
		r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	}
	return r
}

func (s *store) sign(r *http.Request, key, secret, region string) *http.Request {
	// The signer takes the host from the URL, as a client of that host would.
	if host := r.Host; host != r.URL.Host {
		to := r.URL.Host
		r.URL.Host = host
		r = signer.SignV4(*r, key, secret, "", region)
		r.URL.Host, r.Host = to, host
		return r
	}
	return signer.SignV4(*r, key, secret, "", region)
}

func (s *store) send(r *http.Request) answer {
	s.t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	var e struct{ Code string }
	if resp.StatusCode >= 300 {
		_ = xml.Unmarshal(text, &e)
	}
	return answer{fmt.Sprintf("%s %s %v", r.Method, r.URL.RequestURI(), r.Header), resp.StatusCode, resp.Header, string(text), e.Code}
}

func (s *store) want(status int, code string, a answer) answer {
	s.t.Helper()
	if a.status != status || a.code != code {
		s.t.Fatalf("%s: %d %s, want %d %s\n%s", a.what, a.status, a.code, status, code, a.body)
	}
	return a
}

// put stores an object and returns its version.
func (s *store) put(path, content string, header ...string) string {
	s.t.Helper()
	return s.want(200, "", s.do("PUT", path, content, header...)).header.Get("X-Amz-Version-Id")
}

func (s *store) get(path, content string) {
	s.t.Helper()
	if a := s.want(200, "", s.do("GET", path, "")); a.body != content {
		s.t.Fatalf("GET %s gave %q, want %q", path, a.body, content)
	}
}

// parse reads an XML answer.
func parse[T any](t *testing.T, a answer) T {
	t.Helper()
	var v T
	if err := xml.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%s: %v\n%s", a.what, err, a.body)
	}
	return v
}

func md5Of(text string) string {
	sum := md5.Sum([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func etagOf(text string) string {
	sum := md5.Sum([]byte(text))
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// eventually waits for a condition, with a deadline that is only there to end a
// failed test.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("never came true: %s", what)
		case <-tick.C:
		}
	}
}

func code(err error) string { return minio.ToErrorResponse(err).Code }

func escape(s string) string { return url.QueryEscape(s) }

func repeat(n int) []byte { return bytes.Repeat([]byte("0123456789abcdef"), n/16) }
