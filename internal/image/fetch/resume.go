package fetch

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Read gives the next bytes. If the connection breaks, or nothing comes, it is made
// again until Patience is over.
func (d *download) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	deadline := time.Now().Add(d.o.Patience)
	for pause := firstPause; ; pause = longer(pause) {
		n, err := d.some(p, deadline)
		if n > 0 {
			d.offset += int64(n)
			_, _ = d.sum.Write(p[:n])
		}
		if err != nil && errors.Is(err, io.EOF) {
			d.err = err
		}
		if n > 0 || d.err != nil {
			d.progress.add(n, d.err != nil)
			return n, d.err
		}
		d.drop()
		switch {
		case !d.worthRetrying(err):
			d.err = err
		case time.Now().Add(pause).After(deadline):
			d.err = fmt.Errorf("%s: nothing came for %s, after %d bytes: %w", d.name, d.o.Patience, d.offset, err)
		default:
			d.trouble(err, deadline)
			d.err = d.sleep(pause)
		}
		if d.ctx.Err() != nil {
			d.err = d.ctx.Err()
		}
		if d.err != nil {
			return 0, d.err
		}
	}
}

// some reads from the connection, which it makes if there is none. io.EOF is the
// end of the whole file and nothing else.
func (d *download) some(p []byte, deadline time.Time) (int, error) {
	if d.body == nil {
		if err := d.resume(deadline); err != nil {
			return 0, err
		}
	}
	n, err := d.read(p)
	if d.length >= 0 && d.offset+int64(n) > d.length {
		return 0, &Changed{d.name, fmt.Sprintf("it was announced with %d bytes and has more", d.length)}
	}
	if errors.Is(err, io.EOF) && d.length >= 0 && d.offset+int64(n) < d.length {
		err = io.ErrUnexpectedEOF
	}
	if n > 0 && err != nil && !errors.Is(err, io.EOF) {
		d.drop() // the next Read makes another one
		err = nil
	}
	return n, err
}

// read is one read from the connection, which is cut if nothing comes.
func (d *download) read(p []byte) (int, error) {
	cancel := d.cancel
	stall := time.AfterFunc(d.o.Patience/4, cancel)
	defer stall.Stop()
	return d.body.Read(p)
}

// resume takes the download up at the offset, only if it is certain to be the same file.
func (d *download) resume(deadline time.Time) error {
	r, err := d.ask(d.offset, time.Until(deadline))
	if err != nil {
		var s *Status
		if errors.As(err, &s) && s.Code == http.StatusRequestedRangeNotSatisfiable {
			return &Changed{d.name, fmt.Sprintf("it has no byte %d any more", d.offset)}
		}
		return err
	}
	if err := d.same(r); err != nil {
		return err
	}
	if r.StatusCode == http.StatusOK {
		return d.again(r)
	}
	first, total, err := contentRange(r.Header.Get("Content-Range"))
	switch {
	case err != nil:
		return err
	case first != d.offset:
		return fmt.Errorf("%s gave bytes from %d on when it was asked for those from %d", d.name, first, d.offset)
	case d.length >= 0 && total >= 0 && total != d.length:
		return &Changed{d.name, fmt.Sprintf("it had %d bytes and has %d", d.length, total)}
	}
	return nil
}

// same compares what an answer says of the file with what the first one said.
func (d *download) same(r *http.Response) error {
	for _, h := range []struct{ name, was string }{{"ETag", d.etag}, {"Last-Modified", d.modified}} {
		if now := r.Header.Get(h.name); now != "" && h.was != "" && now != h.was {
			return &Changed{d.name, fmt.Sprintf("its %s was %s and is %s", h.name, h.was, now)}
		}
	}
	return nil
}

// again reads the file from its beginning, from a server that does not give parts of
// it, and goes on behind what was given away, if that is the same.
func (d *download) again(r *http.Response) error {
	if d.length >= 0 && r.ContentLength >= 0 && r.ContentLength != d.length {
		return &Changed{d.name, fmt.Sprintf("it had %d bytes and has %d", d.length, r.ContentLength)}
	}
	var sum maphash.Hash
	sum.SetSeed(d.sum.Seed())
	p := make([]byte, 64<<10)
	for left := d.offset; left > 0; {
		n, err := d.read(p[:min(int64(len(p)), left)])
		_, _ = sum.Write(p[:n])
		left -= int64(n)
		if errors.Is(err, io.EOF) && left > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && left > 0 {
			return err
		}
	}
	if sum.Sum64() != d.sum.Sum64() {
		return &Changed{d.name, fmt.Sprintf("its first %d bytes are others", d.offset)}
	}
	return nil
}

// contentRange reads "bytes 5-9/10"; total is -1 for "*".
func contentRange(s string) (first, total int64, err error) {
	span, size, ok := strings.Cut(strings.TrimPrefix(s, "bytes "), "/")
	begin, _, ok2 := strings.Cut(span, "-")
	first, err = strconv.ParseInt(begin, 10, 64)
	if !ok || !ok2 || err != nil {
		return 0, 0, fmt.Errorf("the server says %q of the part that it gives", s)
	}
	if size == "*" {
		return first, -1, nil
	}
	total, err = strconv.ParseInt(size, 10, 64)
	return first, total, err
}
