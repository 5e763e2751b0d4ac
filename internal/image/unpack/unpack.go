// Package unpack decompresses zstd and xz streams of any origin with bounded
// memory, and takes nothing for whole that is not: a stream that ends early, a
// wrong checksum and bytes after the end are refusals.
package unpack

import (
	"errors"
	"io"

	"bastide/internal/image/format"
)

// The most history that a stream may ask for, in bytes. What needs more is refused
// instead of being given the memory. zstd's own program has the same limit unless
// told otherwise; xz's strongest setting needs 64 MiB.
const (
	MaxWindow     = 128 << 20
	MaxDictionary = 64 << 20
)

// NewReader decompresses src, which is of kind zstd or xz. Its Read fails with
//
//   - src's own error, unchanged, if src failed;
//   - a *format.Refusal if what src gave is not a whole and sound stream. Bytes that
//     were read before may be wrong then.
//
// Close frees what the decoder holds; it does not close src.
func NewReader(kind format.Kind, src io.Reader) (io.ReadCloser, error) {
	s := &source{r: src}
	switch kind {
	case format.Zstd:
		return newZstd(s)
	case format.XZ:
		return newXZ(s)
	}
	return nil, errors.New("unpack: nothing to decompress in " + string(kind))
}

// Block is a piece of what was decompressed: bytes, and zeros that follow them.
type Block struct {
	Data  []byte
	Zeros int64

	whole []byte // what Data is a part of, to be used again
}

// Blocks is what a reader from NewReader may be as well: it gives its content away
// without a copy, and long runs of zeros as a number.
type Blocks interface {
	// Next is the next block, with Read's errors, io.EOF at the end among them.
	Next() (Block, error)
	// Free gives a block from Next back; the reader waits for it.
	Free(Block)
}

// source remembers how its reader failed, because decoders take some failures for
// the stream's end and give others a new name.
type source struct {
	r   io.Reader
	err error // other than io.EOF
}

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func truncated(k format.Kind) *format.Refusal {
	return format.Refuse(format.Truncated, k, "its %s stream ends early", k).Advise("fetch it again, to its end")
}

func corrupt(k format.Kind, why string) *format.Refusal {
	return format.Refuse(format.Corrupt, k, "its %s stream is damaged: %s", k, why).Advise("fetch it again")
}

func junk(k format.Kind) *format.Refusal {
	return format.Refuse(format.TrailingJunk, k, "something that is not %s follows its last %s stream", k, k).Advise("fetch it again")
}
