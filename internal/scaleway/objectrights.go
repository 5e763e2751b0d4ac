package scaleway

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
)

// deniedError is a refusal of object storage for want of a right. The answer
// does not say which; the call does.
type deniedError struct {
	right  string // the smallest permission set that has it
	answer minio.ErrorResponse
}

func (e *deniedError) Error() string { return e.answer.Error() }
func (e *deniedError) Unwrap() error { return e.answer }

// denying makes an error of such a refusal, while the call that was refused is
// still known. The client, whose own error says less, passes it on.
type denying struct {
	next     http.RoundTripper
	protocol s3
}

func (d denying) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := d.next.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusForbidden {
		return res, err
	}
	body, err := readAll(res.Body)
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	said := minio.ErrorResponse{Code: "AccessDenied", Message: "Access Denied."} // as a HEAD means it, which has no body
	if req.Method != http.MethodHead {
		said = minio.ErrorResponse{}
		if xml.Unmarshal(body, &said) != nil || said.Code != "AccessDenied" {
			return res, nil
		}
	}
	said.StatusCode = res.StatusCode
	return nil, &deniedError{right: d.protocol.right(req), answer: said}
}

// The permission sets of object storage that give one kind of right each.
const (
	setBucketsRead   = "ObjectStorageBucketsRead"
	setBucketsWrite  = "ObjectStorageBucketsWrite"
	setBucketsDelete = "ObjectStorageBucketsDelete"
	setObjectsRead   = "ObjectStorageObjectsRead"
	setObjectsWrite  = "ObjectStorageObjectsWrite"
	setObjectsDelete = "ObjectStorageObjectsDelete"
	setPolicies      = "ObjectStorageBucketPolicyFullAccess" // which ObjectStorageFullAccess does not include
)

// right is the smallest permission set that lets a call be made, after
// Scaleway's table of S3 actions and IAM permissions.
func (s s3) right(req *http.Request) string {
	_, key := s.locate(req)
	query := req.URL.Query()
	reads := req.Method == http.MethodGet || req.Method == http.MethodHead
	switch {
	case query.Has("policy"):
		return setPolicies
	case query.Has("versions"), query.Has("uploads") && key == "", query.Has("object-lock") && reads:
		return setObjectsRead
	case query.Has("object-lock"):
		return setObjectsWrite
	case query.Has("delete"), key != "" && req.Method == http.MethodDelete && !query.Has("tagging"):
		return setObjectsDelete
	case key != "" && reads:
		return setObjectsRead
	case key != "":
		return setObjectsWrite
	case reads && s.listsObjects(req):
		return setObjectsRead
	case reads:
		return setBucketsRead
	case req.Method == http.MethodDelete && len(query) == 0:
		return setBucketsDelete
	}
	return setBucketsWrite
}

// listsObjects says that a call is about a bucket's content, which no setting is
// named for, and not about the bucket or all of them.
func (s s3) listsObjects(req *http.Request) bool {
	bucket, _ := s.locate(req)
	if bucket == "" || req.Method == http.MethodHead {
		return false
	}
	for _, setting := range []string{"location", "acl", "versioning", "lifecycle", "tagging", "cors", "website", "encryption"} {
		if req.URL.Query().Has(setting) {
			return false
		}
	}
	return true
}

// locate finds bucket and key in a call, however it is addressed.
func (s s3) locate(req *http.Request) (bucket, key string) {
	path := strings.TrimPrefix(req.URL.Path, "/")
	if name, ours := strings.CutSuffix(req.URL.Host, "."+s.host); ours {
		return name, path
	}
	bucket, key, _ = strings.Cut(path, "/")
	return bucket, key
}

// remedy is what to give a key that was refused a call.
func (e *deniedError) remedy() string {
	if e.right == setPolicies {
		return "give the key's application the permission set " + setPolicies + " in the project, which ObjectStorageFullAccess does not include"
	}
	return "give the key's application the permission set ObjectStorageFullAccess in the project (" + e.right + " is what was missing here), and see that no bucket policy shuts it out"
}
