package unpack

import (
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"bastide/internal/image/format"
)

// zstdReader names the decoder's errors.
type zstdReader struct {
	src *source
	dec *zstd.Decoder
}

func newZstd(src *source) (io.ReadCloser, error) {
	dec, err := zstd.NewReader(src,
		zstd.WithDecoderConcurrency(2), // reading blocks and executing them: more would only wait
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(MaxWindow),
		// A frame without a window needs all of its content as history; this is
		// the limit for those.
		zstd.WithDecoderMaxMemory(MaxWindow))
	if err != nil {
		return nil, err
	}
	return &zstdReader{src, dec}, nil
}

func (z *zstdReader) Close() error {
	z.dec.Close()
	return nil
}

func (z *zstdReader) Read(p []byte) (int, error) {
	n, err := z.dec.Read(p)
	if err == nil {
		return n, nil
	}
	return n, z.name(err)
}

func (z *zstdReader) name(err error) error {
	switch {
	case z.src.err != nil:
		return z.src.err
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return truncated(format.Zstd)
	case errors.Is(err, zstd.ErrMagicMismatch): // the first frame was recognised before
		return junk(format.Zstd)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return format.Refuse(format.TooLarge, format.Zstd, "its zstd stream needs a window of more than %d MiB", MaxWindow>>20).
			Advise("compress it without --ultra and --long, or with --long=27 at most")
	case errors.Is(err, zstd.ErrUnknownDictionary):
		return format.Refuse(format.Unsupported, format.Zstd, "its zstd stream needs a dictionary that is not in it").
			Advise("compress it without -D")
	case errors.Is(err, zstd.ErrCRCMismatch):
		return corrupt(format.Zstd, "the checksum is wrong")
	}
	return corrupt(format.Zstd, strings.TrimPrefix(err.Error(), "invalid input: "))
}
