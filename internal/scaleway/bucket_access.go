package scaleway

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"bastide/internal/blueprint"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// BucketAccess is how a bucket is open to whoever knows its name: by its ACL, or
// by its policy. What is granted to somebody by name is another matter.
type BucketAccess struct {
	Grants []string // of the ACL to groups of everybody, such as "AllUsers READ"
	Policy bool     // a statement of the policy lets everybody in, under a condition perhaps
	Unread bool     // the key may not read the policy, so that what it says is not known
	rest   policy   // the policy without such statements
}

// Private says that nobody gets in who is not named.
func (a BucketAccess) Private() bool { return len(a.Grants) == 0 && !a.Policy }

func (a BucketAccess) String() string {
	if a.Private() {
		return blueprint.AccessPrivate
	}
	how := a.Grants
	if a.Policy {
		how = append(how[:len(how):len(how)], "a policy lets everybody in")
	}
	return "public: " + strings.Join(how, ", ")
}

// PolicyUnread is the warning about a bucket whose policy the key may not read.
func PolicyUnread(bucket string) string {
	return fmt.Sprintf("the API key may not read the policy of the bucket %s, so whether one lets everybody in is not known; the permission set is %s", bucket, setPolicies)
}

// AccessTo reads how a bucket is open. That this key may not read the policy is
// no error, because the right to is another than that to buckets, and one that
// whoever made the key may have had reasons to leave out: it is told.
func (o *ObjectStorage) AccessTo(ctx context.Context, bucket string) (BucketAccess, error) {
	var a BucketAccess
	readings := []func(context.Context) error{
		into(&a.Grants, func(ctx context.Context) ([]string, error) { return o.grantsTo(ctx, bucket) }),
		func(ctx context.Context) error {
			text, err := o.Client.Client.GetBucketPolicy(ctx, bucket) // "" without one
			if objectCode(err, "AccessDenied") {
				a.Unread = true
				return nil
			}
			if err != nil || text == "" {
				return err
			}
			whole, err := parsePolicy([]byte(text))
			if err == nil {
				a.rest, a.Policy = whole.closed()
			}
			return err
		},
	}
	err := together(ctx, len(readings), func(ctx context.Context, i int) error { return readings[i](ctx) })
	return a, err
}

// grantsTo are the grants of a bucket's ACL to groups of everybody.
func (o *ObjectStorage) grantsTo(ctx context.Context, bucket string) (out []string, err error) {
	answer, err := o.ofACL(ctx, http.MethodGet, bucket, "")
	if err != nil {
		return nil, err
	}
	var acl struct {
		XMLName xml.Name `xml:"AccessControlPolicy"`
		Grants  []struct {
			URI        string `xml:"Grantee>URI"`
			Permission string
		} `xml:"AccessControlList>Grant"`
	}
	if err := xml.Unmarshal(answer, &acl); err != nil {
		return nil, fmt.Errorf("the answer about who may use the bucket %s is not one: %w", bucket, err)
	}
	for _, g := range acl.Grants {
		if g.URI != "" {
			out = append(out, g.URI[strings.LastIndex(g.URI, "/")+1:]+" "+g.Permission)
		}
	}
	return out, nil
}

// Close makes a bucket private: its ACL as a whole, and of its policy what lets
// everybody in.
func (o *ObjectStorage) Close(ctx context.Context, bucket string) error {
	a, err := o.AccessTo(ctx, bucket)
	if err != nil {
		return err
	}
	if len(a.Grants) > 0 {
		if _, err := o.ofACL(ctx, http.MethodPut, bucket, "private"); err != nil {
			return err
		}
	}
	if !a.Policy {
		return nil
	}
	text := "" // removes it
	if len(a.rest.statements) > 0 {
		text = a.rest.text()
	}
	return o.Client.Client.SetBucketPolicy(ctx, bucket, text)
}

// ofACL reads or sets a bucket's ACL, which the client has no call for.
func (o *ObjectStorage) ofACL(ctx context.Context, method, bucket, canned string) ([]byte, error) {
	u := url.URL{Scheme: o.Client.EndpointURL().Scheme, Host: bucket + "." + o.Client.EndpointURL().Host, Path: "/", RawQuery: "acl="}
	if o.pathStyle {
		u.Host, u.Path = o.Client.EndpointURL().Host, "/"+bucket+"/"
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	const ofNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // SHA-256
	req.Header.Set("X-Amz-Content-Sha256", ofNothing)
	if canned != "" {
		req.Header.Set("X-Amz-Acl", canned)
	}
	key, err := o.Client.GetCreds()
	if err != nil {
		return nil, err
	}
	res, err := o.network.RoundTrip(signer.SignV4(*req, key.AccessKeyID, key.SecretAccessKey, "", o.Region))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := readAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		refusal := minio.ErrorResponse{StatusCode: res.StatusCode}
		if xml.Unmarshal(answer, &refusal) != nil {
			return nil, fmt.Errorf("object storage answered %d", res.StatusCode)
		}
		refusal.StatusCode = res.StatusCode
		return nil, refusal
	}
	return answer, err
}

// policy is a bucket's policy, its parts as they were written.
type policy struct {
	document   map[string]json.RawMessage
	statements []json.RawMessage
}

func parsePolicy(text []byte) (policy, error) {
	var p policy
	if err := json.Unmarshal(text, &p.document); err != nil {
		return p, err
	}
	list, ok := p.document["Statement"]
	if !ok {
		return p, errors.New("it has no statement")
	}
	if json.Unmarshal(list, &p.statements) != nil {
		p.statements = []json.RawMessage{list} // one needs no list
	}
	return p, nil
}

// closed is the policy without what lets everybody in, and whether that is less.
func (p policy) closed() (rest policy, open bool) {
	rest.document = p.document
	for _, s := range p.statements {
		if opens(s) {
			open = true
		} else {
			rest.statements = append(rest.statements, s)
		}
	}
	return rest, open
}

// opens says that a statement allows everybody something, or everybody but some.
func opens(statement json.RawMessage) bool {
	var s struct {
		Effect       string
		Principal    any
		NotPrincipal any
	}
	return json.Unmarshal(statement, &s) == nil && s.Effect == "Allow" && (s.NotPrincipal != nil || everybody(s.Principal))
}

// everybody finds the asterisk in "*", {"SCW": "*"} and {"SCW": ["*"]}.
func everybody(principal any) bool {
	switch p := principal.(type) {
	case string:
		return p == "*"
	case []any:
		for _, one := range p {
			if everybody(one) {
				return true
			}
		}
	case map[string]any:
		for _, one := range p {
			if everybody(one) {
				return true
			}
		}
	}
	return false
}

func (p policy) text() string {
	document := map[string]any{}
	for k, v := range p.document {
		document[k] = v
	}
	document["Statement"] = p.statements
	text, _ := json.Marshal(document) // of parts that were JSON
	return string(text)
}
