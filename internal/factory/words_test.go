package factory

import (
	"context"
	"net/url"
	"testing"
)

// The address stands beside the reason, and nobody reads Go's words for a time that
// is over; the command's own time has words of its own.
func TestAReasonInWords(t *testing.T) {
	late := &url.Error{Op: "Get", URL: "https://factory.example/versions", Err: context.DeadlineExceeded}
	if got := inWords(t.Context(), late); got.Error() != "no answer within 30s" {
		t.Error(got)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if got := inWords(over, late); got != context.DeadlineExceeded { //nolint:errorlint // exactly this one
		t.Error(got)
	}
}
