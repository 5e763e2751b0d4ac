package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"bastide/internal/outcome"
)

// limit gives the command the time of --timeout.
func (a *app) limit(cmd *cobra.Command) error {
	if a.timeout < 0 {
		return outcome.Refuse(fmt.Sprintf("--timeout %s is not possible", a.timeout), "it is the time that the command may take", "give a time such as 30m, or leave it out")
	}
	if a.timeout > 0 {
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), a.timeout, a.late())
		a.cancel = cancel
		cmd.SetContext(ctx)
	}
	return nil
}

// late is why a command ends that has used up its time. One that only looks at
// an environment, or had not yet begun to change it, could not tell how things
// are and touched nothing.
func (a *app) late() *outcome.Error {
	what, why := "the command did not end in time", fmt.Sprintf("--timeout allows %s", a.timeout)
	if a.environment && a.resume == "" {
		return outcome.CannotTell(what, why, "give it more time, or run it again; nothing was changed")
	}
	return outcome.Fail(what, why, "give it more time, or run it again: it continues where it stopped")
}

// inTime says that it was --timeout that ended a command, where the error tells
// only that some time was over, and what was waited for.
func (a *app) inTime(err error) error {
	late := a.late()
	var told *outcome.Error
	mine := errors.As(err, &told) && told.What == late.What
	switch {
	case err == nil || a.timeout <= 0 || !mine && !errors.Is(err, context.DeadlineExceeded):
		return err
	case mine || told == nil:
		waited := err.Error()
		if mine { // it may stand inside what was waited for
			waited = strings.TrimRight(strings.TrimSuffix(waited, told.Error()), ": \n")
		}
		if waited != "" {
			late.Why += ", and it was still waiting: " + waited
		}
		return late.Because(err)
	case strings.Contains(err.Error(), late.Why):
		return err
	}
	return errors.Join(err, late) // it says what was waited for itself
}

// stopped says that somebody ended the command, where the error tells only that
// it was called off.
func stopped(err error) error {
	var told *outcome.Error
	if !errors.Is(err, context.Canceled) || errors.As(err, &told) {
		return err
	}
	return &outcome.Error{Code: outcome.Interrupted, What: "the command was interrupted", Why: "it was still waiting for something",
		Do: "run it again", Err: err}
}

// sink is a stream that remembers that it could not be written to.
type sink struct {
	to  io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

// written fails a command whose output got lost: a script would take an empty
// or a cut file for the whole. A reader that has gone away, as head does, ends
// the process quietly before this.
func (a *app) written(err error) error {
	if a.out.err == nil {
		return err
	}
	lost := outcome.Fail("the output could not be written whole", a.out.err.Error(), "write it to another place; what the command did, it did")
	var quiet exit
	if err == nil || errors.Is(err, a.out.err) || errors.As(err, &quiet) {
		return lost
	}
	return errors.Join(err, lost)
}
