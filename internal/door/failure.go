package door

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"

	"bastide/internal/outcome"
)

// Failure is why a private address could not be reached.
type Failure string

// The failures.
const (
	Outside     Failure = "is outside the estate's network"
	Refused     Failure = "refused the connection"              // the host is up, nothing listens on the port
	TimedOut    Failure = "did not answer"                      // host down, still booting, or cut off
	Unreachable Failure = "cannot be reached from the gateway"  // the gateway has no way there
	Prohibited  Failure = "may not be reached through the door" // the bastion says no
	NoBastion   Failure = "is behind a bastion that cannot be reached"
)

// DialError says which address could not be reached and what stood in the way.
// Refused, TimedOut and Unreachable match syscall.ECONNREFUSED,
// os.ErrDeadlineExceeded and syscall.EHOSTUNREACH with errors.Is.
type DialError struct {
	Address netip.AddrPort
	Failure Failure
	Err     error
}

func (e *DialError) Error() string {
	s := fmt.Sprintf("%s %s", e.Address, e.Failure)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause and the system error that it amounts to.
func (e *DialError) Unwrap() []error {
	errs := map[Failure]error{
		Refused: syscall.ECONNREFUSED, TimedOut: os.ErrDeadlineExceeded, Unreachable: syscall.EHOSTUNREACH,
	}
	var out []error
	for _, err := range []error{e.Err, errs[e.Failure]} {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}

// Timeout and Temporary make it a net.Error.
func (e *DialError) Timeout() bool { return e.Failure == TimedOut }

// Temporary says whether trying again may help.
func (e *DialError) Temporary() bool { return e.Failure != Outside && e.Failure != Prohibited }

// permanent says whether connecting again cannot help.
func permanent(err error) bool {
	var told *outcome.Error
	return errors.As(err, &told) || errors.Is(err, ErrNotAccepted)
}

// bastionFailure: no connection to the bastion could be had.
func bastionFailure(target netip.AddrPort, err error) error {
	if errors.Is(err, context.Canceled) && !errors.Is(err, errClosed) {
		return err
	}
	return &DialError{Address: target, Failure: NoBastion, Err: err}
}

// channelFailure reads the bastion's answer. The reason code only tells policy
// from failure; which failure is in the text, the server's own words for errno.
func channelFailure(ctx context.Context, target netip.AddrPort, err error) error {
	var refused *ssh.OpenChannelError
	if !errors.As(err, &refused) {
		if errors.Is(err, context.DeadlineExceeded) {
			return &DialError{Address: target, Failure: TimedOut, Err: err}
		}
		if ctx.Err() == nil {
			return &DialError{Address: target, Failure: NoBastion, Err: err}
		}
		return err
	}
	if refused.Reason == ssh.Prohibited {
		return &DialError{Address: target, Failure: Prohibited, Err: errors.New("the bastion does not allow it")}
	}
	text := strings.ToLower(refused.Message)
	failure := Unreachable
	for _, known := range []struct {
		text string
		is   Failure
	}{{"refused", Refused}, {"timed out", TimedOut}, {"timeout", TimedOut}, {"deadline", TimedOut}} {
		if strings.Contains(text, known.text) {
			failure = known.is
			break
		}
	}
	return &DialError{Address: target, Failure: failure, Err: fmt.Errorf("the bastion says %q", refused.Message)}
}
