package api

import (
	"fmt"
	"net/http"
)

// refusal is an answer other than success: a status and the body that the real
// API sends with it. Which type, resource word and detail belong to which
// product was recorded; clients tell errors apart by them.
type refusal struct {
	status int
	body   any // nil for an empty body
}

func (r *refusal) Error() string { return fmt.Sprintf("%d %v", r.status, r.body) }

// notFound is the typed 404 of every product but the load balancer.
func notFound(resource, id string) error {
	return &refusal{http.StatusNotFound, doc{
		"type": "not_found", "message": "resource is not found", "resource": resource, "resource_id": id}}
}

// untyped is an error that has nothing but a message, which the SDK cannot turn
// into a typed error.
func untyped(status int, format string, args ...any) error {
	return &refusal{status, doc{"message": fmt.Sprintf(format, args...)}}
}

// transient refuses a change on something that is still busy with another.
func transient(resource, id, state string) error {
	return &refusal{http.StatusConflict, doc{
		"type": "transient_state", "message": "resource is in a transient state",
		"resource": resource, "resource_id": id, "current_state": state}}
}

// stillInUse refuses to delete something that others depend on.
func stillInUse(help string) error { return precondition("resource_still_in_use", help) }

func precondition(which, help string) error {
	return &refusal{http.StatusPreconditionFailed, doc{
		"type": "precondition_failed", "message": "precondition is not respected",
		"precondition": which, "help_message": help}}
}

// invalid refuses one argument; reason is unknown, required, format or constraint.
func invalid(argument, reason, help string) error {
	return invalidAll([]doc{wrong(argument, reason, help)})
}

func wrong(argument, reason, help string) doc {
	return doc{"argument_name": argument, "reason": reason, "help_message": help}
}

// invalidAll refuses several arguments at once.
func invalidAll(details []doc) error {
	return &refusal{http.StatusBadRequest, doc{"type": "invalid_arguments", "message": "invalid argument(s)", "details": details}}
}

// forbidden is 403: the key lacks the right, or the thing belongs to somebody
// the key cannot see.
func forbidden(resource, action string) error {
	return &refusal{http.StatusForbidden, doc{
		"type": "permissions_denied", "message": "insufficient permissions",
		"details": []doc{{"resource": resource, "action": action}}}}
}

// unauthenticated is what a missing or malformed secret key gets.
func unauthenticated(reason string) error {
	return &refusal{http.StatusUnauthorized, doc{
		"type": "denied_authentication", "message": "authentication is denied", "method": "api_key", "reason": reason}}
}

// quotaExceeded refuses one more of something that there are already as many of
// as there may be.
func quotaExceeded(resource string, quota int) error {
	return &refusal{http.StatusForbidden, doc{"type": "quotas_exceeded", "message": "quota(s) exceeded",
		"details": []doc{{"resource": resource, "quota": quota, "current": quota}}}}
}

// conflict refuses what clashes with something that exists.
func conflict(message string) error {
	return &refusal{http.StatusConflict, doc{"type": "conflict", "message": message}}
}
