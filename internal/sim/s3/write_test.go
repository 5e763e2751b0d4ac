package s3_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"
)

var listAll = minio.ListObjectsOptions{Recursive: true}

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestConditionalWrites(t *testing.T) {
	s := start(t)
	s.versionedBucket("estate")
	const none, match = "If-None-Match", "If-Match"
	s.want(404, "NoSuchKey", s.do("PUT", "/estate/lock", "a", match, etagOf("a")))
	s.want(200, "", s.do("PUT", "/estate/lock", "a", none, "*"))
	s.want(412, "PreconditionFailed", s.do("PUT", "/estate/lock", "b", none, "*"))
	s.want(412, "PreconditionFailed", s.do("PUT", "/estate/lock", "b", match, etagOf("b")))
	s.want(200, "", s.do("PUT", "/estate/lock", "b", match, etagOf("a")))
	s.want(501, "NotImplemented", s.do("PUT", "/estate/lock", "b", none, etagOf("a")))
	s.want(501, "NotImplemented", s.do("PUT", "/estate/lock", "b", match, "*"))
	s.want(501, "NotImplemented", s.do("DELETE", "/estate/lock", "", match, etagOf("b")))
	s.get("/estate/lock", "b")
	s.want(204, "", s.do("DELETE", "/estate/lock", ""))
	s.want(404, "NoSuchKey", s.do("PUT", "/estate/lock", "c", match, etagOf("b"))) // a delete marker is no object
	s.want(200, "", s.do("PUT", "/estate/lock", "c", none, "*"))
	var opts minio.PutObjectOptions
	opts.SetMatchETagExcept("*")
	if _, err := s.client().PutObject(t.Context(), "estate", "lock", strings.NewReader("d"), 1, opts); code(err) != "PreconditionFailed" {
		t.Errorf("minio-go: %v", err)
	}
}

func TestConditionsOnTheEndOfAnUpload(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/key", "old")
	id, etag := s.upload("/estate/key", "new")
	body := completion(etag)
	s.want(412, "PreconditionFailed", s.do("POST", "/estate/key?uploadId="+id, body, "If-None-Match", "*"))
	s.want(412, "PreconditionFailed", s.do("POST", "/estate/key?uploadId="+id, body, "If-Match", `"other"`))
	s.get("/estate/key", "old")
	s.want(200, "", s.do("POST", "/estate/key?uploadId="+id, body, "If-Match", etagOf("old")))
	s.get("/estate/key", "new")
	// Beginning an upload takes no condition: only its end does.
	s.want(200, "", s.do("POST", "/estate/key?uploads", "", "If-None-Match", "*"))
}

// upload begins an upload and puts its only part.
func (s *store) upload(path, content string) (id, etag string) {
	s.t.Helper()
	a := s.want(200, "", s.do("POST", path+"?uploads", ""))
	id = parse[struct{ UploadId string }](s.t, a).UploadId
	return id, s.part(path, id, 1, content)
}

func (s *store) part(path, id string, n int, content string) string {
	s.t.Helper()
	return s.want(200, "", s.do("PUT", fmt.Sprintf("%s?partNumber=%d&uploadId=%s", path, n, id), content)).header.Get("ETag")
}

// completion lists parts by their ETags.
func completion(etags ...string) string {
	var b strings.Builder
	b.WriteString("<CompleteMultipartUpload>")
	for i, e := range etags {
		fmt.Fprintf(&b, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i+1, e)
	}
	return b.String() + "</CompleteMultipartUpload>"
}

// TestOneWriterWins lets many writers race for a key: exactly one may create it,
// and of those who replace what they read exactly one may.
func TestOneWriterWins(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	for _, c := range []struct{ name, value string }{{"If-None-Match", "*"}, {"If-Match", etagOf("won")}} {
		var mu sync.Mutex
		var wg sync.WaitGroup
		statuses := map[int]int{}
		for i := range 16 {
			wg.Go(func() {
				body := fmt.Sprintf("writer %d", i)
				if c.name == "If-None-Match" {
					body = "won"
				}
				a := s.do("PUT", "/estate/lock", body, c.name, c.value)
				mu.Lock()
				defer mu.Unlock()
				statuses[a.status]++
			})
		}
		wg.Wait()
		if statuses[200] != 1 || statuses[412] != 15 {
			t.Errorf("%s: %v", c.name, statuses)
		}
	}
}

// TestFilesGoWithTheirObjects: content is in files, and none is left that
// nothing refers to, whether calls succeed or are refused.
func TestFilesGoWithTheirObjects(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	files := func(want int, after string) {
		t.Helper()
		found, err := os.ReadDir(filepath.Join(s.dir, "objects"))
		if err != nil || len(found) != want {
			t.Errorf("%d files after %s, want %d (%v)", len(found), after, want, err)
		}
	}
	s.put("/estate/key", "one")
	s.put("/estate/key", "two")
	files(1, "an object was replaced")
	s.want(400, "BadDigest", s.do("PUT", "/estate/key", "x", "Content-MD5", md5Of("y")))
	s.want(412, "PreconditionFailed", s.do("PUT", "/estate/key", "x", "If-None-Match", "*"))
	s.want(412, "PreconditionFailed", s.do("PUT", "/estate/key", "", "X-Amz-Copy-Source", "/estate/key", "X-Amz-Metadata-Directive", "REPLACE", "If-None-Match", "*"))
	files(1, "writes were refused")
	id, etag := s.upload("/estate/key", "part")
	s.part("/estate/key", id, 1, "part")
	s.part("/estate/key", id, 2, "unused")
	files(3, "parts were put")
	s.want(200, "", s.do("POST", "/estate/key?uploadId="+id, completion(etag)))
	files(1, "the upload ended")
	id, _ = s.upload("/estate/key", "part")
	s.want(204, "", s.do("DELETE", "/estate/key?uploadId="+id, ""))
	s.want(204, "", s.do("DELETE", "/estate/key", ""))
	files(0, "everything was deleted")
	s.put("/estate/key", "x")
	s.server.Reset()
	files(0, "a reset")
}

// TestReadersSeeWholeObjects reads while others replace and delete.
func TestReadersSeeWholeObjects(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	contents := [2]string{strings.Repeat("a", 1<<16), strings.Repeat("b", 1<<16)}
	s.put("/estate/key", contents[0])
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for range 20 {
				s.do("PUT", "/estate/key", contents[w])
			}
		})
		wg.Go(func() {
			for range 20 {
				if a := s.do("GET", "/estate/key", ""); a.status != 200 || (a.body != contents[0] && a.body != contents[1]) || a.header.Get("ETag") != etagOf(a.body) {
					t.Errorf("%d, %d bytes, %s", a.status, len(a.body), a.header.Get("ETag"))
				}
			}
		})
	}
	wg.Wait()
}

// TestCallsAtOnce has no expectation but that the race detector stays silent and
// that every call is answered: all kinds of calls on one key at the same time.
func TestCallsAtOnce(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/key", "x")
	var wg sync.WaitGroup
	for _, c := range [][4]string{
		{"PUT", "/estate/key", "y", ""}, {"GET", "/estate/key", "", ""}, {"HEAD", "/estate/key", "", ""}, {"DELETE", "/estate/key", "", ""},
		{"PUT", "/estate/copy", "", "/estate/key"}, {"PUT", "/estate/key?tagging", "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>", ""},
		{"PUT", "/estate?versioning", "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>", ""}, {"GET", "/estate?versions", "", ""},
		{"PUT", "/estate?versioning", "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>", ""}, {"GET", "/estate", "", ""},
		{"POST", "/estate/key?uploads", "", ""}, {"GET", "/estate?uploads", "", ""},
	} {
		wg.Go(func() {
			for range 10 {
				header := []string{}
				if c[3] != "" {
					header = append(header, "X-Amz-Copy-Source", c[3])
				}
				if a := s.do(c[0], c[1], c[2], header...); a.status >= 300 && a.status != 404 {
					t.Errorf("%s: %d %s", a.what, a.status, a.body)
				}
			}
		})
	}
	wg.Wait()
}

func TestVersions(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/key", "before") // the null version
	s.want(200, "", s.do("PUT", "/estate?versioning", `<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status></VersioningConfiguration>`))
	one, two := s.put("/estate/key", "one"), s.put("/estate/key", "two")
	if one == "" || one == two || len(one) != 16 {
		t.Fatalf("versions %q and %q", one, two)
	}
	a := s.want(204, "", s.do("DELETE", "/estate/key", ""))
	gone := a.header.Get("X-Amz-Version-Id")
	if a.header.Get("X-Amz-Delete-Marker") != "true" || gone == "" {
		t.Errorf("%v", a.header)
	}
	if a := s.want(404, "NoSuchKey", s.do("GET", "/estate/key", "")); a.header.Get("X-Amz-Delete-Marker") != "true" {
		t.Errorf("%v", a.header)
	}
	s.want(405, "MethodNotAllowed", s.do("GET", "/estate/key?versionId="+gone, ""))
	s.want(404, "NoSuchVersion", s.do("GET", "/estate/key?versionId=1000000000000000", ""))
	s.want(400, "InvalidArgument", s.do("GET", "/estate/key?versionId=bad", ""))
	s.get("/estate/key?versionId=null", "before")
	s.get("/estate/key?versionId="+one, "one")
	s.want(409, "BucketNotEmpty", s.do("DELETE", "/estate", ""))
	list := s.do("GET", "/estate?versions", "").body
	if strings.Count(list, "<Version>") != 3 || strings.Count(list, "<DeleteMarker>") != 1 || strings.Count(list, "<IsLatest>true") != 1 || strings.Index(list, "<DeleteMarker>") > strings.Index(list, "<Version>") {
		t.Errorf("%s", list)
	}
	if a := s.want(204, "", s.do("DELETE", "/estate/key?versionId="+gone, "")); a.header.Get("X-Amz-Delete-Marker") != "true" {
		t.Errorf("%v", a.header)
	}
	s.get("/estate/key", "two")

	s.want(200, "", s.do("PUT", "/estate?versioning", `<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>`))
	if v := s.put("/estate/key", "suspended"); v != "null" {
		t.Errorf("version %q", v)
	}
	s.get("/estate/key?versionId=null", "suspended") // and "before" is gone
	if a := s.want(204, "", s.do("DELETE", "/estate/key", "")); a.header.Get("X-Amz-Version-Id") != "null" {
		t.Errorf("%v", a.header)
	}
	s.want(405, "MethodNotAllowed", s.do("GET", "/estate/key?versionId=null", ""))
	for _, v := range []string{"null", two, one} {
		s.want(204, "", s.do("DELETE", "/estate/key?versionId="+v, ""))
	}
	s.want(204, "", s.do("DELETE", "/estate", ""))
	s.want(404, "NoSuchBucket", s.do("GET", "/estate", ""))
}

func TestVersionsWithMinio(t *testing.T) {
	s := start(t)
	s.versionedBucket("estate")
	for i := range 3 {
		s.put("/estate/dir/key", fmt.Sprint(i))
	}
	s.do("DELETE", "/estate/dir/key", "")
	c, n := s.client(), 0
	objects := c.ListObjects(t.Context(), "estate", minio.ListObjectsOptions{Recursive: true, WithVersions: true, MaxKeys: 2})
	for e := range c.RemoveObjects(t.Context(), "estate", counted(objects, &n), minio.RemoveObjectsOptions{}) {
		t.Errorf("%s %s: %v", e.ObjectName, e.VersionID, e.Err)
	}
	if n != 4 {
		t.Errorf("%d versions and markers were listed", n)
	}
	if err := c.RemoveBucket(t.Context(), "estate"); err != nil {
		t.Error(err)
	}
}

// counted passes objects on and counts them.
func counted(in <-chan minio.ObjectInfo, n *int) <-chan minio.ObjectInfo {
	out := make(chan minio.ObjectInfo)
	go func() {
		defer close(out)
		for o := range in {
			*n++
			out <- o
		}
	}()
	return out
}

var (
	putTagging    = minio.PutObjectTaggingOptions{}
	getTagging    = minio.GetObjectTaggingOptions{}
	removeTagging = minio.RemoveObjectTaggingOptions{}
)
