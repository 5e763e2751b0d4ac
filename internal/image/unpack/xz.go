package unpack

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/therootcompany/xz"

	"bastide/internal/image/format"
)

// xzReader names the decoder's errors. Structure is checked by a walker before it
// reaches the decoder, which has one error for all
// that is wrong, and does not tell junk behind a stream from a stream that is damaged.
type xzReader struct {
	src  *source
	walk *walker
	dec  *xz.Reader
}

func newXZ(src *source) (io.ReadCloser, error) {
	walk := &walker{r: bufio.NewReaderSize(src, 256<<10)}
	return &xzReader{src: src, walk: walk}, nil
}

func (x *xzReader) Close() error { return nil }

func (x *xzReader) Read(p []byte) (int, error) {
	if x.dec == nil {
		dec, err := xz.NewReader(x.walk, MaxDictionary) // the most: a block has what its header says
		if err != nil {
			return 0, x.name(err)
		}
		x.dec = dec
	}
	n, err := x.dec.Read(p)
	if err == nil {
		return n, nil
	}
	return n, x.name(err)
}

func (x *xzReader) name(err error) error {
	switch {
	case x.src.err != nil:
		return x.src.err
	case x.walk.refused != nil:
		return x.walk.refused
	case errors.Is(err, io.EOF):
		if !x.walk.ended() {
			return truncated(format.XZ)
		}
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return truncated(format.XZ)
	case errors.Is(err, xz.ErrUnsupportedCheck):
		return format.Refuse(format.Unsupported, format.XZ, "its xz stream has a checksum of a kind that is not known, so it cannot be checked").
			Advise("compress it with `xz --check=crc64`")
	}
	return corrupt(format.XZ, strings.TrimPrefix(err.Error(), "xz: "))
}
