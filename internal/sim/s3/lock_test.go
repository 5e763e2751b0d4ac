package s3_test

import (
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
)

const bypass = "X-Amz-Bypass-Governance-Retention"

func TestObjectLock(t *testing.T) {
	s := start(t)
	s.bucket("locked", "X-Amz-Bucket-Object-Lock-Enabled", "true")
	if a := s.want(200, "", s.do("GET", "/locked?versioning", "")); !strings.Contains(a.body, "<Status>Enabled") {
		t.Errorf("%s", a.body)
	}
	s.want(409, "InvalidBucketState", s.do("PUT", "/locked?versioning", `<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>`))
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	governed := []string{"Content-MD5", md5Of("x"), "X-Amz-Object-Lock-Mode", "GOVERNANCE", "X-Amz-Object-Lock-Retain-Until-Date", until}
	s.want(400, "InvalidRequest", s.do("PUT", "/locked/key", "x", governed[2:]...)) // without a digest
	v := s.put("/locked/key", "x", governed...)
	s.want(403, "AccessDenied", s.do("DELETE", "/locked/key?versionId="+v, ""))
	s.want(204, "", s.do("DELETE", "/locked/key", "")) // a marker may always be put on top
	s.want(403, "AccessDenied", s.do("DELETE", "/locked/key?versionId="+v, ""))
	body := `<Delete><Object><Key>key</Key><VersionId>` + v + `</VersionId></Object></Delete>`
	if a := s.want(200, "", s.do("POST", "/locked?delete", body, "Content-MD5", md5Of(body))); !strings.Contains(a.body, "<Code>AccessDenied</Code>") {
		t.Errorf("%s", a.body)
	}
	s.want(204, "", s.do("DELETE", "/locked/key?versionId="+v, "", bypass, "true"))

	complied := append([]string{}, governed...)
	complied[3] = "COMPLIANCE"
	v = s.put("/locked/key", "x", complied...)
	s.want(403, "AccessDenied", s.do("DELETE", "/locked/key?versionId="+v, "", bypass, "true"))

	v = s.put("/locked/held", "x", "Content-MD5", md5Of("x"), "X-Amz-Object-Lock-Legal-Hold", "ON")
	s.want(403, "AccessDenied", s.do("DELETE", "/locked/held?versionId="+v, "", bypass, "true"))
	s.want(200, "", s.do("PUT", "/locked/held?legal-hold&versionId="+v, "<LegalHold><Status>OFF</Status></LegalHold>"))
	s.want(204, "", s.do("DELETE", "/locked/held?versionId="+v, ""))
}

func TestABypassWithoutALock(t *testing.T) {
	s := start(t)
	s.versionedBucket("estate")
	v := s.put("/estate/key", "x")
	s.want(400, "InvalidArgument", s.do("DELETE", "/estate/key?versionId="+v, "", bypass, "true"))
	body := `<Delete><Object><Key>key</Key></Object></Delete>`
	s.want(400, "InvalidArgument", s.do("POST", "/estate?delete", body, bypass, "true", "Content-MD5", md5Of(body)))
	s.want(404, "ObjectLockConfigurationNotFoundError", s.do("GET", "/estate?object-lock", ""))
	s.want(409, "InvalidBucketState", s.do("PUT", "/estate?object-lock", "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>"))
	s.want(400, "InvalidRequest", s.do("GET", "/estate/key?retention", ""))
	s.want(400, "InvalidRequest", s.do("PUT", "/estate/key?legal-hold", "<LegalHold><Status>ON</Status></LegalHold>"))
	s.want(400, "InvalidRequest", s.do("PUT", "/estate/key", "x", "X-Amz-Object-Lock-Legal-Hold", "ON"))
	s.get("/estate/key", "x")
}

func TestRetentionOnlyGrowsStricter(t *testing.T) {
	s := start(t)
	s.bucket("locked", "X-Amz-Bucket-Object-Lock-Enabled", "true")
	v := s.put("/locked/key", "x")
	s.want(404, "NoSuchObjectLockConfiguration", s.do("GET", "/locked/key?retention", ""))
	set := func(mode string, in time.Duration, header ...string) answer {
		until := time.Now().Add(in).UTC().Format(time.RFC3339)
		return s.do("PUT", "/locked/key?retention&versionId="+v, "<Retention><Mode>"+mode+"</Mode><RetainUntilDate>"+until+"</RetainUntilDate></Retention>", header...)
	}
	s.want(400, "InvalidArgument", set("GOVERNANCE", -time.Hour))
	s.want(400, "MalformedXML", set("FOREVER", time.Hour))
	s.want(200, "", set("GOVERNANCE", 2*time.Hour))
	s.want(403, "AccessDenied", set("GOVERNANCE", time.Hour))
	s.want(200, "", set("GOVERNANCE", time.Hour, bypass, "true"))
	s.want(403, "AccessDenied", s.do("PUT", "/locked/key?retention&versionId="+v, "<Retention></Retention>"))
	s.want(200, "", set("COMPLIANCE", 2*time.Hour))
	s.want(403, "AccessDenied", set("COMPLIANCE", time.Hour, bypass, "true"))
	s.want(403, "AccessDenied", set("GOVERNANCE", 3*time.Hour, bypass, "true"))
	if a := s.want(200, "", s.do("GET", "/locked/key?retention", "")); !strings.Contains(a.body, "<Mode>COMPLIANCE</Mode>") {
		t.Errorf("%s", a.body)
	}
}

func TestDefaultRetention(t *testing.T) {
	s := start(t)
	s.bucket("locked", "X-Amz-Bucket-Object-Lock-Enabled", "true")
	for _, bad := range []string{"<Mode>GOVERNANCE</Mode>", "<Mode>X</Mode><Days>1</Days>", "<Mode>GOVERNANCE</Mode><Days>1</Days><Years>1</Years>"} {
		s.want(400, "MalformedXML", s.do("PUT", "/locked?object-lock", "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>"+bad+"</DefaultRetention></Rule></ObjectLockConfiguration>"))
	}
	days, mode, unit := uint(1), minio.Governance, minio.Days
	if err := s.client().SetObjectLockConfig(t.Context(), "locked", &mode, &days, &unit); err != nil {
		t.Fatal(err)
	}
	info, err := s.client().PutObject(t.Context(), "locked", "key", strings.NewReader("x"), 1, minio.PutObjectOptions{SendContentMd5: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.client().RemoveObject(t.Context(), "locked", "key", minio.RemoveObjectOptions{VersionID: info.VersionID}); code(err) != "AccessDenied" {
		t.Errorf("a locked version is deleted: %v", err)
	}
	if err := s.client().RemoveObject(t.Context(), "locked", "key", minio.RemoveObjectOptions{VersionID: info.VersionID, GovernanceBypass: true}); err != nil {
		t.Error(err)
	}
}
