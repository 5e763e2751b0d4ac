package unpack

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/ulikunitz/xz"

	"bastide/internal/image/format"
)

// xzReader names the decoder's errors. Structure is checked by a walker before it
// reaches the decoder, which would allocate whatever dictionary a block asks for.
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
		dec, err := xz.ReaderConfig{DictCap: 1 << 16}.NewReader(x.walk) // the least: a block has what its header says
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
	}
	return corrupt(format.XZ, strings.TrimPrefix(strings.TrimPrefix(err.Error(), "xz: "), "lzma: "))
}
