package scaleway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"bastide/internal/outcome"

	"github.com/scaleway/scaleway-sdk-go/scw"
)

// statusOf is the HTTP status that an untyped answer kept. The SDK drops it
// where it recognises the body's type.
func statusOf(err error) int {
	var r *scw.ResponseError
	if errors.As(err, &r) {
		return r.StatusCode
	}
	return 0
}

// notFound says that the API knows no such thing. Load balancers answer with a
// body that has no type, all others with one. A page of a proxy that says 404,
// or a bare 404, says nothing about the thing.
func notFound(err error) bool {
	var typed *scw.ResourceNotFoundError
	var r *scw.ResponseError
	return errors.As(err, &typed) || errors.As(err, &r) && r.StatusCode == http.StatusNotFound && isObject(r.RawBody)
}

func isObject(body []byte) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(body, &fields) == nil && len(fields) > 0
}

// forbidden says that the key may not do or see this.
func forbidden(err error) bool {
	var typed *scw.PermissionsDeniedError
	return errors.As(err, &typed) || statusOf(err) == http.StatusForbidden
}

// busy says that the thing is still working on another change: trying again is
// right. A conflict of another sort, such as a name that is taken, is not.
func busy(err error) bool {
	var typed *scw.TransientStateError
	var r *scw.ResponseError
	return errors.As(err, &typed) ||
		// A managed database says in PostgreSQL's words that it is busy with another change.
		errors.As(err, &r) && r.StatusCode == http.StatusConflict && strings.Contains(strings.ToLower(r.Message), "tuple concurrently updated")
}

// inUse says that something else still depends on the thing.
func inUse(err error) bool {
	var typed *scw.PreconditionFailedError
	if errors.As(err, &typed) {
		return typed.Precondition == "resource_still_in_use"
	}
	return statusOf(err) == http.StatusPreconditionFailed
}

// uncertain says that a change may or may not have been made: the answer was
// lost, cut, late, not understood, or says that the server failed. Only looking
// can tell.
func uncertain(err error) bool {
	var lost *lostError
	return errors.As(err, &lost) || statusOf(err) >= 500 && statusOf(err) != http.StatusNotImplemented || misread(err)
}

// misread says that the SDK could not decode an answer. It has no type for
// that, and loses the status.
func misread(err error) bool {
	return err != nil && strings.HasPrefix(strings.TrimPrefix(err.Error(), "scaleway-sdk-go: "), "could not parse ")
}

// passing says that the same call may well work a little later.
func passing(err error) bool {
	return uncertain(err) || busy(err) || statusOf(err) == http.StatusTooManyRequests
}

// failed reports a change that did not work. What already explains itself keeps
// its words, but no longer its claim that nothing was touched; an interruption
// passes unchanged.
func (c *Cloud) failed(what string, err error) error {
	var o *outcome.Error
	if errors.As(err, &o) {
		said := *o
		said.Code = outcome.Failed
		said.Do = strings.Replace(said.Do, readAgain, again, 1)
		return &said
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	why, do := c.explain(err)
	return outcome.Fail(what, why, do).Because(err)
}

// cannotTell reports a reading that did not work, so that nothing may be
// concluded from it.
func (c *Cloud) cannotTell(what string, err error) error {
	var o *outcome.Error
	if errors.As(err, &o) || errors.Is(err, context.Canceled) {
		return err
	}
	why, do := c.explain(err)
	return outcome.CannotTell(what, why, strings.Replace(do, again, readAgain, 1)).Because(err)
}

func orText(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
