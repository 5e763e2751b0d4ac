package scaleway

import (
	"context"
	"errors"
	"fmt"
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
// body that has no type, all others with one.
func notFound(err error) bool {
	var typed *scw.ResourceNotFoundError
	return errors.As(err, &typed) || statusOf(err) == http.StatusNotFound
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
	return errors.As(err, &typed)
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
// lost, cut, late, or says that the server failed. Only looking can tell.
func uncertain(err error) bool {
	var lost *lostError
	return errors.As(err, &lost) || statusOf(err) >= 500
}

// passing says that the same call may well work a little later.
func passing(err error) bool {
	return uncertain(err) || busy(err) || statusOf(err) == http.StatusTooManyRequests
}

// explain turns an error into what a person needs: the reason, and what to do.
func explain(err error) (why, do string) {
	do = "run the command again; it continues where this one stopped"
	var (
		quota    *scw.QuotasExceededError
		stock    *scw.OutOfStockError
		denied   *scw.PermissionsDeniedError
		invalid  *scw.InvalidArgumentsError
		locked   *scw.ResourceLockedError
		auth     *scw.DeniedAuthenticationError
		pre      *scw.PreconditionFailedError
		response *scw.ResponseError
	)
	switch {
	case errors.As(err, &quota):
		var parts []string
		for _, d := range quota.Details {
			parts = append(parts, fmt.Sprintf("the quota %s allows %d and %d are in use", d.Resource, d.Quota, d.Current))
		}
		return orText(strings.Join(parts, ", "), "a quota of the project is used up"),
			"delete what is not needed or ask Scaleway for a higher quota, then run the command again"
	case errors.As(err, &stock):
		return fmt.Sprintf("%s is out of stock", orText(stock.Resource, "it")), "choose another type or zone in the file, or try again later"
	case errors.As(err, &denied):
		var parts []string
		for _, d := range denied.Details {
			parts = append(parts, fmt.Sprintf("%s on %s", d.Action, d.Resource))
		}
		return "the API key lacks the permission " + orText(strings.Join(parts, ", "), "for it"),
			"give the key's IAM application that permission in the file's project"
	case errors.As(err, &auth):
		return "Scaleway does not accept the API key: " + orText(auth.Reason, "authentication denied"),
			"check SCW_SECRET_KEY and the profile of the scw configuration file"
	case errors.As(err, &invalid):
		var parts []string
		for _, d := range invalid.Details {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s (%s) %s", d.ArgumentName, d.Reason, d.HelpMessage)))
		}
		return "Scaleway refuses the value of " + orText(strings.Join(parts, ", "), "an argument"), "correct the file"
	case errors.As(err, &locked):
		return "Scaleway has locked it", "ask Scaleway's support to unlock it"
	case errors.As(err, &pre):
		return "a precondition is not met: " + orText(pre.HelpMessage, pre.Precondition), do
	case errors.As(err, &response):
		return fmt.Sprintf("Scaleway answered %d: %s", response.StatusCode, orText(response.Message, http.StatusText(response.StatusCode))), do
	}
	return strings.TrimPrefix(err.Error(), "scaleway-sdk-go: "), do
}

// failed reports a change that did not work. What already explains itself keeps
// its words, but no longer its claim that nothing was touched; an interruption
// passes unchanged.
func failed(what string, err error) error {
	var o *outcome.Error
	if errors.As(err, &o) {
		said := *o
		said.Code = outcome.Failed
		return &said
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	why, do := explain(err)
	return outcome.Fail(what, why, do).Because(err)
}

// cannotTell reports a reading that did not work, so that nothing may be
// concluded from it.
func cannotTell(what string, err error) error {
	var o *outcome.Error
	if errors.As(err, &o) || errors.Is(err, context.Canceled) {
		return err
	}
	why, do := explain(err)
	return outcome.CannotTell(what, why, do).Because(err)
}

func orText(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
