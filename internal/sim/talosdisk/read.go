package talosdisk

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// ReadAt reads the disk.
func (q *QCOW2) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= q.Size() {
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), q.Size()-off)]
	for done := int64(0); done < int64(len(want)); {
		in := (off + done) % q.cluster()
		n := min(q.cluster()-in, int64(len(want))-done)
		if err := q.readCluster(want[done:done+n], (off+done)/q.cluster(), in); err != nil {
			return int(done), err
		}
		done += n
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(want), nil
}

// readCluster reads a part of one cluster of the disk.
func (q *QCOW2) readCluster(p []byte, guest, in int64) error {
	perTable := q.cluster() / 8
	clear(p)
	if q.l1[guest/perTable] == 0 {
		return nil
	}
	table, err := q.second(guest / perTable)
	if err != nil {
		return err
	}
	switch e := table[guest%perTable]; {
	case e&compressedBit != 0:
		whole, err := q.inflate(e)
		copy(p, whole[min(in, int64(len(whole))):])
		return err
	case e == 0 || e&1 != 0:
		return nil
	default:
		if _, err := q.file.ReadAt(p, int64(e&offsetMask)+in); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	}
}

// compressedAt is where a compressed cluster begins, and how many bytes it takes
// at most.
func (q *QCOW2) compressedAt(e uint64) (offset, length uint64) {
	split := 62 - (q.head.ClusterBits - 8)
	offset = e & (1<<split - 1)
	sectors := (e&^(copied|compressedBit))>>split + 1
	return offset, sectors*sector - offset%sector
}

// inflate reads a compressed cluster. The last sectors of a file may be missing,
// as they are padding.
func (q *QCOW2) inflate(e uint64) ([]byte, error) {
	offset, length := q.compressedAt(e)
	raw := make([]byte, length)
	n, err := q.file.ReadAt(raw, int64(offset))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	from := io.Reader(bytes.NewReader(raw[:n]))
	if q.zstd {
		d, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
		if err != nil {
			return nil, err
		}
		defer d.Close()
		from = d
	} else {
		from = flate.NewReader(from)
	}
	out := make([]byte, q.cluster())
	_, err = io.ReadFull(from, out)
	return out, err
}
