package fetch

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bastide/internal/image/format"
)

// download is a file that is read over HTTP. A connection that breaks is followed
// by another one within the same Read.
type download struct {
	ctx    context.Context
	client *http.Client
	url    *url.URL
	name   string
	o      Options

	length   int64  // -1 if not known
	etag     string // strong or weak, as it came
	modified string

	body   io.ReadCloser // nil: broken
	cancel context.CancelFunc

	offset   int64
	sum      maphash.Hash // of what was given away, to recognise it in a second reading
	progress *progress
	told     time.Time // when trouble was told last
	err      error     // final
}

func openURL(ctx context.Context, from string, client *http.Client, o Options) (*Source, error) {
	u, err := url.Parse(from)
	if err != nil || u.Host == "" {
		return nil, format.Refuse(format.NotAFile, format.Unknown, "it is no valid address").Advise("correct it")
	}
	d := &download{ctx: ctx, client: careful(client), url: u, name: public(u), o: o, length: -1}
	if err := d.begin(); err != nil {
		return nil, err
	}
	d.progress = newProgress(o.Progress, d.length)
	s := &Source{ReadCloser: d, name: d.name, length: d.length, version: d.etag}
	if s.version == "" {
		s.version = d.modified
	}
	return s, nil
}

// begin asks for the file until an answer is final.
func (d *download) begin() error {
	var troubled time.Time
	for pause, tries := firstPause, 1; ; pause, tries = longer(pause), tries+1 {
		r, err := d.ask(0, d.o.FirstByte)
		if err == nil {
			if err = d.first(r); err == nil {
				return nil
			}
			d.drop()
			return err
		}
		if troubled.IsZero() {
			troubled = time.Now()
		}
		if !d.worthRetrying(err) {
			return err
		}
		knocking := hopeless(err) && d.o.Knocks > 0 // ends before anybody could read of it
		if knocking && tries >= d.o.Knocks {
			return err
		}
		if time.Since(troubled)+pause > d.o.Patience {
			return fmt.Errorf("%w, for %s", err, d.o.Patience)
		}
		if !knocking {
			d.trouble(err, troubled.Add(d.o.Patience))
		}
		if err := d.sleep(pause); err != nil {
			return err
		}
	}
}

// first remembers what the answer says of the file.
func (d *download) first(r *http.Response) error {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
		return format.Instead(format.HTML, "a disk image")
	}
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered with a part of the file when it was asked for all", d.name)
	}
	d.length, d.etag, d.modified = r.ContentLength, r.Header.Get("ETag"), r.Header.Get("Last-Modified")
	if d.length < 0 && r.ProtoMajor == 1 && len(r.TransferEncoding) == 0 {
		return fmt.Errorf("%s %w", d.name, ErrNoLength)
	}
	return nil
}

// ask sends a request for the file from an offset on. The answer is 200 or 206;
// everything else is an error. patience is for the answer's header.
func (d *download) ask(from int64, patience time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithCancel(d.ctx)
	timer := time.AfterFunc(patience, cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url.String(), nil)
	if err != nil {
		cancel()
		return nil, err
	}
	r.Header.Set("Accept-Encoding", "identity") // the file itself, not one that a transport unpacks
	if v := d.validator(); from > 0 && v != "" {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		r.Header.Set("If-Range", v)
	}
	answer, err := d.client.Do(r)
	if !timer.Stop() && err == nil {
		err = context.Canceled
		_ = answer.Body.Close()
	}
	if err != nil {
		cancel()
		if d.ctx.Err() != nil {
			return nil, d.ctx.Err()
		}
		if errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("%s: no answer within %s", d.name, patience)
		}
		return nil, d.withoutQuery(err)
	}
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusPartialContent {
		defer cancel()
		defer answer.Body.Close()
		return nil, newStatus(d.name, answer)
	}
	d.body, d.cancel = answer.Body, cancel
	return answer, nil
}

// withoutQuery takes the URL, with whatever was signed into it, out of an error.
func (d *download) withoutQuery(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("%s: %w", d.name, err)
}

// validator proves to the server which file it was; empty if it gave nothing that
// could. A weak ETag does not promise the same bytes.
func (d *download) validator() string {
	if d.etag != "" && !strings.HasPrefix(d.etag, "W/") {
		return d.etag
	}
	return d.modified
}

func (d *download) worthRetrying(err error) bool {
	var status *Status
	switch {
	case d.ctx.Err() != nil, final(err), format.Refused(err) != nil:
		return false
	case errors.As(err, &status):
		return status.passing()
	}
	return true
}

const firstPause = 100 * time.Millisecond

func longer(pause time.Duration) time.Duration { return min(2*pause, 10*time.Second) }

func (d *download) sleep(pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-d.ctx.Done():
		return d.ctx.Err()
	}
}

// drop ends the current connection.
func (d *download) drop() {
	if d.body != nil {
		d.cancel()
		_ = d.body.Close()
		d.body = nil
	}
}

// Close ends the download.
func (d *download) Close() error {
	d.drop()
	if d.err == nil {
		d.err = errors.New("read after close")
	}
	return nil
}
