package unpack

import (
	"bufio"
	"errors"
	"io"

	"bastide/internal/image/format"
)

// walker passes an xz file on and follows its structure: streams of blocks, blocks
// of LZMA2 chunks, each of which says how long it is. So it knows where a block's
// header asks for memory, and whether what comes after a stream is another one. It
// does not check checksums; the decoder does. The format is that of
// https://tukaani.org/xz/xz-file-format.txt.
type walker struct {
	r       *bufio.Reader
	state   func(*walker) error // what comes next; nil: a new stream, padding or the end
	piece   []byte              // structure that was read and not yet passed on
	pass    int64               // bytes of content to pass on unseen
	block   int64               // bytes of the current block's content so far, for its padding
	check   int64               // bytes of each block's checksum
	refused error
	began   bool
}

// ended says whether the end would be right here.
func (w *walker) ended() bool { return w.state == nil && len(w.piece) == 0 && w.pass == 0 && w.began }

func (w *walker) Read(p []byte) (int, error) {
	for len(p) > 0 {
		switch {
		case len(w.piece) > 0:
			n := copy(p, w.piece)
			w.piece = w.piece[n:]
			return n, nil
		case w.pass > 0:
			if _, err := w.r.Peek(1); err != nil { // the decoder takes a read of nothing for the end
				return 0, early(err)
			}
			n, err := w.r.Read(p[:min(int64(len(p)), w.pass)])
			w.pass -= int64(n)
			return n, err
		}
		if err := w.step(); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

func (w *walker) step() error {
	if w.refused != nil {
		return w.refused
	}
	next := w.state
	if next == nil {
		next = (*walker).stream
	}
	err := next(w)
	if r := format.Refused(err); r != nil {
		w.refused = r
	}
	return err
}

func early(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// take reads n bytes of structure, to be looked at and passed on.
func (w *walker) take(n int) ([]byte, error) {
	old := len(w.piece)
	w.piece = append(w.piece, make([]byte, n)...)
	_, err := io.ReadFull(w.r, w.piece[old:])
	if err != nil {
		w.piece = nil
		return nil, early(err)
	}
	return w.piece[old:], nil
}

var checkSizes = [16]int64{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

// stream is at the beginning, and after each stream.
func (w *walker) stream() error {
	if _, err := w.r.Peek(1); err != nil {
		return err // io.EOF: the right place for it
	}
	p, err := w.take(4)
	if err != nil {
		if w.began {
			return junk(format.XZ)
		}
		return err
	}
	if w.began && string(p) == "\x00\x00\x00\x00" {
		return nil // padding between streams
	}
	if string(p) != "\xfd7zX" {
		return junk(format.XZ)
	}
	w.began = true
	if p, err = w.take(8); err != nil {
		return err
	}
	if string(p[:2]) != "Z\x00" || p[2] != 0 || p[3] > 15 {
		return corrupt(format.XZ, "a stream's header is not valid")
	}
	w.check = checkSizes[p[3]]
	w.state = (*walker).header
	return nil
}

// header is a block's, or the index.
func (w *walker) header() error {
	p, err := w.take(1)
	if err != nil {
		return err
	}
	if p[0] == 0 {
		w.block = 1
		w.state = (*walker).index
		return nil
	}
	if p, err = w.take(4*int(p[0]) + 3); err != nil { // with the size byte, a multiple of four
		return err
	}
	w.block = 0
	w.state = (*walker).chunk
	return filters(p)
}

// filters looks at the filters in a block's header, from its flags on.
func filters(p []byte) error {
	flags, p := p[0], p[1:]
	for _, present := range []bool{flags&0x40 != 0, flags&0x80 != 0} { // compressed, uncompressed size
		if present {
			if _, p = number(p); p == nil {
				return corrupt(format.XZ, "a block's header is not valid")
			}
		}
	}
	if flags&0x3f != 0 { // more than one filter, or flags of tomorrow
		return format.Refuse(format.Unsupported, format.XZ, "its xz stream uses filters besides LZMA2").Advise("compress it without --x86, --delta and the like")
	}
	if len(p) < 3 || p[0] != 0x21 || p[1] != 1 {
		return format.Refuse(format.Unsupported, format.XZ, "its xz stream is compressed in another way than with LZMA2").Advise("compress it with `xz` or `zstd`")
	}
	size := dictionary(p[2])
	if size == 0 {
		return corrupt(format.XZ, "a block's header is not valid")
	}
	if size > MaxDictionary {
		return format.Refuse(format.TooLarge, format.XZ, "its xz stream needs a dictionary of %d MiB, and %d are the limit", size>>20, MaxDictionary>>20).
			Advise("compress it with `xz -9` at most")
	}
	return nil
}

// dictionary is the size in bytes that a filter's property stands for, 0 for none:
// 2 or 3 times a power of two, and 4 GiB less a byte at last.
func dictionary(property byte) int64 {
	switch {
	case property > 40:
		return 0
	case property == 40:
		return 1<<32 - 1
	}
	return int64(2|property&1) << (property/2 + 11)
}

// number reads a number of seven bits a byte; nil for what is left if it has no end.
func number(p []byte) (uint64, []byte) {
	var v uint64
	for i := range min(9, len(p)) {
		v |= uint64(p[i]&0x7f) << (7 * i)
		if p[i] < 0x80 {
			return v, p[i+1:]
		}
	}
	return 0, nil
}

// chunk is an LZMA2 chunk's header: a control byte, sizes, and perhaps properties.
func (w *walker) chunk() error {
	p, err := w.take(1)
	if err != nil {
		return err
	}
	control, more := p[0], 0
	switch {
	case control == 0:
		w.block++
		w.pass = -w.block&3 + w.check
		w.state = (*walker).header
		return nil
	case control <= 2:
		more = 2
	case control < 0x80:
		return corrupt(format.XZ, "a chunk's header is not valid")
	case control < 0xc0:
		more = 4
	default:
		more = 5
	}
	if p, err = w.take(more); err != nil {
		return err
	}
	at := 0
	if control >= 0x80 {
		at = 2 // the compressed size is behind the uncompressed one
	}
	w.pass = int64(p[at])<<8 + int64(p[at+1]) + 1
	w.block += int64(1+more) + w.pass
	return nil
}

// index lists the blocks, and is padded to four bytes.
func (w *walker) index() error {
	count, err := w.number()
	if err != nil {
		return err
	}
	left := 2 * count
	w.state = func(w *walker) error {
		if left > 0 {
			left--
			_, err := w.number()
			return err
		}
		w.pass = -w.block&3 + 4 + 12 // padding, checksum, the stream's footer
		w.state = nil
		return nil
	}
	return nil
}

func (w *walker) number() (uint64, error) {
	var v uint64
	for i := range 9 {
		p, err := w.take(1)
		if err != nil {
			return 0, err
		}
		w.block++
		v |= uint64(p[0]&0x7f) << (7 * i)
		if p[0] < 0x80 {
			return v, nil
		}
	}
	return 0, corrupt(format.XZ, "its index is not valid")
}
