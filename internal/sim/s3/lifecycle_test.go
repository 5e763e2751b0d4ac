package s3_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// aDayIn100ms is a region in which the days of lifecycle rules pass quickly.
const aDayIn100ms = float64(24*time.Hour) / float64(100*time.Millisecond)

func (s *store) rule(bucket, rule string) {
	s.t.Helper()
	s.want(200, "", s.do("PUT", "/"+bucket+"?lifecycle", "<LifecycleConfiguration><Rule><Status>Enabled</Status>"+rule+"</Rule></LifecycleConfiguration>"))
}

func (s *store) bytes(bucket string) (objects, versions, uploads int) {
	for _, b := range s.server.Buckets() {
		if b.Name == bucket {
			return b.Objects, b.Versions, b.Uploads
		}
	}
	return 0, 0, 0
}

func TestObjectsExpire(t *testing.T) {
	s := startAt(t, aDayIn100ms)
	s.bucket("estate")
	s.rule("estate", "<Filter><And><Prefix>tmp/</Prefix><Tag><Key>k</Key><Value>v</Value></Tag></And></Filter><Expiration><Days>1</Days></Expiration>")
	s.put("/estate/tmp/a", "x", "X-Amz-Tagging", "k=v")
	s.put("/estate/tmp/b", "x", "X-Amz-Tagging", "k=other")
	s.put("/estate/kept", "x", "X-Amz-Tagging", "k=v")
	eventually(t, "the object expires", func() bool { return s.do("HEAD", "/estate/tmp/a", "").status == 404 })
	s.get("/estate/tmp/b", "x")
	s.get("/estate/kept", "x")
}

func TestDisabledAndLaterRulesDoNothing(t *testing.T) {
	s := startAt(t, aDayIn100ms)
	s.bucket("estate")
	s.want(200, "", s.do("PUT", "/estate?lifecycle", `<LifecycleConfiguration>
		<Rule><Status>Disabled</Status><Prefix>a</Prefix><Expiration><Days>1</Days></Expiration></Rule>
		<Rule><Status>Enabled</Status><Prefix>b</Prefix><Expiration><Days>36500</Days></Expiration></Rule>
		<Rule><Status>Enabled</Status><Prefix>c</Prefix><Expiration><Date>2099-01-01T00:00:00Z</Date></Expiration></Rule>
		<Rule><Status>Enabled</Status><Prefix>z</Prefix><Expiration><Days>1</Days></Expiration></Rule>
	</LifecycleConfiguration>`))
	for _, k := range []string{"a", "b", "c", "z"} {
		s.put("/estate/"+k, "x")
	}
	eventually(t, "the last object expires", func() bool { return s.do("HEAD", "/estate/z", "").status == 404 })
	for _, k := range []string{"a", "b", "c"} {
		s.get("/estate/"+k, "x")
	}
}

func TestVersionsExpire(t *testing.T) {
	s := startAt(t, aDayIn100ms)
	s.versionedBucket("estate")
	for i := range 4 {
		s.put("/estate/key", fmt.Sprint(i))
	}
	s.rule("estate", "<Filter/><NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>1</NewerNoncurrentVersions></NoncurrentVersionExpiration>")
	eventually(t, "all but two versions go", func() bool { _, v, _ := s.bytes("estate"); return v == 2 })
	s.get("/estate/key", "3")
	s.rule("estate", "<Filter/><Expiration><Days>1</Days></Expiration>")
	eventually(t, "a delete marker is put on top", func() bool { return s.do("HEAD", "/estate/key", "").status == 404 })
	if o, v, _ := s.bytes("estate"); o != 0 || v != 3 {
		t.Errorf("%d objects, %d versions", o, v)
	}
	s.rule("estate", "<Filter/><Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration><NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>")
	eventually(t, "the marker goes with the last version", func() bool { _, v, _ := s.bytes("estate"); return v == 0 })
	s.want(204, "", s.do("DELETE", "/estate", ""))
}

func TestUploadsExpire(t *testing.T) {
	s := startAt(t, aDayIn100ms)
	s.bucket("estate")
	id, etag := s.upload("/estate/key", "x")
	s.rule("estate", "<Filter/><AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>")
	eventually(t, "the upload is aborted", func() bool { _, _, u := s.bytes("estate"); return u == 0 })
	s.want(404, "NoSuchUpload", s.do("POST", "/estate/key?uploadId="+id, completion(etag)))
}

func TestLockedVersionsDoNotExpire(t *testing.T) {
	s := startAt(t, aDayIn100ms)
	s.bucket("locked", "X-Amz-Bucket-Object-Lock-Enabled", "true")
	until := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	v := s.put("/locked/key", "kept", "Content-MD5", md5Of("kept"), "X-Amz-Object-Lock-Mode", "GOVERNANCE", "X-Amz-Object-Lock-Retain-Until-Date", until)
	s.put("/locked/key", "free")
	s.put("/locked/key", "newest")
	s.rule("locked", "<Filter/><NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>")
	eventually(t, "the free version goes", func() bool { _, n, _ := s.bytes("locked"); return n == 2 })
	s.get("/locked/key?versionId="+v, "kept")
	if a := s.do("GET", "/locked?versions", ""); strings.Count(a.body, "<Version>") != 2 {
		t.Errorf("%s", a.body)
	}
}
