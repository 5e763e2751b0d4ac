package s3_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestBucketNames(t *testing.T) {
	s := start(t)
	for _, name := range []string{"ab", "Upper", "under_score", "-dash", "dash-", "a..b", "a.-b", "192.168.0.1", "xn--abc", strings.Repeat("a", 64)} {
		s.want(400, "InvalidBucketName", s.do("PUT", "/"+name, ""))
	}
	s.bucket("taken")
	s.want(409, "BucketAlreadyOwnedByYou", s.do("PUT", "/taken", ""))
	s.want(409, "BucketAlreadyExists", s.doAs(access+"@"+other, "PUT", "/taken", ""))
	if a := s.do("PUT", "/located", `<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><LocationConstraint>fr-par</LocationConstraint></CreateBucketConfiguration>`); a.header.Get("Location") != "/located" {
		t.Errorf("%d, location %q: %s", a.status, a.header.Get("Location"), a.body)
	}
	s.want(400, "InvalidLocationConstraint", s.do("PUT", "/elsewhere", `<CreateBucketConfiguration><LocationConstraint>nl-ams</LocationConstraint></CreateBucketConfiguration>`))
	if a := s.want(200, "", s.do("GET", "/located?location", "")); !strings.Contains(a.body, ">fr-par</LocationConstraint>") {
		t.Errorf("%s", a.body)
	}
	list := s.want(200, "", s.do("GET", "/", ""))
	for _, want := range []string{"<Name>located</Name>", "<Name>taken</Name>", project + ":" + project} {
		if !strings.Contains(list.body, want) {
			t.Errorf("%s is not in %s", want, list.body)
		}
	}
	if a := s.doAs(access+"@"+other, "GET", "/", ""); strings.Contains(a.body, "taken") {
		t.Errorf("another project lists the bucket: %s", a.body)
	}
}

func TestErrorBodies(t *testing.T) {
	s := start(t)
	a := s.want(404, "NoSuchBucket", s.do("GET", "/missing/key", ""))
	id := a.header.Get("X-Amz-Request-Id")
	want := "<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message><RequestId>" + id + "</RequestId><HostId>" + id + "</HostId><Resource>/missing/key</Resource></Error>"
	if a.body != want || !strings.HasPrefix(id, "txg") || a.header.Get("Content-Type") != "application/xml" {
		t.Errorf("%s\nwant %s", a.body, want)
	}
	if a := s.want(404, "", s.do("HEAD", "/missing", "")); a.header.Get("Content-Length") != "" && a.header.Get("Content-Length") != "0" {
		t.Errorf("HEAD of a missing bucket is not bare: %v", a.header)
	}
	s.bucket("estate")
	s.want(403, "", s.doAs(access+"@"+other, "HEAD", "/estate", ""))
	s.want(404, "NoSuchKey", s.do("GET", "/estate/missing", ""))
	s.want(404, "", s.do("HEAD", "/estate/missing", ""))
	s.want(405, "MethodNotAllowed", s.do("POST", "/estate/key", ""))
	s.want(405, "MethodNotAllowed", s.do("DELETE", "/estate/key?acl", ""))
	s.want(501, "NotImplemented", s.do("GET", "/estate?replication", ""))
	s.want(400, "KeyTooLongError", s.do("PUT", "/estate/"+strings.Repeat("k", 1025), "x"))
}

func TestAnObjectComesBackAsItWasPut(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	a := s.want(200, "", s.do("PUT", "/estate/dir/key", "hello world", "Content-Type", "text/plain", "Cache-Control", "no-cache", "Content-Encoding", "aws-chunked,gzip",
		"X-Amz-Meta-Owner", "bastide", "X-Amz-Tagging", "b=2&a=1", "Content-MD5", md5Of("hello world")))
	if a.header.Get("ETag") != etagOf("hello world") {
		t.Errorf("ETag %s", a.header.Get("ETag"))
	}
	for _, method := range []string{"HEAD", "GET"} {
		a := s.want(200, "", s.do(method, "/estate/dir/key", "", "Accept-Encoding", "identity"))
		for name, want := range map[string]string{"Content-Type": "text/plain", "Cache-Control": "no-cache", "Content-Encoding": "gzip", "X-Amz-Meta-Owner": "bastide",
			"X-Amz-Tagging-Count": "2", "Content-Length": "11", "Etag": etagOf("hello world"), "Accept-Ranges": "bytes", "X-Amz-Version-Id": ""} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", method, name, got, want)
			}
		}
	}
	s.put("/estate/dir/key", "")
	s.get("/estate/dir/key", "")
	s.want(204, "", s.do("DELETE", "/estate/dir/key", ""))
	s.want(404, "NoSuchKey", s.do("GET", "/estate/dir/key", ""))
	s.want(204, "", s.do("DELETE", "/estate/dir/key", ""))
	s.want(400, "MetadataTooLarge", s.do("PUT", "/estate/key", "", "X-Amz-Meta-A", strings.Repeat("x", 2048)))
	s.want(400, "InvalidStorageClass", s.do("PUT", "/estate/key", "", "X-Amz-Storage-Class", "COLD"))
	s.want(400, "InvalidTag", s.do("PUT", "/estate/key", "", "X-Amz-Tagging", "a=1&a=2"))
}

func TestDigests(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	const crc32, crc32c, crc64, sha1, sha256 = "DUoRhQ==", "yZRlqg==", "jSnVw/bqjr4=", "Kq5sNclPz7QV2+lfQIuc6R7oRu0=", "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="
	for name, value := range map[string]string{"crc32": crc32, "crc32c": crc32c, "crc64nvme": crc64, "sha1": sha1, "sha256": sha256} {
		a := s.want(200, "", s.do("PUT", "/estate/"+name, "hello world", "X-Amz-Checksum-"+name, value))
		if a.header.Get("X-Amz-Checksum-"+name) != value || a.header.Get("X-Amz-Checksum-Type") != "FULL_OBJECT" {
			t.Errorf("%s: %v", name, a.header)
		}
		if a := s.do("HEAD", "/estate/"+name, ""); a.header.Get("X-Amz-Checksum-"+name) != "" {
			t.Errorf("%s is told unasked", name)
		}
		if a := s.do("HEAD", "/estate/"+name, "", "X-Amz-Checksum-Mode", "ENABLED"); a.header.Get("X-Amz-Checksum-"+name) != value {
			t.Errorf("%s is not told: %v", name, a.header)
		}
		s.want(400, "XAmzContentChecksumMismatch", s.do("PUT", "/estate/"+name, "hello  world", "X-Amz-Checksum-"+name, value))
		s.get("/estate/"+name, "hello world")
	}
	s.want(400, "BadDigest", s.do("PUT", "/estate/key", "hello world", "Content-MD5", md5Of("other")))
	s.want(400, "InvalidDigest", s.do("PUT", "/estate/key", "hello world", "Content-MD5", "short"))
	s.want(400, "InvalidRequest", s.do("PUT", "/estate/key", "hello world", "X-Amz-Checksum-Crc32", "wrong"))
	s.want(400, "InvalidRequest", s.do("PUT", "/estate/key", "hello world", "X-Amz-Checksum-Crc32", crc32, "X-Amz-Checksum-Crc32c", crc32c))
	s.want(400, "InvalidRequest", s.do("PUT", "/estate/key", "hello world", "X-Amz-Sdk-Checksum-Algorithm", "CRC32"))
	r := s.sign(s.request("PUT", "/estate/key", "hello world"), access, secret, region)
	r.Body = http.NoBody
	r.ContentLength = 0
	s.want(400, "XAmzContentSHA256Mismatch", s.send(r))
	s.want(404, "NoSuchKey", s.do("GET", "/estate/key", "")) // none of it left anything behind
}

func TestTooLargeForOnePut(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	r := s.request("PUT", "/estate/key", "", "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	r.Header.Set("X-Amz-Decoded-Content-Length", "5000000001")
	r.Header.Set("X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
	s.want(400, "EntityTooLarge", s.send(s.sign(r, access, secret, region)))
	r = s.request("PUT", "/estate/key", "x", "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	r.ContentLength = -1 // sent in chunks of HTTP, without a length
	s.want(411, "MissingContentLength", s.send(s.sign(r, access, secret, region)))
}

func TestRanges(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/key", "0123456789")
	for _, c := range []struct{ rng, want, header string }{
		{"bytes=0-3", "0123", "bytes 0-3/10"}, {"bytes=4-", "456789", "bytes 4-9/10"}, {"bytes=-3", "789", "bytes 7-9/10"},
		{"bytes=8-99", "89", "bytes 8-9/10"}, {"bytes=-99", "0123456789", "bytes 0-9/10"},
	} {
		a := s.want(206, "", s.do("GET", "/estate/key", "", "Range", c.rng))
		if a.body != c.want || a.header.Get("Content-Range") != c.header {
			t.Errorf("%s: %q %q", c.rng, a.body, a.header.Get("Content-Range"))
		}
	}
	for _, ignored := range []string{"bytes=5-3", "bytes=a-b", "lines=0-3", "bytes=0-1,3-4", "bytes=-"} {
		if a := s.want(200, "", s.do("GET", "/estate/key", "", "Range", ignored)); a.body != "0123456789" {
			t.Errorf("%s: %q", ignored, a.body)
		}
	}
	for _, none := range []string{"bytes=10-", "bytes=10-11", "bytes=-0"} {
		s.want(416, "InvalidRange", s.do("GET", "/estate/key", "", "Range", none))
	}
	s.want(206, "", s.do("GET", "/estate/key", "", "Range", "bytes=0-1", "If-Range", etagOf("0123456789")))
	s.want(200, "", s.do("GET", "/estate/key", "", "Range", "bytes=0-1", "If-Range", `"other"`))
}

func TestConditionalReads(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/key", "x", "X-Amz-Checksum-Crc32", "jNwWgw==")
	at := s.do("HEAD", "/estate/key", "").header.Get("Last-Modified")
	const early = "Mon, 02 Jan 2006 15:04:05 GMT"
	etag := etagOf("x")
	for _, c := range []struct {
		name, value string
		status      int
	}{
		{"If-Match", etag, 200}, {"If-Match", "*", 200}, {"If-Match", `"other"`, 412}, {"If-Match", `"other", ` + etag, 200},
		{"If-None-Match", etag, 304}, {"If-None-Match", "*", 304}, {"If-None-Match", `"other"`, 200},
		{"If-Modified-Since", at, 304}, {"If-Modified-Since", early, 200}, {"If-Unmodified-Since", at, 200}, {"If-Unmodified-Since", early, 412},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			a := s.do(method, "/estate/key", "", c.name, c.value)
			if a.status != c.status {
				t.Errorf("%s with %s: %s is %d, want %d", method, c.name, c.value, a.status, c.status)
			}
			if a.status == 304 && a.header.Get("X-Amz-Checksum-Crc32") == "" {
				t.Errorf("304 without the checksum that the real store sends")
			}
		}
	}
}

func TestCopies(t *testing.T) {
	s := start(t)
	s.versionedBucket("estate")
	s.bucket("target")
	first := s.put("/estate/a b", "first", "Content-Type", "text/plain", "X-Amz-Meta-N", "1", "X-Amz-Tagging", "k=v", "X-Amz-Checksum-Crc32", "knHuVw==")
	s.put("/estate/a b", "second")
	a := s.want(200, "", s.do("PUT", "/target/new", "", "X-Amz-Copy-Source", "/estate/a%20b?versionId="+first))
	if !strings.Contains(a.body, "&#34;"+strings.Trim(etagOf("first"), `"`)) || !strings.Contains(a.body, "<ChecksumCRC32>knHuVw==<") || a.header.Get("X-Amz-Copy-Source-Version-Id") != first {
		t.Errorf("%s %v", a.body, a.header)
	}
	h := s.do("HEAD", "/target/new", "").header
	if h.Get("X-Amz-Meta-N") != "1" || h.Get("Content-Type") != "text/plain" || h.Get("X-Amz-Tagging-Count") != "1" {
		t.Errorf("%v", h)
	}
	s.want(200, "", s.do("PUT", "/target/new", "", "X-Amz-Copy-Source", "estate/a%20b", "X-Amz-Metadata-Directive", "REPLACE", "X-Amz-Meta-M", "2", "X-Amz-Tagging-Directive", "REPLACE"))
	s.get("/target/new", "second")
	if h := s.do("HEAD", "/target/new", "").header; h.Get("X-Amz-Meta-N") != "" || h.Get("X-Amz-Meta-M") != "2" || h.Get("X-Amz-Tagging-Count") != "" {
		t.Errorf("%v", h)
	}
	s.want(400, "InvalidRequest", s.do("PUT", "/target/new", "", "X-Amz-Copy-Source", "/target/new"))
	s.want(200, "", s.do("PUT", "/target/new", "", "X-Amz-Copy-Source", "/target/new", "X-Amz-Metadata-Directive", "REPLACE"))
	s.want(404, "NoSuchKey", s.do("PUT", "/target/new", "", "X-Amz-Copy-Source", "/estate/missing"))
	s.want(404, "NoSuchBucket", s.do("PUT", "/target/new", "", "X-Amz-Copy-Source", "/missing/a"))
	s.want(404, "NoSuchVersion", s.do("PUT", "/target/new", "", "X-Amz-Copy-Source", "/estate/a%20b?versionId=1000000000000000"))
	s.want(400, "InvalidArgument", s.do("PUT", "/target/new", "", "X-Amz-Copy-Source", "estate"))
	s.want(412, "PreconditionFailed", s.do("PUT", "/target/new", "", "X-Amz-Copy-Source", "/estate/a%20b", "X-Amz-Copy-Source-If-Match", `"other"`))
	s.want(412, "PreconditionFailed", s.do("PUT", "/target/new", "", "X-Amz-Copy-Source", "/estate/a%20b", "If-None-Match", "*"))
	s.want(403, "AccessDenied", s.doAs(access+"@"+other, "PUT", "/estate/x", "", "X-Amz-Copy-Source", "/estate/a%20b"))
}

func TestCustomerKeys(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	const prefix = "X-Amz-Server-Side-Encryption-Customer-"
	header := func(key string) []string {
		return []string{prefix + "Algorithm", "AES256", prefix + "Key", b64(key), prefix + "Key-Md5", md5Of(key)}
	}
	right, wrong := strings.Repeat("k", 32), strings.Repeat("w", 32)
	s.want(200, "", s.do("PUT", "/estate/key", "x", header(right)...))
	s.want(200, "", s.do("GET", "/estate/key", "", header(right)...))
	s.want(403, "AccessDenied", s.do("GET", "/estate/key", "", header(wrong)...))
	s.want(400, "InvalidRequest", s.do("GET", "/estate/key", ""))
	s.want(400, "InvalidArgument", s.do("PUT", "/estate/key", "x", header("short")...))
	s.want(400, "InvalidRequest", s.do("PUT", "/estate/copy", "", "X-Amz-Copy-Source", "/estate/key"))
}

func TestDeletingMany(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/a", "x")
	s.put("/estate/b", "x")
	body := `<Delete><Object><Key>a</Key></Object><Object><Key>missing</Key></Object><Object><Key>b</Key><VersionId>bad</VersionId></Object></Delete>`
	s.want(400, "InvalidRequest", s.do("POST", "/estate?delete", body))
	a := s.want(200, "", s.do("POST", "/estate?delete", body, "Content-MD5", md5Of(body)))
	r := parse[struct {
		Deleted []struct{ Key string }
		Error   []struct{ Key, Code string }
	}](t, a)
	if len(r.Deleted) != 2 || len(r.Error) != 1 || r.Error[0].Key != "b" || r.Error[0].Code != "InvalidArgument" {
		t.Errorf("%+v", r)
	}
	s.get("/estate/b", "x")
	for _, bad := range []string{"<Delete></Delete>", "<Delete>", "<Other/>", "<Delete>" + strings.Repeat("<Object><Key>k</Key></Object>", 1001) + "</Delete>", "<Delete><Object><Key>a</Key><Foo/></Object></Delete>"} {
		s.want(400, "MalformedXML", s.do("POST", "/estate?delete", bad, "Content-MD5", md5Of(bad)))
	}
	names := []string{}
	for o := range s.client().ListObjects(t.Context(), "estate", listAll) {
		names = append(names, o.Key)
	}
	if !slices.Equal(names, []string{"b"}) {
		t.Errorf("%v is left", names)
	}
}
