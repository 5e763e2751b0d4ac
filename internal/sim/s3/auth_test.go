package s3_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"
)

func TestSignatures(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/a b/ü+~%25?", "x") // the key has characters that encodings differ in
	for _, c := range []struct {
		name   string
		change func(*http.Request) *http.Request
		status int
		code   string
	}{
		{"right", func(r *http.Request) *http.Request { return s.sign(r, access, secret, region) }, 200, ""},
		{"right, with a project", func(r *http.Request) *http.Request { return s.sign(r, access+"@"+project, secret, region) }, 200, ""},
		{"another project sees nothing", func(r *http.Request) *http.Request { return s.sign(r, access+"@"+other, secret, region) }, 403, "AccessDenied"},
		{"a project that the key may not choose", func(r *http.Request) *http.Request { return s.sign(r, reader+"@"+other, secret, region) }, 403, "AccessDenied"},
		{"wrong secret", func(r *http.Request) *http.Request { return s.sign(r, access, "wrong", region) }, 403, "SignatureDoesNotMatch"},
		{"unknown key", func(r *http.Request) *http.Request { return s.sign(r, "SCWUNKNOWN0000000000", secret, region) }, 403, "InvalidAccessKeyId"},
		{"no access key at all", func(r *http.Request) *http.Request { return s.sign(r, "AKIAIOSFODNN7EXAMPLE", secret, region) }, 403, "InvalidAccessKeyId"},
		{"wrong region", func(r *http.Request) *http.Request { return s.sign(r, access, secret, "us-east-1") }, 400, "AuthorizationHeaderMalformed"},
		{"another region's bucket", func(r *http.Request) *http.Request { return s.sign(r, access, secret, "nl-ams") }, 404, "NoSuchBucket"},
		{"old signature", func(r *http.Request) *http.Request {
			r.Header.Set("Authorization", "AWS "+access+":abc=")
			return r
		}, 400, "InvalidRequest"},
		{"changed after signing", func(r *http.Request) *http.Request {
			r = s.sign(r, access, secret, region)
			r.URL.RawQuery = "prefix=b"
			return r
		}, 403, "SignatureDoesNotMatch"},
		{"header added after signing", func(r *http.Request) *http.Request {
			r = s.sign(r, access, secret, region)
			r.Header.Set("X-Amz-Expected-Bucket-Owner", project)
			return r
		}, 403, "AccessDenied"},
		{"anonymous", func(r *http.Request) *http.Request { return r }, 403, "AccessDenied"},
		{"old clock", func(r *http.Request) *http.Request {
			r = s.sign(r, access, secret, region)
			r.Header.Set("X-Amz-Date", time.Now().Add(-16*time.Minute).UTC().Format("20060102T150405Z"))
			return r
		}, 403, "RequestTimeTooSkewed"},
		{"clock ahead", func(r *http.Request) *http.Request {
			r = s.sign(r, access, secret, region)
			r.Header.Set("X-Amz-Date", time.Now().Add(16*time.Minute).UTC().Format("20060102T150405Z"))
			return r
		}, 403, "RequestTimeTooSkewed"},
		{"no content hash", func(r *http.Request) *http.Request {
			r = s.sign(r, access, secret, region)
			r.Header.Del("X-Amz-Content-Sha256")
			return r
		}, 400, "InvalidRequest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, path := range []string{"/estate", "/estate?prefix=a%20b&delimiter=%2F&marker="} {
				s.want(c.status, c.code, s.send(c.change(s.request("GET", path, ""))))
			}
		})
	}
}

func TestPresignedRequests(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	u, err := s.client().PresignedPutObject(t.Context(), "estate", "a b", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	plain := func(method string, u *url.URL, body string) answer {
		r, err := http.NewRequestWithContext(t.Context(), method, u.String(), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return s.send(r)
	}
	s.want(200, "", plain("PUT", u, "presigned"))
	if u, err = s.client().PresignedGetObject(t.Context(), "estate", "a b", time.Hour, url.Values{"response-content-type": {"text/plain"}}); err != nil {
		t.Fatal(err)
	}
	if a := s.want(200, "", plain("GET", u, "")); a.body != "presigned" || a.header.Get("Content-Type") != "text/plain" {
		t.Errorf("%q of type %s", a.body, a.header.Get("Content-Type"))
	}
	s.want(403, "SignatureDoesNotMatch", plain("PUT", u, "other method"))
	q := u.Query()
	q.Set("X-Amz-Expires", "99")
	changed := *u
	changed.RawQuery = q.Encode()
	s.want(403, "SignatureDoesNotMatch", plain("GET", &changed, ""))

	r := s.request("GET", "/estate/a%20b", "")
	expired := signer.PreSignV4(*r, access, secret, "", region, 60).URL
	q = expired.Query()
	q.Set("X-Amz-Date", time.Now().Add(-time.Hour).UTC().Format("20060102T150405Z"))
	expired.RawQuery = q.Encode()
	s.want(403, "AccessDenied", plain("GET", expired, ""))
	q.Set("X-Amz-Expires", "604801")
	expired.RawQuery = q.Encode()
	s.want(400, "AuthorizationQueryParametersError", plain("GET", expired, ""))
}

func TestAKeyThatMayOnlyRead(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/a", "x")
	s.want(200, "", s.doAs(reader, "GET", "/estate/a", ""))
	for _, c := range [][2]string{{"PUT", "/estate/a"}, {"DELETE", "/estate/a"}, {"PUT", "/new"}, {"POST", "/estate/a?uploads"}} {
		s.want(403, "AccessDenied", s.doAs(reader, c[0], c[1], ""))
	}
}

func TestHostNames(t *testing.T) {
	s := start(t)
	s.want(200, "", s.do("PUT", "/", "", "Host", "virtual.s3.fr-par.scw.cloud"))
	s.want(200, "", s.do("PUT", "/dir/key", "x", "Host", "virtual.s3.fr-par.scw.cloud"))
	s.get("/virtual/dir/key", "x")
	s.want(200, "", s.do("GET", "/virtual/dir/key", "", "Host", "s3.fr-par.scw.cloud"))
	s.want(400, "AuthorizationHeaderMalformed", s.do("GET", "/virtual/dir/key", "", "Host", "s3.nl-ams.scw.cloud"))
	r := s.request("GET", "/dir/key", "", "Host", "virtual.s3.nl-ams.scw.cloud")
	s.want(404, "NoSuchBucket", s.send(s.sign(r, access, secret, "nl-ams")))
	r = s.request("PUT", "/", "", "Host", "virtual.s3.nl-ams.scw.cloud")
	s.want(409, "BucketAlreadyOwnedByYou", s.send(s.sign(r, access, secret, "nl-ams")))
	s.want(400, "InvalidURI", s.do("GET", "/", "", "Host", "virtual.s3.us-east-1.scw.cloud"))
}
