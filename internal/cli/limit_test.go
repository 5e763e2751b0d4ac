package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"bastide/internal/outcome"
)

// However a command runs out of time, its error says so and what it waited for.
func TestOutOfTime(t *testing.T) {
	a := &app{timeout: 3 * time.Second}
	reading := outcome.CannotTell("the servers could not be listed", "no answer to GET /servers", "").Because(context.DeadlineExceeded)
	for name, test := range map[string]struct {
		err  error
		want []string
		code outcome.Code
	}{
		"bare":          {fmt.Errorf("asking staging-cp-1: %w", context.DeadlineExceeded), []string{"did not end in time", "--timeout allows 3s", "asking staging-cp-1"}, outcome.Failed},
		"told":          {reading, []string{"servers could not be listed", "--timeout allows 3s"}, outcome.Unknown},
		"inside":        {fmt.Errorf("the SSH handshake did not end: %w", a.late()), []string{"did not end in time", "--timeout allows 3s", "the SSH handshake did not end"}, outcome.Failed},
		"a step and it": {errors.Join(fmt.Errorf("a step: %w", reading), a.late()), []string{"servers could not be listed", "--timeout allows 3s"}, outcome.Unknown},
		"the cause":     {a.late().Because(context.DeadlineExceeded), []string{"--timeout allows 3s"}, outcome.Failed},
		"another error": {errors.New("boom"), []string{"boom"}, outcome.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			err := a.inTime(test.err)
			for _, w := range test.want {
				if strings.Count(err.Error(), w) != 1 {
					t.Errorf("%q does not say %q once", err, w)
				}
			}
			if outcome.CodeOf(err) != test.code {
				t.Errorf("exit code %d", outcome.CodeOf(err))
			}
		})
	}
}

// A command that looks, or has not begun to change anything, could not tell: the
// same code whatever it was that it waited for.
func TestOutOfTimeBeforeAnythingWasBegun(t *testing.T) {
	for name, err := range map[string]error{
		"bare":   fmt.Errorf("asking staging-cp-1: %w", context.DeadlineExceeded),
		"cause":  (&app{timeout: time.Second}).late(), // as it was when the time began to run
		"inside": fmt.Errorf("the SSH handshake did not end: %w", (&app{timeout: time.Second}).late()),
	} {
		looking := &app{timeout: time.Second, environment: true}
		if got := looking.inTime(err); outcome.CodeOf(got) != outcome.Unknown || !strings.Contains(got.Error(), "nothing was changed") {
			t.Errorf("%s, looking: %v", name, got)
		}
		begun := &app{timeout: time.Second, environment: true, resume: "bastide up envs/staging"}
		if got := begun.inTime(err); outcome.CodeOf(got) != outcome.Failed || !strings.Contains(got.Error(), "continues where it stopped") {
			t.Errorf("%s, begun: %v", name, got)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A command whose output was lost has not done what was asked, however it ended.
func TestLostOutput(t *testing.T) {
	for name, end := range map[string]error{"done": nil, "changes": exit(outcome.Changes), "itself": syscall.ENOSPC} {
		a := &app{out: &sink{to: full{}}}
		_, _ = io.WriteString(a.out, "x")
		if err := a.written(end); outcome.CodeOf(err) != outcome.Failed || !strings.Contains(err.Error(), "could not be written whole: no space left") {
			t.Errorf("%s: %v", name, err)
		}
	}
	a := &app{out: &sink{to: full{}}}
	_, _ = io.WriteString(a.out, "x")
	if err := a.written(outcome.CannotTell("x", "", "")); outcome.CodeOf(err) != outcome.Unknown {
		t.Errorf("its own error comes first: %v", err)
	}
	a = &app{out: &sink{to: io.Discard}}
	if err := a.written(nil); err != nil {
		t.Error(err)
	}
}
