// Package outcome is how a command says that it did not do what was asked: an
// error that knows its exit code and explains itself in three sentences.
package outcome

import (
	"context"
	"errors"
)

// Code is a process exit code. The table is part of the contract with scripts.
type Code int

// The exit codes.
const (
	Done        Code = 0   // done, or nothing to do
	Failed      Code = 1   // something was tried and did not work
	Changes     Code = 2   // plan --exit-code found changes
	Refused     Code = 3   // input or precondition; nothing was touched
	Unknown     Code = 4   // could not be checked; nothing was touched, or see Unproven
	Interrupted Code = 130 // the user stopped it
)

// Error is what a user reads when a command did not succeed.
type Error struct {
	Code Code
	What string // one sentence: what did not happen, with the resource's or file's name
	Why  string // one sentence: the reason
	Do   string // one sentence: what to do about it
	Err  error  // the cause, if an error was it
}

func (e *Error) Error() string {
	s := e.What
	if e.Why != "" {
		s += ": " + e.Why
	}
	if e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Refuse says no before anything was touched.
func Refuse(what, why, do string) *Error { return &Error{Code: Refused, What: what, Why: why, Do: do} }

// Fail reports something that was tried and did not work.
func Fail(what, why, do string) *Error { return &Error{Code: Failed, What: what, Why: why, Do: do} }

// CannotTell reports that the truth could not be read, so nothing was touched.
func CannotTell(what, why, do string) *Error {
	return &Error{Code: Unknown, What: what, Why: why, Do: do}
}

// Because attaches the cause and, where no reason was given, takes its text.
func (e *Error) Because(err error) *Error {
	e.Err = err
	if e.Why == "" && err != nil {
		e.Why = err.Error()
	}
	return e
}

// Begun says that something was changed before an error came. Then a refusal, or
// what could not be told, is a failure: both promise that nothing was touched.
func Begun(err error) error {
	if code := CodeOf(err); code != Refused && code != Unknown {
		return err
	}
	return &begun{err}
}

type begun struct{ err error }

func (b *begun) Error() string { return b.err.Error() }
func (b *begun) Unwrap() error { return b.err }

// Unproven says that all that was to be done is done, and that only the look at
// the result failed: that stays unknown, whatever was changed before.
func Unproven(err error) error {
	if CodeOf(err) != Unknown {
		return err
	}
	return &unproven{err}
}

type unproven struct{ err error }

func (u *unproven) Error() string { return u.err.Error() }
func (u *unproven) Unwrap() error { return u.err }

// CodeOf is the exit code that an error stands for.
func CodeOf(err error) Code {
	var (
		e *Error
		b *begun
		u *unproven
	)
	switch {
	case err == nil:
		return Done
	case errors.As(err, &u):
		return Unknown
	case errors.As(err, &b):
		return Failed
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Failed
}

// Mistake is something wrong in a file that a person wrote, with its place, for
// programs that show it there.
type Mistake struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`   // 1-based; 0 when it is of the file as a whole
	Column  int    `json:"column,omitempty"` // 1-based, in characters
	Path    string `json:"path,omitempty"`   // such as pools[1].disk.size
	Message string `json:"message"`
	Why     string `json:"why,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// Mistakes finds the mistakes that an error is about; none for most errors.
func Mistakes(err error) []Mistake {
	var m interface{ Mistakes() []Mistake }
	if errors.As(err, &m) {
		return m.Mistakes()
	}
	return nil
}
