package unpack

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"bastide/internal/image/format"
)

// frames passes a zstd stream on to the decoder, and takes out of it what the
// decoder would do slowly: long runs of zeros, which are most of a disk.
//
// zstd writes 128 KiB of zeros as a block of four bytes. A block of another kind
// can refer to at most a window's worth of what was before it, so after more zeros
// than that it makes no difference to it how many they were. A longer run is
// therefore passed on as one window's worth, with a mark before it, by which whoever
// reads the decoder's output puts the rest back. A mark is a block of 32 bytes, 24
// of them random, that nobody who wrote the stream could know. What a frame says of
// its length and its checksum is taken out as well, and is compared with the whole
// output, which another mark at the frame's end leads to.
//
// The format is that of RFC 8878.
type frames struct {
	r       *bufio.Reader
	state   func(*frames) error // what comes next
	piece   []byte              // what was made and not yet passed on
	pass    int64               // bytes of a block's content to pass on unseen
	refused error

	window, most int64  // of the current frame: history, and the largest block, in bytes
	zeros        int64  // a run that is not passed on yet
	fill, empty  int64  // of a run that is being passed on: what is left of it, and of its current block
	after        []byte // what comes behind it, as piece
	end          note   // what the frame says of itself

	key   [24]byte
	mu    sync.Mutex
	notes []note // one for each mark
}

// note is what a mark stands for: zeros to put in, or the end of a frame.
type note struct {
	zeros  int64
	end    bool
	size   int64 // of the frame's content; -1 if it does not say
	summed bool
	sum    uint32
}

const (
	markSize = 32
	maxBlock = 128 << 10
	// What putting zeros back costs is worth it only for runs that are longer than
	// a window by this much.
	longRun = 256 << 10
	// A run is passed on when it has this much, so that a limit of what is read has
	// a chance before all of it is counted.
	longest = 1 << 30
)

func newFrames(src io.Reader) *frames {
	f := &frames{r: bufio.NewReaderSize(src, 256<<10), state: (*frames).frame}
	_, _ = rand.Read(f.key[:])
	return f
}

func (f *frames) Read(p []byte) (int, error) {
	for {
		switch {
		case len(f.piece) > 0:
			n := copy(p, f.piece)
			f.piece = f.piece[n:]
			return n, nil
		case f.empty > 0:
			n := min(int64(len(p)), f.empty)
			clear(p[:n])
			f.empty -= n
			return int(n), nil
		case f.fill > 0:
			f.empty = min(f.fill, f.most)
			f.fill -= f.empty
			f.piece = header(f.piece[:0], blockRaw, f.empty, false)
			continue
		case len(f.after) > 0:
			f.piece, f.after = f.after, f.piece[:0]
			continue
		case f.pass > 0:
			n, err := f.r.Read(p[:min(int64(len(p)), f.pass)])
			f.pass -= int64(n)
			if n > 0 {
				return n, nil
			}
			return 0, f.fail(err)
		case f.refused != nil:
			return 0, f.refused
		}
		f.piece = f.piece[:0]
		if err := f.state(f); err != nil {
			return 0, f.fail(err)
		}
	}
}

// fail remembers what is the stream's fault. io.EOF comes only from between frames.
func (f *frames) fail(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = truncated(format.Zstd)
	}
	f.refused = err
	return err
}

func (f *frames) take(n int) ([]byte, error) {
	p := make([]byte, n)
	_, err := io.ReadFull(f.r, p)
	return p, early(err)
}

// frame is between frames.
func (f *frames) frame() error {
	if _, err := f.r.Peek(1); err != nil {
		return err // io.EOF: the right place for it
	}
	magic, err := f.take(4)
	if err != nil {
		return err
	}
	switch m := binary.LittleEndian.Uint32(magic); {
	case m&^0xf == 0x184d2a50: // to be skipped
		size, err := f.take(4)
		if err != nil {
			return err
		}
		_, err = io.CopyN(io.Discard, f.r, int64(binary.LittleEndian.Uint32(size)))
		return early(err)
	case m != 0xfd2fb528:
		return junk(format.Zstd)
	}
	return f.begin()
}

// begin reads a frame's header and makes another one, without length and checksum.
func (f *frames) begin() error {
	p, err := f.take(1)
	if err != nil {
		return err
	}
	d := p[0]
	single := d&0x20 != 0
	if d&0x08 != 0 {
		return corrupt(format.Zstd, "a frame's header is not valid")
	}
	lengths := 0
	if !single {
		lengths++
	}
	dictionary := [4]int{0, 1, 2, 4}[d&3]
	content := [4]int{0, 2, 4, 8}[d>>6]
	if content == 0 && single {
		content = 1
	}
	if p, err = f.take(lengths + dictionary + content); err != nil {
		return err
	}
	f.end = note{end: true, size: -1, summed: d&4 != 0}
	if content > 0 {
		if f.end.size = contentSize(p[lengths+dictionary:]); f.end.size < 0 {
			return corrupt(format.Zstd, "a frame's header is not valid")
		}
	}
	for _, b := range p[lengths : lengths+dictionary] {
		if b != 0 {
			return format.Refuse(format.Unsupported, format.Zstd, "its zstd stream needs a dictionary that is not in it").Advise("compress it without -D")
		}
	}
	var descriptor byte
	if single { // all of its content may be referred to
		for windowSize(descriptor) < f.end.size && descriptor < 255 {
			descriptor++
		}
	} else {
		descriptor = p[0]
	}
	f.window = windowSize(descriptor)
	if f.window > MaxWindow {
		return format.Refuse(format.TooLarge, format.Zstd, "its zstd stream needs a window of more than %d MiB", MaxWindow>>20).
			Advise("compress it without --ultra and --long, or with --long=27 at most")
	}
	f.most = min(f.window, maxBlock)
	f.piece = append(f.piece, 0x28, 0xb5, 0x2f, 0xfd, 0, descriptor)
	f.state = (*frames).block
	return nil
}

func contentSize(p []byte) int64 {
	switch len(p) {
	case 1:
		return int64(p[0])
	case 2:
		return int64(binary.LittleEndian.Uint16(p)) + 256
	case 4:
		return int64(binary.LittleEndian.Uint32(p))
	}
	return int64(binary.LittleEndian.Uint64(p)) // negative: more than there can be
}

// windowSize is what a window descriptor says.
func windowSize(d byte) int64 {
	base := int64(1) << (10 + d>>3)
	return base + base/8*int64(d&7)
}
