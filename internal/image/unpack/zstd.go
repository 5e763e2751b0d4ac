package unpack

import (
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"bastide/internal/image/format"
)

// zstdReader decodes in goroutines of its own, ahead of whoever reads.
type zstdReader struct {
	src    *source
	frames *frames
	dec    *zstd.Decoder

	full chan Block
	free chan []byte
	quit chan struct{}
	once sync.Once
	err  error // after full is closed
	now  Block // what Read has begun

	// The decoding side's.
	part  []byte
	seen  int // marks
	sum   *xxhash.Digest
	frame int64 // bytes of the current frame's content
}

// What is decoded ahead: one block is filled while another is used, and one waits.
const (
	blockSize = 512 << 10
	blocks    = 3
)

func newZstd(src *source) (io.ReadCloser, error) {
	z := &zstdReader{src: src, frames: newFrames(src), sum: xxhash.New(),
		full: make(chan Block, blocks), free: make(chan []byte, blocks), quit: make(chan struct{})}
	dec, err := zstd.NewReader(z.frames,
		zstd.WithDecoderConcurrency(2), // reading blocks and executing them: more would only wait
		// With little memory it would move the whole window for each MB: with the largest
		// one, which kernels are packed with, a disk would take a minute instead of two
		// seconds. This way a window is held twice, so only such streams take much.
		zstd.WithDecoderLowmem(false),
		zstd.IgnoreChecksum(true), // there is none any more; it is checked in ended
		zstd.WithDecoderMaxWindow(MaxWindow))
	if err != nil {
		return nil, err
	}
	z.dec = dec
	for range blocks {
		z.free <- make([]byte, 0, blockSize)
	}
	go z.decode()
	return z, nil
}

// decode gives out what the decoder writes, block by block of the stream.
func (z *zstdReader) decode() {
	defer close(z.full)
	_, err := z.dec.WriteTo(decoded{z})
	z.dec.Close() // waits for the goroutines that read the source
	if err == nil && !z.frames.all(z.seen) {
		err = errors.New("the decoder has lost a mark") // a mistake here, not in the stream
	}
	if err == nil {
		err = z.send(0)
	}
	if err = z.name(err); err == nil {
		err = io.EOF
	}
	z.err = err
}

// decoded is where the decoder writes: each block of the stream at once.
type decoded struct{ *zstdReader }

var errQuit = errors.New("nobody reads any more")

func (z decoded) Write(p []byte) (int, error) {
	if n, ok := z.frames.note(p, z.seen); ok {
		z.seen++
		if n.end {
			return len(p), z.ended(n)
		}
		return len(p), z.skip(n.zeros)
	}
	total := len(p)
	_, _ = z.sum.Write(p)
	z.frame += int64(total)
	for len(p) > 0 {
		if z.part == nil {
			select {
			case z.part = <-z.free:
			case <-z.quit:
				return 0, errQuit
			}
		}
		n := min(len(p), blockSize-len(z.part))
		z.part = append(z.part, p[:n]...)
		p = p[n:]
		if len(z.part) == blockSize {
			if err := z.send(0); err != nil {
				return 0, err
			}
		}
	}
	return total, nil
}

// zeros are what checksums of holes are made from; they stay in the nearest cache.
var zeros [16 << 10]byte

func (z *zstdReader) skip(n int64) error {
	z.frame += n
	for left := n; left > 0; left -= int64(len(zeros)) {
		_, _ = z.sum.Write(zeros[:min(left, int64(len(zeros)))])
	}
	return z.send(n)
}

func (z *zstdReader) ended(n note) error {
	switch {
	case n.summed && uint32(z.sum.Sum64()) != n.sum:
		return corrupt(format.Zstd, "the checksum is wrong")
	case n.size >= 0 && n.size != z.frame:
		return corrupt(format.Zstd, "a frame has another length than it says")
	}
	z.sum.Reset()
	z.frame = 0
	return nil
}

func (z *zstdReader) send(hole int64) error {
	if len(z.part) == 0 && hole == 0 {
		return nil
	}
	select {
	case z.full <- Block{z.part, hole, z.part}:
		z.part = nil
		return nil
	case <-z.quit:
		return errQuit
	}
}

// Next is the next block of what was decompressed.
func (z *zstdReader) Next() (Block, error) {
	if z.now.Zeros > 0 || len(z.now.Data) > 0 {
		b := z.now
		z.now = Block{}
		return b, nil
	}
	b, ok := <-z.full
	if !ok {
		return Block{}, z.err
	}
	return b, nil
}

// Free gives a block back.
func (z *zstdReader) Free(b Block) {
	if b.whole != nil {
		z.free <- b.whole[:0]
	}
}

func (z *zstdReader) Read(p []byte) (int, error) {
	b, err := z.Next()
	if err != nil || len(p) == 0 {
		z.now = b
		return 0, err
	}
	if len(b.Data) > 0 {
		n := copy(p, b.Data)
		b.Data = b.Data[n:]
		if len(b.Data) == 0 {
			z.Free(b)
			b = Block{Zeros: b.Zeros}
		}
		z.now = b
		return n, nil
	}
	n := int(min(int64(len(p)), b.Zeros))
	clear(p[:n])
	z.now = Block{Zeros: b.Zeros - int64(n)}
	return n, nil
}

// Close ends the decoding, after the read of the source that is under way.
func (z *zstdReader) Close() error {
	z.once.Do(func() {
		close(z.quit)
		for range z.full {
		}
	})
	return nil
}

func (z *zstdReader) name(err error) error {
	switch {
	case err == nil:
		if z.src.err != nil { // a decoder may take an error for the end
			return z.src.err
		}
		if r := format.Refused(z.frames.refused); r != nil {
			return r
		}
		return nil
	case z.src.err != nil:
		return z.src.err
	case format.Refused(z.frames.refused) != nil:
		return z.frames.refused
	case format.Refused(err) != nil:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return truncated(format.Zstd)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return format.Refuse(format.TooLarge, format.Zstd, "its zstd stream needs more memory than it may have").Advise("compress it without --ultra and --long")
	}
	return corrupt(format.Zstd, strings.TrimPrefix(err.Error(), "invalid input: "))
}
