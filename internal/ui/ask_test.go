package ui

import (
	"strings"
	"testing"

	"bastide/internal/outcome"
)

// What cannot be undone takes the name as it is written, and nothing like it.
func TestOnlyTheNameItselfIsTyped(t *testing.T) {
	for answer, want := range map[string]bool{"staging\n": true, " staging \n": true, "staging": true, "Staging\n": false, "yes\n": false, "\n": false, "": false, "stagin\n": false} {
		var said strings.Builder
		got, err := typed(strings.NewReader(answer), &said, "delete the data in postgres?", "staging")
		if err != nil || got != want {
			t.Errorf("%q: %v %v, want %v", answer, got, err, want)
		}
		if !strings.Contains(said.String(), "type staging to go on") {
			t.Errorf("asked %q", said.String())
		}
	}
}

// Nobody is there: that is a refusal that names the flag.
func TestNobodyTypes(t *testing.T) {
	err := Questions{}.Typed(t.Context(), "delete?", "staging")
	if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), "--confirm staging") {
		t.Errorf("%v", err)
	}
}
