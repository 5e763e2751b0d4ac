package session

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"bastide/internal/image"
	"bastide/internal/image/fetch"
	"bastide/internal/image/format"
	"bastide/internal/outcome"
)

// What may be done again after a reading that broke off.
const (
	readAgain   = "run the command again"
	uploadAgain = "run the command again: what was uploaded is not uploaded again"
)

// notRead explains a source that could not be read or taken. shown is its name as
// what has it already; again is what to do where the next time may be another.
func notRead(what, shown, again string, err error) error {
	var (
		told    *outcome.Error
		status  *fetch.Status
		changed *fetch.Changed
		name    *net.DNSError
		file    *fs.PathError
	)
	why := err.Error()
	if strings.Contains(shown, "://") { // once is enough
		why = strings.ReplaceAll(why, shown, "the server")
	}
	const elsewhere = "fetch the file in another way and name it instead of the address"
	switch {
	case errors.As(err, &told) || errors.Is(err, context.Canceled):
		return err
	case format.Refused(err) != nil:
		return image.Explain(what, err)
	case errors.Is(err, os.ErrNotExist):
		return outcome.Refuse(what, "there is no such file", "name a file that exists").Because(err)
	case errors.As(err, &file) && file.Op != "read":
		return outcome.Refuse(what, "it cannot be opened: "+file.Err.Error(), "see that it is the right file and that you may read it").Because(err)
	case errors.As(err, &changed):
		return outcome.Fail(what, strings.ReplaceAll(err.Error(), shown, "the file"), "run the command again when nobody replaces it").Because(err)
	case errors.As(err, &status):
		return outcome.Fail(what, why, "see what the server says; an image of a file works without it: bastide image build ENV --from FILE").Because(err)
	case errors.Is(err, fetch.ErrRedirect), errors.Is(err, fetch.ErrNoLength):
		return outcome.Fail(what, why, elsewhere).Because(err)
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, &name):
		return outcome.Fail(what, why, "see that the address is right and can be reached from here, or "+elsewhere).Because(err)
	}
	return outcome.Fail(what, why, again).Because(err)
}

// Checked is what was found out about a file.
type Checked struct {
	Name   string
	Result *image.Result
}

// knocks is how often a command that only looks tries to connect to where nobody
// has answered: a mistyped address is told within a second.
const knocks = 4

// CheckImage says whether a file, or what is at an address, can be made an image.
// limit is the largest disk in bytes; 0 for the default. progress and notice may be
// nil. It needs no estate.
func CheckImage(ctx context.Context, from string, limit int64, progress func(read, total int64), notice func(string)) (*Checked, error) {
	name := fetch.Shown(from)
	failed := func(err error) (*Checked, error) {
		if format.Refused(err) != nil {
			return nil, notRead(name+" is no image for the nodes' disks", name, readAgain, err)
		}
		return nil, notRead("whether "+name+" is an image for the nodes' disks was not found out", name, readAgain, err)
	}
	src, err := image.Open(ctx, from, nil, fetch.Options{Progress: progress, Notice: notice, Knocks: knocks})
	if err != nil {
		return failed(err)
	}
	defer func() { _ = src.Close() }()
	result, err := image.Check(ctx, src, image.Options{Limit: limit, SourceDigest: true})
	if err != nil {
		return failed(err)
	}
	return &Checked{src.Name(), result}, nil
}

// lookAtFile refuses a file of the user's whose beginning already shows that no
// image can be made of it, before anything is written. The rest is checked while
// it is read, and so is what is at an address.
func (s *Session) lookAtFile(ctx context.Context, from string) error {
	if fetch.Remote(from) {
		return nil
	}
	what := from + " was not made the image of " + s.Estate.Name
	src, err := image.Open(ctx, from, nil, fetch.Options{})
	if err != nil {
		return notRead(what, from, readAgain, err)
	}
	defer func() { _ = src.Close() }()
	if err := image.Look(ctx, src, image.Options{Limit: int64(s.Estate.SmallestRoot())}); err != nil {
		return notRead(what, from, readAgain, err)
	}
	return nil
}
