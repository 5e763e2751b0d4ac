package scaleway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7/pkg/signer"
)

// setACL gives a bucket one of S3's ready-made ACLs by hand.
func (w *world) setACL(bucket, canned string) {
	w.Helper()
	req := must(http.NewRequestWithContext(w.Context(), http.MethodPut, w.s3+"/"+bucket+"/?acl=", nil))(w)
	req.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	req.Header.Set("X-Amz-Acl", canned)
	res := must(http.DefaultClient.Do(signer.SignV4(*req, "SCWXXXXXXXXXXXXXXXXX@"+project, "22222222-2222-4222-8222-222222222222", "", "fr-par")))(w)
	w.did(res.Body.Close())
	if res.StatusCode != http.StatusOK {
		w.Fatalf("PUT ?acl: %s", res.Status)
	}
}

// A bucket that was opened to the world by hand is seen, with how, and closed;
// what a policy gives to somebody by name is left alone.
func TestBucketsOpenedByHand(t *testing.T) {
	t.Parallel()
	e := oneNode()
	e.Services.Buckets = withServices(oneNode()).Services.Buckets
	w := newWorld(t, e)
	w.mustUp()
	const id = "staging-app"
	const named = `{"Sid":"one","Effect":"Allow","Principal":{"SCW":["project_id:` + project + `"]},"Action":"s3:*","Resource":["` + id + `","` + id + `/*"]}`
	statement := func(principal, more string) string {
		return `{"Sid":"all","Effect":"Allow","Principal":` + principal + `,"Action":"s3:GetObject","Resource":"` + id + `/*"` + more + `}`
	}
	for name, c := range map[string]struct{ acl, statements, have, left string }{
		"read by ACL":              {acl: "public-read", have: "public: AllUsers READ"},
		"read and written by ACL":  {acl: "public-read-write", have: "public: AllUsers READ, AllUsers WRITE"},
		"to all of Scaleway":       {acl: "authenticated-read", have: "public: AuthenticatedUsers READ"},
		"policy":                   {statements: statement(`"*"`, ""), have: "public: a policy lets everybody in"},
		"policy of the long form":  {statements: statement(`{"SCW":"*"}`, ""), have: "public: a policy lets everybody in"},
		"policy of a list":         {statements: statement(`{"SCW":["*"]}`, ""), have: "public: a policy lets everybody in"},
		"policy with a condition":  {statements: statement(`"*"`, `,"Condition":{"IpAddress":{"aws:SourceIp":"0.0.0.0/0"}}`), have: "public: a policy lets everybody in"},
		"both":                     {acl: "public-read", statements: statement(`"*"`, ""), have: "public: AllUsers READ, a policy lets everybody in"},
		"beside somebody named":    {statements: named + "," + statement(`"*"`, ""), have: "public: a policy lets everybody in", left: "one"},
		"to somebody named":        {statements: named, left: "one"},
		"shut by a deny statement": {statements: named + `,{"Sid":"two","Effect":"Deny","Principal":"*","Action":"s3:PutObject","Resource":"` + id + `/x"}`, left: "two"},
	} {
		if c.acl != "" {
			w.setACL(id, c.acl)
		}
		if c.statements != "" {
			w.did(w.minio().PutBucketPolicy(t.Context(), id, `{"Version":"2023-04-17","Statement":[`+c.statements+`]}`))
		}
		_, p, _, err := w.plan(t.Context(), w.cloud())
		if err != nil {
			t.Fatal(err)
		}
		have, want := "", ""
		for _, a := range p.Actions {
			for _, ch := range a.Changes {
				if a.Step.ID == "bucket/"+id && ch.Attribute == "access" {
					have, want = ch.Have, ch.Want
				}
			}
		}
		if have != c.have || c.have != "" && want != "private" {
			t.Errorf("%s: the plan says %q to %q, want %q to private", name, have, want, c.have)
		}
		w.mustUp()
		w.wantConverged()
		policy := must(w.minio().Client.GetBucketPolicy(t.Context(), id))(t)
		if strings.Contains(policy, `"all"`) || c.left == "" && policy != "" || !strings.Contains(policy, c.left) {
			t.Errorf("%s: the policy is %q", name, policy)
		}
		w.did(w.minio().Client.SetBucketPolicy(t.Context(), id, "")) // removes it
	}
}
