package ui

import (
	"fmt"
	"strings"
)

// Diagnosis is what doctor found.
type Diagnosis struct {
	Estate   string     `json:"estate"`
	Sentence string     `json:"sentence"`
	Checks   []Examined `json:"checks"`
}

// Examined is one named check. Unread says why it could not be answered; then
// there are no findings, and that means nothing.
type Examined struct {
	Name     string    `json:"name"`
	State    string    `json:"state"` // well, found or unread
	Findings []Finding `json:"findings"`
	Unread   string    `json:"unread,omitempty"`
}

// Finding is one thing that a check found, and what puts it right.
type Finding struct {
	What string `json:"what"`
	Why  string `json:"why"`
	Fix  string `json:"fix"`
}

// Diagnosis prints each check in a line and its findings below it, each in three
// lines like an error.
func (t *text) Diagnosis(d Diagnosis) {
	var b strings.Builder
	for _, c := range d.Checks {
		switch c.State {
		case "well":
			fmt.Fprintf(&b, "%s %s\n", t.tick(true), c.Name)
		case "unread":
			fmt.Fprintf(&b, "%s\n", t.paint.yellow("? "+c.Name+": not known, "+c.Unread))
		default:
			fmt.Fprintf(&b, "%s\n", t.paint.red(t.tick(false)+" "+c.Name))
		}
		for _, f := range c.Findings {
			fmt.Fprintf(&b, "    %s\n      why: %s\n      fix: %s\n", f.What, f.Why, f.Fix)
		}
	}
	b.WriteString(t.paint.bold(d.Estate+": ") + d.Sentence + "\n")
	t.result(b.String())
}
