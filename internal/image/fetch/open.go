package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

func open(ctx context.Context, from string, client *http.Client, o Options) (*Source, error) {
	if o.Patience <= 0 {
		o.Patience = 2 * time.Minute
	}
	if o.FirstByte <= 0 {
		o.FirstByte = 15 * time.Minute
	}
	if strings.HasPrefix(from, "http://") || strings.HasPrefix(from, "https://") {
		return openURL(ctx, from, client, o)
	}
	return openFile(ctx, from, o)
}

func openFile(ctx context.Context, path string, o Options) (*Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		_ = f.Close()
		return nil, err
	case info.IsDir():
		_ = f.Close()
		return nil, fmt.Errorf("%s is a folder, not a file", path)
	}
	s := &Source{name: path, length: -1}
	if info.Mode().IsRegular() {
		s.length, s.at = info.Size(), f
	}
	s.ReadCloser = &reported{r: f, ctx: ctx, progress: newProgress(o.Progress, s.length)}
	return s, nil
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
