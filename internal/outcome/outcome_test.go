package outcome

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestCodeOf(t *testing.T) {
	cause := errors.New("no route")
	for _, c := range []struct {
		name string
		err  error
		want Code
	}{
		{"nothing", nil, Done},
		{"any error", cause, Failed},
		{"a refusal, wrapped", fmt.Errorf("up: %w", Refuse("a", "b", "c")), Refused},
		{"unknown", CannotTell("a", "", "c").Because(cause), Unknown},
		{"a refusal after something was changed", fmt.Errorf("up: %w", Begun(Refuse("a", "b", "c"))), Failed},
		{"unknown after something was changed", Begun(CannotTell("a", "b", "c")), Failed},
		{"all done and the result not seen", Begun(Unproven(CannotTell("a", "b", "c"))), Unknown},
		{"a failure is no want of proof", Begun(Unproven(Fail("a", "b", "c"))), Failed},
		{"stopped after something was changed", Begun(context.Canceled), Interrupted},
		{"nothing after something was changed", Begun(nil), Done},
		{"stopped by the user", fmt.Errorf("step: %w", context.Canceled), Interrupted},
		{"of several, the first that knows its code", errors.Join(cause, Refuse("a", "b", "c"), Fail("d", "e", "f")), Refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := CodeOf(c.err); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestBecauseKeepsAReasonThatWasGiven(t *testing.T) {
	cause := errors.New("403")
	if e := Fail("a", "", "c").Because(cause); e.Why != "403" || !errors.Is(e, cause) {
		t.Errorf("got why %q", e.Why)
	}
	if e := Fail("a", "the key may not list", "c").Because(cause); e.Why != "the key may not list" || !errors.Is(e, cause) {
		t.Errorf("got why %q", e.Why)
	}
}
