package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"bastide/internal/outcome"
)

// A step that was called off is interrupted; what failed keeps its words.
func TestAStepThatIsCalledOff(t *testing.T) {
	if err := interrupted(fmt.Errorf("x: %w", context.Canceled)); err.Error() != "interrupted" {
		t.Errorf("got %v", err)
	}
	failed := outcome.Fail("x did not y", "z", "").Because(context.Canceled)
	for _, err := range []error{failed, errors.New("boom")} {
		if have := interrupted(err); !errors.Is(have, err) {
			t.Errorf("%v became %v", err, have)
		}
	}
}
