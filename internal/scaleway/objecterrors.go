package scaleway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"bastide/internal/outcome"

	"github.com/minio/minio-go/v7"
)

// ObjectCode is the code of an answer of object storage, such as NoSuchBucket;
// "" when an error is none. It is object storage's own word: pages of others
// were sorted out before.
func ObjectCode(err error) string {
	var r minio.ErrorResponse
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}

// CannotTell reports that object storage could not be read, so that nothing may
// be concluded; what explains itself, and an interruption, pass unchanged.
func (o *ObjectStorage) CannotTell(what string, err error) error {
	if passes(err) {
		return err
	}
	why, do := o.explain(err)
	return outcome.CannotTell(what, why, strings.Replace(do, again, readAgain, 1)).Because(err)
}

// ObjectRefused says that object storage refused a call for good, with a status
// of 4xx.
func ObjectRefused(err error) bool {
	var r minio.ErrorResponse
	return errors.As(err, &r) && r.StatusCode/100 == 4
}

// Failed reports a change in object storage that did not work.
func (o *ObjectStorage) Failed(what string, err error) error {
	if passes(err) {
		return err
	}
	why, do := o.explain(err)
	return outcome.Fail(what, why, do).Because(err)
}

func passes(err error) bool {
	var told *outcome.Error
	return errors.As(err, &told) || errors.Is(err, context.Canceled)
}

// explain turns an error into the reason and what to do.
func (o *ObjectStorage) explain(err error) (why, do string) {
	var (
		nobody *unreachableError
		lost   *lostError
		denied *deniedError
		answer minio.ErrorResponse
	)
	switch {
	case errors.As(err, &nobody):
		return nobody.Error(), "check the network and " + o.where()
	case errors.Is(err, context.DeadlineExceeded):
		return err.Error(), "give it more time with --timeout, or run the command again; it continues where this one stopped"
	case errors.As(err, &lost):
		return lost.Error(), again
	case errors.As(err, &denied) && o.Project != "":
		return fmt.Sprintf("object storage answered %d %s: %s, so %s lacks the right that the permission set %s gives in the project %s, or a bucket policy shuts it out",
			denied.answer.StatusCode, denied.answer.Code, strings.TrimSuffix(denied.answer.Message, "."), o.access, denied.right, o.Project), denied.remedy()
	case errors.As(err, &answer):
		return o.refused(answer)
	}
	return err.Error(), again
}

func (o *ObjectStorage) refused(r minio.ErrorResponse) (why, do string) {
	if o.Project == "" {
		return o.refusedElsewhere(r)
	}
	why = fmt.Sprintf("object storage answered %d %s: %s", r.StatusCode, r.Code, r.Message)
	switch r.Code {
	case "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return why + ", so it does not accept " + o.access.String(), fmt.Sprintf("put a valid key into %s; nothing will work until then", orText(o.access.from, "SCW_ACCESS_KEY and SCW_SECRET_KEY"))
	case "RequestTimeTooSkewed":
		return why, "set this machine's clock right; signatures are valid for 15 minutes"
	}
	if r.StatusCode == http.StatusTooManyRequests || r.StatusCode >= 500 {
		return why, again
	}
	return why, "see in the Scaleway console what is the matter; then run the command again"
}

// where names the setting of the endpoint.
func (o *ObjectStorage) where() string {
	if o.access.endpoint == "" {
		return "that nothing between here and Scaleway, such as a proxy, is in the way"
	}
	return "object storage's address in " + o.access.endpoint
}
