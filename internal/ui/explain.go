package ui

import (
	"errors"
	"strings"

	"bastide/internal/outcome"
)

// failure is one error in the three sentences that a user reads.
type failure struct {
	What string `json:"what"`
	Why  string `json:"why,omitempty"`
	Do   string `json:"do,omitempty"`
}

// explain takes an error apart. Several that were joined are told one after
// the other; the exit code is that of the whole.
func explain(err error) ([]failure, outcome.Code) {
	if err == nil {
		return nil, outcome.Done
	}
	return failures(err, ""), outcome.CodeOf(err)
}

// failures keeps what wrappers said in front of an outcome.Error, such as the
// step that failed.
func failures(err error, context string) []failure {
	if told, ok := err.(*outcome.Error); ok {
		return []failure{{What: context + told.What, Why: told.Why, Do: told.Do}}
	}
	switch wrapped := err.(type) {
	case interface{ Unwrap() []error }:
		if parts := wrapped.Unwrap(); joined(err, parts) {
			var all []failure
			for _, e := range parts {
				all = append(all, failures(e, context)...)
			}
			return all
		}
	case interface{ Unwrap() error }:
		inner := wrapped.Unwrap()
		var told *outcome.Error
		if inner != nil && errors.As(inner, &told) {
			if before, ok := strings.CutSuffix(err.Error(), inner.Error()); ok {
				return failures(inner, context+before)
			}
			return failures(inner, context)
		}
	}
	return []failure{{What: context + err.Error()}}
}

// joined tells errors.Join, whose text is its parts in lines, from a sentence
// that wraps several causes.
func joined(err error, parts []error) bool {
	return len(parts) > 0 && err.Error() == errors.Join(parts...).Error()
}
