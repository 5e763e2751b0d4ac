package unpack

import (
	"encoding/binary"

	"bastide/internal/image/format"
)

// Types of blocks.
const (
	blockRaw = iota
	blockRun
	blockCompressed
)

func (f *frames) block() error {
	p, err := f.take(3)
	if err != nil {
		return err
	}
	h := int64(p[0]) | int64(p[1])<<8 | int64(p[2])<<16
	last, kind, size := h&1 != 0, h>>1&3, h>>3
	if kind > blockCompressed || size > f.most {
		return corrupt(format.Zstd, "a block's header is not valid")
	}
	if last {
		f.state = (*frames).tail
	}
	if kind == blockRun {
		value, err := f.take(1)
		switch {
		case err != nil:
			return err
		case value[0] == 0 && f.zeros < longest:
			f.zeros += size
			return nil
		}
		f.run()
		if value[0] == 0 {
			f.zeros = size
		} else {
			f.put(blockRun, size, value[0])
		}
		return nil
	}
	f.run()
	f.put(int(kind), size)
	f.pass = size
	return nil
}

// header makes a block's header.
func header(p []byte, kind int, size int64, last bool) []byte {
	h := size<<3 | int64(kind)<<1
	if last {
		h |= 1
	}
	return append(p, byte(h), byte(h>>8), byte(h>>16))
}

// put makes a block's header, and its content if it is short, behind the run of
// zeros that is being passed on.
func (f *frames) put(kind int, size int64, content ...byte) {
	f.after = append(header(f.after, kind, size, false), content...)
}

// run begins to pass on the zeros that came last. They are written out, because the
// decoder copies bytes ten times faster than it repeats one.
func (f *frames) run() {
	if rest := f.zeros - f.window; rest >= longRun {
		f.piece = f.mark(f.piece, note{zeros: rest}, false)
		f.zeros = f.window
	}
	f.fill, f.zeros = f.zeros, 0
}

func (f *frames) mark(p []byte, n note, last bool) []byte {
	f.mu.Lock()
	number := len(f.notes)
	f.notes = append(f.notes, n)
	f.mu.Unlock()
	p = append(header(p, blockRaw, markSize, last), f.key[:]...)
	return binary.BigEndian.AppendUint64(p, uint64(number))
}

// tail is behind a frame's last block.
func (f *frames) tail() error {
	f.run()
	if f.end.summed {
		p, err := f.take(4)
		if err != nil {
			return err
		}
		f.end.sum = binary.LittleEndian.Uint32(p)
	}
	f.after = f.mark(f.after, f.end, true)
	f.state = (*frames).frame
	return nil
}

// note is what a mark stands for. ok is false for what is no mark.
func (f *frames) note(p []byte, number int) (n note, ok bool) {
	if len(p) != markSize || string(p[:len(f.key)]) != string(f.key[:]) {
		return note{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if binary.BigEndian.Uint64(p[len(f.key):]) != uint64(number) || number >= len(f.notes) {
		return note{}, false
	}
	return f.notes[number], true
}

// all says whether every mark has come back.
func (f *frames) all(seen int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return seen == len(f.notes)
}
