package estate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bastide/internal/outcome"
)

// Problem is one thing wrong in an estate file: where it stands, what is
// wrong, why that matters and what to do about it.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`   // 1-based; 0 when the estate did not come from text
	Column int    `json:"column,omitempty"` // 1-based, in characters
	Path   string `json:"path,omitempty"`   // such as pools[1].disk.size; empty for the file as a whole
	What   string `json:"what"`
	Why    string `json:"why"`
	Hint   string `json:"hint"`

	cause error // what the system said, where that is the reason
}

// Error gives the problem as one line: place, path, what; why; what to do.
func (p Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.What)
	for _, part := range []string{p.Why, p.Hint} {
		if part != "" {
			b.WriteString("; " + part)
		}
	}
	return b.String()
}

// Problems is every problem of a file, in the order of the file. As an error
// it is one line a problem.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Mistakes are the problems for programs.
func (ps Problems) Mistakes() []outcome.Mistake {
	out := make([]outcome.Mistake, len(ps))
	for i, p := range ps {
		out[i] = outcome.Mistake{File: p.File, Line: p.Line, Column: p.Column, Path: p.Path, Message: p.What, Why: p.Why, Hint: p.Hint}
	}
	return out
}

// Unwrap gives the system's errors behind the problems, if any.
func (ps Problems) Unwrap() []error {
	var causes []error
	for _, p := range ps {
		if p.cause != nil {
			causes = append(causes, p.cause)
		}
	}
	return causes
}

// orNil keeps an empty list from becoming a non-nil error.
func (ps Problems) orNil() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

func (ps Problems) inFileOrder() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return ps
}
