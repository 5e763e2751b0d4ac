package s3_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
)

func TestAStoreThatIgnoresConditions(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.script("store: {conditionsIgnored: true}")
	for range 2 {
		s.want(200, "", s.do("PUT", "/estate/lock", "x", "If-None-Match", "*"))
	}
	s.want(200, "", s.do("PUT", "/estate/lock", "y", "If-Match", `"other"`))
	s.want(304, "", s.do("GET", "/estate/lock", "", "If-None-Match", etagOf("y"))) // reads know them
	s.script("")
	s.want(412, "PreconditionFailed", s.do("PUT", "/estate/lock", "x", "If-None-Match", "*"))
}

func TestAStoreThatRejectsChecksums(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.script("store: {rejectChecksumHeaders: true}")
	for _, h := range [][]string{{"X-Amz-Checksum-Crc32", "jNwWgw=="}, {"X-Amz-Sdk-Checksum-Algorithm", "CRC32"}, {"X-Amz-Checksum-Mode", "ENABLED"},
		{"X-Amz-Trailer", "x-amz-checksum-crc32"}, {"X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}} {
		for _, method := range []string{"PUT", "GET"} {
			s.want(400, "InvalidArgument", s.do(method, "/estate/key", "x", h...))
		}
	}
	put := func(c *minio.Client, opts minio.PutObjectOptions) error {
		_, err := c.PutObject(t.Context(), "estate", "key", strings.NewReader("x"), 1, opts)
		return err
	}
	if err := put(s.trailing(), minio.PutObjectOptions{Checksum: minio.ChecksumCRC32}); code(err) != "InvalidArgument" {
		t.Errorf("a trailing checksum: %v", err)
	}
	if err := put(s.client(), minio.PutObjectOptions{}); err != nil {
		t.Errorf("without any: %v", err)
	}
	s.get("/estate/key", "x")
}

// TestTrailingChecksums sends what aws-sdk-go-v2 sends by default over TLS.
func TestTrailingChecksums(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	put := func(body, trailer, length string) answer {
		return s.do("PUT", "/estate/key", body, "Content-Encoding", "aws-chunked", "X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
			"X-Amz-Trailer", trailer, "X-Amz-Decoded-Content-Length", length, "X-Amz-Sdk-Checksum-Algorithm", "CRC32")
	}
	const right = "4\r\ntest\r\n0\r\nx-amz-checksum-crc32:2H9+DA==\r\n\r\n" // recorded
	a := s.want(200, "", put(right, "x-amz-checksum-crc32", "4"))
	if a.header.Get("X-Amz-Checksum-Crc32") != "2H9+DA==" || a.header.Get("X-Amz-Checksum-Type") != "FULL_OBJECT" {
		t.Errorf("%v", a.header)
	}
	if h := s.do("HEAD", "/estate/key", "").header; h.Get("Content-Encoding") != "" || h.Get("Content-Length") != "4" {
		t.Errorf("%v", h)
	}
	s.want(400, "XAmzContentChecksumMismatch", put(strings.Replace(right, "test", "Test", 1), "x-amz-checksum-crc32", "4"))
	s.want(400, "IncompleteBody", put(right, "x-amz-checksum-crc32", "5"))
	s.want(400, "IncompleteBody", put(right, "x-amz-checksum-crc32", "3"))
	s.want(400, "MalformedTrailerError", put("4\r\ntest\r\n0\r\n\r\n", "x-amz-checksum-crc32", "4"))
	s.want(400, "InvalidRequest", put(right, "x-amz-checksum-sha256", "4"))
	s.want(400, "InvalidRequest", put(right, "x-amz-meta-a", "4"))
	s.want(411, "MissingContentLength", put(right, "x-amz-checksum-crc32", ""))
	s.get("/estate/key", "test")
}

// A connection that ends within a body leaves nothing behind, neither an object
// nor a part; what was there before stays.
func TestUploadsAreCutInTheMiddle(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/key", "before")
	s.script(`http:
  - {method: PUT, path: /estate/key, nth: 1, cutAfter: 600000}
  - {method: PUT, path: /estate/parts, query: {partNumber: "2"}, nth: 1, cutAfter: 3000000}
`)
	content := strings.Repeat("x", 1_000_000)
	cut := func(path, body string) {
		t.Helper()
		r := s.sign(s.request("PUT", path, body), access, secret, region)
		if resp, err := http.DefaultTransport.RoundTrip(r); err == nil {
			_ = resp.Body.Close()
			t.Errorf("%s was answered with %d", path, resp.StatusCode)
		}
	}
	cut("/estate/key", content)
	s.get("/estate/key", "before")
	s.put("/estate/key", content) // the rule has acted

	id := parse[struct{ UploadId string }](t, s.want(200, "", s.do("POST", "/estate/parts?uploads", ""))).UploadId
	part := strings.Repeat("y", 5<<20)
	s.want(200, "", s.do("PUT", "/estate/parts?partNumber=1&uploadId="+id, part))
	cut("/estate/parts?partNumber=2&uploadId="+id, part)
	list := s.want(200, "", s.do("GET", "/estate/parts?uploadId="+id, "")).body
	if strings.Count(list, "<PartNumber>") != 1 {
		t.Errorf("a part that was cut is there: %s", list)
	}
	s.want(200, "", s.do("PUT", "/estate/parts?partNumber=2&uploadId="+id, part))
	s.script("http: [{method: PUT, path: /estate/key, cutAfter: 600000}]")
	s.put("/estate/key", "shorter than that")
}

func TestFaultRules(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	for _, k := range []string{"a", "b", "c"} {
		s.put("/estate/"+k, "0123456789")
	}
	s.script(`http:
  - {method: PUT, path: "/estate/**", nth: 1, status: 503}
  - {method: PUT, path: "/estate/**", nth: 2, status: 400, body: "BadRequest <html>"}
  - {method: PUT, path: "/estate/lost", nth: 1, applyThenDrop: true}
  - {method: DELETE, path: "/estate/a", nth: 1, drop: true}
  - {method: GET, path: "/estate/b", nth: 1, truncate: 4}
  - {method: GET, path: /estate, nth: 1, shortPage: 1}
`)
	s.want(503, "SlowDown", s.do("PUT", "/estate/new", "x"))
	s.want(404, "NoSuchKey", s.do("GET", "/estate/new", ""))
	if a := s.do("PUT", "/new", "x", "Host", "estate.s3.fr-par.scw.cloud"); a.status != 400 || a.body != "BadRequest <html>" {
		t.Errorf("%d %s", a.status, a.body)
	}
	send := func(method, path string) (*http.Response, error) {
		return http.DefaultTransport.RoundTrip(s.sign(s.request(method, path, "x"), access, secret, region))
	}
	for _, c := range [][2]string{{"PUT", "/estate/lost"}, {"DELETE", "/estate/a"}} {
		if resp, err := send(c[0], c[1]); err == nil {
			_ = resp.Body.Close()
			t.Errorf("%s %s was answered with %d", c[0], c[1], resp.StatusCode)
		}
	}
	s.get("/estate/lost", "x")
	s.get("/estate/a", "0123456789")
	resp, err := send("GET", "/estate/b")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if string(text) != "0123" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", text, err)
	}
	if n := len(parse[listing](t, s.do("GET", "/estate", "")).Contents); n != 3 {
		t.Errorf("%d items on the short page", n)
	}
	if n := len(parse[listing](t, s.do("GET", "/estate", "")).Contents); n != 4 {
		t.Errorf("%d items", n)
	}
	c := s.engine.Counts()
	for i, h := range c.HTTP {
		if h.Acted != 1 {
			t.Errorf("rule %d acted %d times", i+1, h.Acted)
		}
	}
	if c.Mutating != 4 {
		t.Errorf("%d changing calls were counted", c.Mutating)
	}
}

// TestHanging: the call is never answered and does nothing, and ends when the
// client gives up; the server could not be closed else.
func TestHanging(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.script(`http: [{method: PUT, path: "/estate/*", nth: 1, hang: true}]`)
	ctx, giveUp := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer giveUp()
	r := s.sign(s.request("PUT", "/estate/key", "x"), access, secret, region).WithContext(ctx)
	if resp, err := http.DefaultTransport.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) {
		if err == nil {
			_ = resp.Body.Close()
		}
		t.Errorf("%v", err)
	}
	s.want(404, "NoSuchKey", s.do("GET", "/estate/key", ""))
	s.put("/estate/key", "x")
}

func TestStaleReads(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/key", "old")
	s.script(`http: [{method: GET, path: "/estate**", stale: 1h}]`)
	s.put("/estate/key", "new")
	s.put("/estate/late", "new")
	s.get("/estate/key", "old")
	s.want(404, "NoSuchKey", s.do("GET", "/estate/late", ""))
	s.want(200, "", s.do("HEAD", "/estate/late", ""))
	s.script("")
	s.get("/estate/key", "new")
}

func TestResetEmptiesTheStore(t *testing.T) {
	s := start(t)
	s.versionedBucket("estate")
	s.put("/estate/key", "x")
	s.upload("/estate/other", "x")
	b := s.server.Buckets()
	if len(b) != 1 || b[0].Name != "estate" || b[0].Objects != 1 || b[0].Uploads != 1 || b[0].Bytes != 2 || b[0].Project != project {
		t.Errorf("%+v", b)
	}
	s.server.Reset()
	if b := s.server.Buckets(); len(b) != 0 {
		t.Errorf("%+v", b)
	}
	s.want(404, "NoSuchBucket", s.do("GET", "/estate", ""))
	s.bucket("estate")
}

func TestReadingFromInside(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/image", "qcow2")
	r, n, err := s.server.Open(region, "estate", "image")
	if err != nil || n != 5 {
		t.Fatalf("%d, %v", n, err)
	}
	defer func() { _ = r.Close() }()
	if text, err := io.ReadAll(r); err != nil || string(text) != "qcow2" {
		t.Errorf("%q, %v", text, err)
	}
	for _, c := range [][3]string{{"nl-ams", "estate", "image"}, {region, "other", "image"}, {region, "estate", "other"}} {
		if _, _, err := s.server.Open(c[0], c[1], c[2]); err == nil {
			t.Errorf("%v is there", c)
		}
	}
}
