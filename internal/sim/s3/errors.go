package s3

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net/http"
	"time"
)

// refusal is an error that the store answers with. Codes and messages are those
// of the recordings where they have one, else of the S3 reference.
type refusal struct {
	status  int
	code    string
	message string
	detail  []detail    // further elements of the error's body
	header  http.Header // further headers of the answer
}

type detail struct {
	XMLName xml.Name
	Value   string `xml:",chardata"`
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// with adds an element to the error's body.
func (r *refusal) with(name, value string) *refusal {
	r.detail = append(r.detail, detail{xml.Name{Local: name}, value})
	return r
}

// heading adds a header to the answer.
func (r *refusal) heading(name, value string) *refusal {
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Set(name, value)
	return r
}

func badRequest(code, format string, args ...any) *refusal {
	return refuse(http.StatusBadRequest, code, format, args...)
}

func invalidArgument(format string, args ...any) *refusal {
	return badRequest("InvalidArgument", format, args...)
}

func invalidRequest(format string, args ...any) *refusal {
	return badRequest("InvalidRequest", format, args...)
}

func malformedXML() *refusal {
	return badRequest("MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema")
}

func notImplemented(what string) *refusal {
	return refuse(http.StatusNotImplemented, "NotImplemented", "%s implies functionality that is not implemented", what)
}

func accessDenied(format string, args ...any) *refusal {
	return refuse(http.StatusForbidden, "AccessDenied", format, args...)
}

func notFound(code, format string, args ...any) *refusal {
	return refuse(http.StatusNotFound, code, format, args...)
}

func noSuchBucket() *refusal {
	return notFound("NoSuchBucket", "The specified bucket does not exist")
}

func noSuchKey(key string) *refusal {
	return notFound("NoSuchKey", "The specified key does not exist.").with("Key", key)
}

func noSuchUpload() *refusal {
	return notFound("NoSuchUpload", "The specified multipart upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.")
}

func preconditionFailed(condition string) *refusal {
	return refuse(http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold").with("Condition", condition)
}

type errorBody struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	RequestID string `xml:"RequestId"`
	HostID    string `xml:"HostId"`
	Resource  string
	Detail    []detail
}

// newRequestID has the recorded form: txg, twenty hexadecimal digits, the time.
func newRequestID() string {
	return fmt.Sprintf("txg%s-%010x", randomHex(10), time.Now().Unix())
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// answer turns an error into a reply. What is no refusal is the simulator's own
// fault and said so.
func (r *refusal) reply(resource, requestID string) *reply {
	out := newReply(r.status)
	for k, v := range r.header {
		out.header[k] = v
	}
	body, err := xml.Marshal(errorBody{Code: r.code, Message: r.message, RequestID: requestID, HostID: requestID, Resource: resource, Detail: r.detail})
	if err != nil {
		body = nil // cannot be: all are strings
	}
	out.header.Set("Content-Type", "application/xml")
	out.body = body
	return out
}
