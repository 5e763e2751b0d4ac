package ui

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"bastide/internal/outcome"
)

// A name that somebody gave a thing does not move the cursor, clear the screen or
// set a title, wherever it is printed.
func TestNothingFromOutsideSteersTheTerminal(t *testing.T) {
	const evil = "a\x1b[2J\x1b]0;owned\a\rb\u009b1A\u202ec\x7f\x9b"
	for _, painted := range []bool{false, true} {
		for _, asJSON := range []bool{false, true} {
			var out, errs strings.Builder
			p := New(Options{Out: &out, Err: &errs, JSON: asJSON, Colour: painted, Live: true})
			p.Table(Table{Title: evil, Columns: []string{"name"}, Rows: [][]string{{evil}}})
			p.Verdict(Verdict{Sentence: evil, Checks: []Check{{Name: evil, Detail: evil}}})
			p.Notice(evil)
			p.Warn(evil)
			p.Error(errors.Join(outcome.Fail(evil, evil, evil)), evil)
			if asJSON {
				for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
					if !json.Valid([]byte(line)) {
						t.Errorf("no JSON: %s", line)
					}
				}
			}
			for _, text := range []string{out.String(), errs.String()} {
				if !asJSON && !strings.Contains(text, `a\u001b[2J\u001b]0;owned\u0007\u000db\u009b1A\u202ec\u007f`) {
					t.Errorf("what is there is not shown: %q", text)
				}
				if i := strings.IndexFunc(colour.ReplaceAllString(text, ""), obeyed); i >= 0 {
					t.Errorf("colour %v, JSON %v: a control character in %q", painted, asJSON, text)
				}
			}
		}
	}
}

// The live line, which is drawn again and again, is no way around it.
func TestTheLiveLineIsShownAsText(t *testing.T) {
	var out, errs strings.Builder
	p := New(Options{Out: &out, Err: &errs, Live: true})
	a := p.Progress("up", 2)
	a.Start("machine/a")
	a.Note("machine/a", "waits for \x1b]0;owned\a")
	a.End()
	if text := strings.ReplaceAll(errs.String(), wipe, ""); strings.ContainsFunc(text, obeyed) {
		t.Errorf("a control character in %q", text)
	}
}
