package talosdisk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// qcow2 is how a QCOW2 image begins, as QEMU's docs/interop/qcow2 lays it down.
// All numbers are big-endian; what follows the snapshots is of version 3 only.
type qcow2 struct {
	Magic                    [4]byte
	Version                  uint32
	BackingOffset            uint64
	BackingLength            uint32
	ClusterBits              uint32
	Size                     uint64
	Crypt                    uint32
	L1Entries                uint32
	L1Offset                 uint64
	RefcountOffset           uint64
	RefcountClusters         uint32
	Snapshots                uint32
	SnapshotsOffset          uint64
	Incompatible, Compatible uint64
	Autoclear                uint64
	RefcountOrder            uint32
	HeaderLength             uint32
}

const (
	headerV2, headerV3 = 72, 104
	// compressionBit of the incompatible features says that the header names
	// a compression other than deflate. All others are refused.
	compressionBit = 1 << 3
	largestL1      = 32 << 20 // bytes, as QEMU's
	largestDisk    = 10_000e9 // block storage's largest volume, bytes
)

// parse reads a header and refuses what an import cannot take. It reports the
// kind of compressed clusters.
func (h *qcow2) parse(r io.ReaderAt) (zstd bool, err error) {
	b := make([]byte, headerV3+8)
	n, err := r.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if n < headerV2 || !bytes.Equal(b[:4], []byte("QFI\xfb")) {
		return false, errors.New("it is no QCOW2 image")
	}
	if err := binary.Read(bytes.NewReader(b), binary.BigEndian, h); err != nil {
		return false, err
	}
	switch {
	case h.Version == 2:
		h.Incompatible, h.RefcountOrder, h.HeaderLength = 0, 4, headerV2
	case h.Version != 3:
		return false, fmt.Errorf("version %d of QCOW2 is not known", h.Version)
	case n < headerV3:
		return false, errors.New("its header is cut short")
	}
	if err := h.check(); err != nil {
		return false, err
	}
	if h.Incompatible&compressionBit != 0 {
		if n <= headerV3 || h.HeaderLength <= headerV3 || b[headerV3] > 1 {
			return false, errors.New("its compression is not known")
		}
		zstd = b[headerV3] == 1
	}
	return zstd, nil
}

func (h *qcow2) check() error {
	size := uint64(1) << min(h.ClusterBits, 32)
	switch {
	case h.BackingOffset != 0 || h.BackingLength != 0:
		return errors.New("it needs a backing file")
	case h.ClusterBits < 9 || h.ClusterBits > 21:
		return fmt.Errorf("clusters of 2^%d bytes are not possible", h.ClusterBits)
	case h.Size == 0 || h.Size > largestDisk || h.Size%sector != 0:
		return fmt.Errorf("a disk of %d bytes is not possible", h.Size)
	case h.Crypt != 0:
		return errors.New("it is encrypted")
	case h.Incompatible&^uint64(compressionBit) != 0:
		return fmt.Errorf("it has features (%#x) that are not known, or was not closed cleanly", h.Incompatible)
	case h.HeaderLength != headerV2 && (h.HeaderLength < headerV3 || h.HeaderLength%8 != 0 || uint64(h.HeaderLength) > size):
		return fmt.Errorf("a header of %d bytes is not possible", h.HeaderLength)
	case h.RefcountOrder > 6 || h.RefcountOffset == 0 || h.RefcountOffset%size != 0:
		return errors.New("its reference counts are damaged")
	case uint64(h.L1Entries)*8 > largestL1 || uint64(h.L1Entries) < (h.Size+size*size/8-1)/(size*size/8):
		return fmt.Errorf("a first table of %d entries does not fit the disk", h.L1Entries)
	case h.L1Offset == 0 || h.L1Offset%size != 0:
		return errors.New("its first table is nowhere")
	}
	return nil
}

// QCOW2 is a QCOW2 image whose tables are sound. It reads as the disk in it.
type QCOW2 struct {
	file  io.ReaderAt
	bytes int64 // of the file
	head  qcow2
	zstd  bool
	l1    []uint64

	table   []uint64 // the second-level table that was read last
	tableOf int64
}

// OpenQCOW2 reads the tables of an image in a file of so many bytes, all of
// them, and refuses one that is cut short or refers to what is not there. The
// result may be used by one goroutine at a time.
func OpenQCOW2(file io.ReaderAt, size int64) (*QCOW2, error) {
	q := &QCOW2{file: file, bytes: size, tableOf: -1}
	var err error
	if q.zstd, err = q.head.parse(file); err != nil {
		return nil, err
	}
	if !q.holds(q.head.RefcountOffset, uint64(q.head.RefcountClusters)<<q.head.ClusterBits) {
		return nil, errors.New("it is cut short: its reference counts are missing")
	}
	raw := make([]byte, int(q.head.L1Entries)*8)
	if !q.holds(q.head.L1Offset, uint64(len(raw))) {
		return nil, errors.New("it is cut short: its first table is missing")
	}
	if _, err := file.ReadAt(raw, int64(q.head.L1Offset)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	perL1 := q.cluster() * q.cluster() / 8
	q.l1 = numbers(raw)[:(q.Size()+perL1-1)/perL1] // what is behind the disk's end nobody reads
	return q, q.checkTables()
}

func numbers(raw []byte) []uint64 {
	out := make([]uint64, len(raw)/8)
	for i := range out {
		out[i] = binary.BigEndian.Uint64(raw[i*8:])
	}
	return out
}

// Size is the size of the disk in bytes.
func (q *QCOW2) Size() int64 { return int64(q.head.Size) }

// holds says whether the file has so many bytes from an offset on.
func (q *QCOW2) holds(offset, length uint64) bool {
	return offset <= uint64(q.bytes) && length <= uint64(q.bytes)-offset
}

func (q *QCOW2) cluster() int64 { return 1 << q.head.ClusterBits }

const (
	offsetMask    = 0x00fffffffffffe00
	compressedBit = uint64(1) << 62
	reservedL1    = 0x7f000000000001ff
	reservedL2    = 0x3f000000000001fe
)

// checkTables walks over every cluster of the disk.
func (q *QCOW2) checkTables() error {
	perTable := q.cluster() / 8
	for at, entry := range q.l1 {
		if entry == 0 {
			continue
		}
		if entry&reservedL1 != 0 || !q.aligned(entry) || !q.holds(entry&offsetMask, uint64(q.cluster())) {
			return fmt.Errorf("its second table %d is missing or nowhere", at)
		}
		table, err := q.second(int64(at))
		if err != nil {
			return err
		}
		for k, e := range table {
			guest := (int64(at)*perTable + int64(k)) * q.cluster()
			if e != 0 && guest < q.Size() && !q.sound(e, min(q.cluster(), q.Size()-guest)) {
				return fmt.Errorf("what it says of byte %d of the disk is missing or nowhere", guest)
			}
		}
	}
	return nil
}

func (q *QCOW2) aligned(entry uint64) bool {
	return int64(entry&offsetMask)%q.cluster() == 0 && entry&offsetMask != 0
}

// sound says whether an entry's content is in the file.
func (q *QCOW2) sound(e uint64, length int64) bool {
	if e&compressedBit != 0 {
		offset, _ := q.compressedAt(e)
		return e&copied == 0 && q.holds(offset, 1)
	}
	if e&reservedL2 != 0 || (e&1 != 0 && q.head.Version == 2) {
		return false
	}
	if e&1 != 0 && e&offsetMask == 0 {
		return true
	}
	return q.aligned(e) && q.holds(e&offsetMask, uint64(length))
}

// second reads a second-level table.
func (q *QCOW2) second(at int64) ([]uint64, error) {
	if q.tableOf == at {
		return q.table, nil
	}
	raw := make([]byte, q.cluster())
	if _, err := q.file.ReadAt(raw, int64(q.l1[at]&offsetMask)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	q.table, q.tableOf = numbers(raw), at
	return q.table, nil
}

// PeekSize reads the size of the disk in an image, in bytes, from the header
// alone.
func PeekSize(file io.ReaderAt) (int64, error) {
	var h qcow2
	_, err := h.parse(file)
	return int64(h.Size), err
}
