package s3_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7/pkg/cors"
	"github.com/minio/minio-go/v7/pkg/lifecycle"
	"github.com/minio/minio-go/v7/pkg/sse"
	"github.com/minio/minio-go/v7/pkg/tags"
)

// TestWhatIsNotSet knows the exact code for each setting that a bucket does not
// have, of an existing and of a missing bucket.
func TestWhatIsNotSet(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	for sub, code := range map[string]string{"tagging": "NoSuchTagSet", "cors": "NoSuchCORSConfiguration", "lifecycle": "NoSuchLifecycleConfiguration",
		"policy": "NoSuchBucketPolicy", "website": "NoSuchWebsiteConfiguration", "encryption": "ServerSideEncryptionConfigurationNotFoundError",
		"object-lock": "ObjectLockConfigurationNotFoundError"} {
		s.want(404, code, s.do("GET", "/estate?"+sub, ""))
		s.want(404, "NoSuchBucket", s.do("GET", "/missing?"+sub, ""))
		s.want(404, "NoSuchBucket", s.do("PUT", "/missing?"+sub, "<A/>"))
		want := "MalformedXML"
		if sub == "policy" {
			want = "MalformedPolicy"
		}
		for _, bad := range []string{"", "<Unknown/>", "<Tagging>", "no XML"} {
			s.want(400, want, s.do("PUT", "/estate?"+sub, bad))
		}
		if sub != "object-lock" {
			s.want(204, "", s.do("DELETE", "/estate?"+sub, ""))
		}
	}
	if a := s.want(200, "", s.do("GET", "/estate?versioning", "")); !strings.HasSuffix(a.body, "<VersioningConfiguration><Status></Status></VersioningConfiguration>") {
		t.Errorf("%s", a.body)
	}
}

func TestSettingsComeBack(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	c, ctx := s.client(), t.Context()
	set, err := tags.NewTags(map[string]string{"estate": "staging", "owner": "bastide"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetBucketTagging(ctx, "estate", set); err != nil {
		t.Error(err)
	}
	if got, err := c.GetBucketTagging(ctx, "estate"); err != nil || got.ToMap()["estate"] != "staging" {
		t.Errorf("%v, %v", got, err)
	}
	rules := lifecycle.NewConfiguration()
	rules.Rules = []lifecycle.Rule{
		{ID: "uploads", Status: "Enabled", RuleFilter: lifecycle.Filter{Prefix: "backup/"}, AbortIncompleteMultipartUpload: lifecycle.AbortIncompleteMultipartUpload{DaysAfterInitiation: 7}},
		{ID: "old", Status: "Enabled", Expiration: lifecycle.Expiration{Days: 30}, NoncurrentVersionExpiration: lifecycle.NoncurrentVersionExpiration{NoncurrentDays: 10}},
	}
	if err := c.SetBucketLifecycle(ctx, "estate", rules); err != nil {
		t.Error(err)
	}
	if got, err := c.GetBucketLifecycle(ctx, "estate"); err != nil || len(got.Rules) != 2 || got.Rules[1].Expiration.Days != 30 || got.Rules[0].RuleFilter.Prefix != "backup/" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := c.SetBucketCors(ctx, "estate", cors.NewConfig([]cors.Rule{{AllowedMethod: []string{"GET"}, AllowedOrigin: []string{"https://*.example.com"}, MaxAgeSeconds: 60}})); err != nil {
		t.Error(err)
	}
	if got, err := c.GetBucketCors(ctx, "estate"); err != nil || len(got.CORSRules) != 1 || got.CORSRules[0].MaxAgeSeconds != 60 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := c.SetBucketEncryption(ctx, "estate", sse.NewConfigurationSSES3()); err != nil {
		t.Error(err)
	}
	if got, err := c.GetBucketEncryption(ctx, "estate"); err != nil || got.Rules[0].Apply.SSEAlgorithm != "AES256" {
		t.Errorf("%+v, %v", got, err)
	}
	s.put("/estate/key", "x")
	if h := s.do("HEAD", "/estate/key", "").header; h.Get("X-Amz-Server-Side-Encryption") != "AES256" {
		t.Errorf("%v", h)
	}
	s.want(400, "InvalidArgument", s.do("PUT", "/estate?encryption", `<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><KMSMasterKeyID>k</KMSMasterKeyID><SSEAlgorithm>aws:kms</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>`))
	if err := c.PutObjectTagging(ctx, "estate", "key", set, putTagging); err != nil {
		t.Error(err)
	}
	if got, err := c.GetObjectTagging(ctx, "estate", "key", getTagging); err != nil || got.ToMap()["owner"] != "bastide" {
		t.Errorf("%v, %v", got, err)
	}
	if err := c.RemoveObjectTagging(ctx, "estate", "key", removeTagging); err != nil {
		t.Error(err)
	}
}

func TestBadLifecycles(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	for rule, code := range map[string]string{
		``: "MalformedXML",
		`<Rule><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>`:                                                                                "MalformedXML",
		`<Rule><Filter/><Status>On</Status><Expiration><Days>1</Days></Expiration></Rule>`:                                                                            "MalformedXML",
		`<Rule><Filter/><Prefix/><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>`:                                                              "MalformedXML",
		`<Rule><Filter/><Status>Enabled</Status><Expiration></Expiration></Rule>`:                                                                                     "MalformedXML",
		`<Rule><Filter/><Status>Enabled</Status><Expiration><Days>1</Days><Date>2030-01-01T00:00:00Z</Date></Expiration></Rule>`:                                      "MalformedXML",
		`<Rule><Filter/><Status>Enabled</Status><Expires><Days>1</Days></Expires></Rule>`:                                                                             "MalformedXML",
		`<Rule><Filter/><Status>Enabled</Status></Rule>`:                                                                                                              "InvalidRequest",
		`<Rule><Filter/><Status>Enabled</Status><Expiration><Days>0</Days></Expiration></Rule>`:                                                                       "InvalidArgument",
		`<Rule><Filter/><Status>Enabled</Status><Expiration><Date>2030-01-01T10:00:00Z</Date></Expiration></Rule>`:                                                    "InvalidArgument",
		`<Rule><Filter/><Status>Enabled</Status><AbortIncompleteMultipartUpload><DaysAfterInitiation>0</DaysAfterInitiation></AbortIncompleteMultipartUpload></Rule>`: "InvalidArgument",
		strings.Repeat(`<Rule><ID>a</ID><Filter/><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>`, 2):                                          "InvalidArgument",
	} {
		s.want(400, code, s.do("PUT", "/estate?lifecycle", "<LifecycleConfiguration>"+rule+"</LifecycleConfiguration>"))
	}
}

func TestAccessForOthers(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/private", "x")
	s.put("/estate/public", "x", "X-Amz-Acl", "public-read")
	s.put("/estate/keyed", "x", "X-Amz-Acl", "authenticated-read")
	anonymous := func(method, path string) answer {
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		return s.send(r)
	}
	stranger := access + "@" + other
	s.want(403, "AccessDenied", anonymous("GET", "/estate/private"))
	s.want(200, "", anonymous("GET", "/estate/public"))
	s.want(403, "AccessDenied", anonymous("GET", "/estate/keyed"))
	s.want(200, "", s.doAs(stranger, "GET", "/estate/keyed", ""))
	s.want(403, "AccessDenied", s.doAs(stranger, "GET", "/estate/private", ""))
	s.want(403, "AccessDenied", s.doAs(stranger, "PUT", "/estate/new", "x"))
	s.want(403, "AccessDenied", anonymous("GET", "/estate"))
	s.want(200, "", s.do("PUT", "/estate?acl", "", "X-Amz-Acl", "public-read"))
	s.want(200, "", anonymous("GET", "/estate"))
	if a := s.do("GET", "/estate?acl", ""); strings.Count(a.body, "<Grant>") != 2 || !strings.Contains(a.body, "groups/global/AllUsers") {
		t.Errorf("%s", a.body)
	}
	s.want(400, "InvalidArgument", s.do("PUT", "/estate?acl", "", "X-Amz-Acl", "everyone"))
	s.want(200, "", s.do("PUT", "/estate?acl", `<AccessControlPolicy><Owner><ID>a</ID></Owner><AccessControlList><Grant><Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser"><ID>`+other+":"+other+`</ID></Grantee><Permission>WRITE</Permission></Grant></AccessControlList></AccessControlPolicy>`))
	s.want(200, "", s.doAs(stranger, "PUT", "/estate/new", "x"))
	s.want(403, "AccessDenied", anonymous("GET", "/estate"))
}

func TestPolicies(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/shared/a", "x")
	stranger := access + "@" + other
	set := func(statement string) answer {
		return s.do("PUT", "/estate?policy", `{"Version":"2023-04-17","Id":"p","Statement":[`+statement+`]}`)
	}
	s.want(200, "", set(`{"Effect":"Allow","Principal":{"SCW":"project_id:`+other+`"},"Action":["s3:PutObject","s3:GetObject"],"Resource":["estate/shared/*"]}`))
	s.want(200, "", s.doAs(stranger, "GET", "/estate/shared/a", ""))
	s.want(200, "", s.doAs(stranger, "PUT", "/estate/shared/b", "x"))
	s.want(403, "AccessDenied", s.doAs(stranger, "DELETE", "/estate/shared/b", ""))
	s.want(403, "AccessDenied", s.doAs(stranger, "GET", "/estate?policy", ""))
	if a := s.want(200, "", s.do("GET", "/estate?policy", "")); !strings.Contains(a.body, `"Action":["s3:GetObject","s3:PutObject"]`) {
		t.Errorf("%s", a.body)
	}
	s.want(200, "", set(`{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":["estate","estate/*"]}`))
	s.want(403, "AccessDenied", s.do("GET", "/estate/shared/a", ""))
	s.want(403, "AccessDenied", s.do("GET", "/estate", ""))
	s.want(204, "", s.do("DELETE", "/estate?policy", "")) // the owner can get out of it
	s.want(200, "", s.do("GET", "/estate", ""))
	for _, bad := range []string{`{}`, `{"Effect":"Maybe","Principal":"*","Action":"s3:*","Resource":"estate"}`, `{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"other"}`,
		`{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"s3:*","Resource":"estate"}`, `{"Effect":"Allow","Principal":"*","Action":"ec2:*","Resource":"estate"}`, `{"Efect":"Allow"}`} {
		s.want(400, "MalformedPolicy", set(bad))
	}
}

func TestCrossOrigin(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	s.put("/estate/key", "x")
	preflight := func(origin string) answer {
		r, err := http.NewRequestWithContext(t.Context(), "OPTIONS", s.url+"/estate/key", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", "PUT")
		return s.send(r)
	}
	s.want(403, "AccessForbidden", preflight("https://app.example.com"))
	s.want(200, "", s.do("PUT", "/estate?cors", `<CORSConfiguration><CORSRule><AllowedMethod>PUT</AllowedMethod><AllowedMethod>GET</AllowedMethod><AllowedOrigin>https://*.example.com</AllowedOrigin></CORSRule></CORSConfiguration>`))
	s.want(200, "", preflight("https://app.example.com"))
	s.want(403, "AccessForbidden", preflight("https://example.org"))
	if a := s.do("GET", "/estate/key", "", "Origin", "https://app.example.com"); a.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
		t.Errorf("%v", a.header)
	}
	s.want(400, "InvalidRequest", s.do("PUT", "/estate?cors", `<CORSConfiguration><CORSRule><AllowedMethod>PATCH</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>`))
}
