package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"bastide/internal/image/format"
)

func open(ctx context.Context, from string, client *http.Client, o Options) (*Source, error) {
	if o.Patience <= 0 {
		o.Patience = 2 * time.Minute
	}
	if o.FirstByte <= 0 {
		o.FirstByte = 15 * time.Minute
	}
	if Remote(from) {
		return openURL(ctx, from, client, o)
	}
	return openFile(ctx, from, o)
}

// Remote says whether Open would ask a server instead of opening a file.
func Remote(from string) bool {
	scheme, _, is := strings.Cut(from, "://")
	return is && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// Shown is what Source.Name will be, for errors of Open.
func Shown(from string) string {
	if !Remote(from) {
		return from
	}
	u, err := url.Parse(from)
	if err != nil {
		return "the address" // what may be secret in it cannot be told from the rest
	}
	return public(u)
}

func openFile(ctx context.Context, path string, o Options) (*Source, error) {
	info, err := os.Stat(path)
	if scheme, _, is := strings.Cut(path, "://"); is && errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(scheme, "/.") {
		return nil, format.Refuse(format.NotAFile, format.Unknown, "%s is no way in which images are read: an address begins with https:// or http://, anything else is the path of a file", scheme).
			Advise("fetch it in another way and name the file")
	}
	if err != nil {
		return nil, err
	}
	if err := readable(info.Mode()); err != nil {
		return nil, err
	}
	// Should another file have taken its place meanwhile, opening does not wait either.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = readable(info.Mode())
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	s := &Source{name: path, length: -1}
	if info.Mode().IsRegular() {
		s.length, s.at = info.Size(), f
	}
	s.ReadCloser = &reported{r: f, ctx: ctx, progress: newProgress(o.Progress, s.length)}
	return s, nil
}

// readable refuses what is no file with an end. Opening a pipe waits for somebody to
// write to it, reading a terminal for somebody to type, and neither hears a signal.
func readable(mode os.FileMode) error {
	what, do := "", "write it to a file and name that"
	switch {
	case mode.IsRegular(), mode&os.ModeDevice != 0 && mode&os.ModeCharDevice == 0:
		return nil
	case mode.IsDir():
		what, do = "a folder", "name a file in it"
	case mode&os.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&os.ModeSocket != 0:
		what = "a socket"
	case mode&os.ModeCharDevice != 0:
		what = "a character device"
	default:
		what = "something else" // what this system has besides
	}
	return format.Refuse(format.NotAFile, format.Unknown, "it is %s, not a file", what).Advise(do)
}

// reported tells how far the reading is, and ends it with ctx.
type reported struct {
	r        io.ReadCloser
	ctx      context.Context
	progress *progress
}

func (r *reported) Close() error { return r.r.Close() }

func (r *reported) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	r.progress.add(n, err != nil)
	return n, err
}

// progress calls back about ten times a second.
type progress struct {
	tell        func(read, total int64)
	read, total int64
	last        time.Time
}

func newProgress(tell func(read, total int64), total int64) *progress {
	return &progress{tell: tell, total: total}
}

func (p *progress) add(n int, ended bool) {
	p.read += int64(n)
	if p.tell == nil {
		return
	}
	if now := time.Now(); ended || now.Sub(p.last) >= 100*time.Millisecond {
		p.last = now
		p.tell(p.read, p.total)
	}
}

// public is a URL without user, password and query, which may hold a signature.
func public(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	return shown.String()
}
