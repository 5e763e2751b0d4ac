package qcow2

import (
	"encoding/binary"
	"io"

	"bastide/internal/image/format"
)

// Header is what an image says of itself, after it was checked.
type Header struct {
	Version     int   `json:"version"`     // 2 or 3
	VirtualSize int64 `json:"virtualSize"` // bytes of the disk
	ClusterSize int64 `json:"clusterSize"` // bytes

	l1At, l1Entries             int64
	refcountsAt, refcountsTable int64 // the refcount table's offset and length in bytes
	bits                        uint
}

const (
	prefix = 64 << 10 // enough of an image for its header and extensions

	headerV2 = 72
	minBits  = 9 // clusters of 512 bytes
	maxBits  = 21
	maxL1    = 32 << 20 // bytes; QEMU's own limit
)

// Extensions of the header that are known by name.
const (
	extEnd          = 0
	extBackingName  = 0xe2792aca
	extExternalData = 0x44415441
	extEncryption   = 0x0537be77
)

// ReadHeader reads the header of an image and says whether the image is complete
// in itself and of a kind that any consumer takes. length is the image's length in
// bytes, negative if it is not known; limit the largest disk that is taken. What
// the header names, such as a backing file, is never opened. Only the first 64 KiB
// are read.
//
// Errors: *format.Refusal, or r's.
func ReadHeader(r io.Reader, length, limit int64) (*Header, error) {
	p := make([]byte, prefix)
	n, err := io.ReadFull(r, p)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	if n < prefix {
		length = int64(n)
	}
	return ParseHeader(p[:n], length, limit)
}

// ParseHeader is ReadHeader of an image's first bytes: 64 KiB, or all there are.
func ParseHeader(p []byte, length, limit int64) (*Header, error) {
	if kind := format.Sniff(p); kind != format.QCOW2 {
		return nil, format.Instead(kind, "qcow2")
	}
	if len(p) < headerV2 {
		return nil, truncated("it ends within its header, after %d bytes", len(p))
	}
	u32 := func(at int) int64 { return int64(binary.BigEndian.Uint32(p[at:])) }
	u64 := func(at int) uint64 { return binary.BigEndian.Uint64(p[at:]) }

	h := &Header{Version: int(u32(4)), bits: uint(u32(20))}
	if h.Version != 2 && h.Version != 3 {
		return nil, unsupported("it is qcow2 of version %d, and only 2 and 3 are known", h.Version)
	}
	if h.bits < minBits || h.bits > maxBits {
		return nil, corrupt("its clusters would have 2^%d bytes; 2^%d to 2^%d are possible", h.bits, minBits, maxBits)
	}
	h.ClusterSize = 1 << h.bits
	switch {
	case u64(8) != 0 || u32(16) != 0:
		return nil, format.Refuse(format.NeedsOther, format.QCOW2, "it holds only what differs from a backing file").
			Advise("merge both with `qemu-img convert -O qcow2`")
	case u32(32) != 0:
		return nil, format.Refuse(format.Encrypted, format.QCOW2, "it is encrypted").Advise("take the Factory's image as it is")
	case u32(60) != 0:
		return nil, unsupported("it holds %d internal snapshots, of which an import would take none", u32(60))
	}
	if err := h.features(p, u32, u64); err != nil {
		return nil, err
	}
	if err := h.sizes(u32, u64, length, limit); err != nil {
		return nil, err
	}
	return h, nil
}

// features are refused altogether if an image cannot be read without knowing
// them: a consumer of unknown age is to take it.
func (h *Header) features(p []byte, u32 func(int) int64, u64 func(int) uint64) error {
	if h.Version == 2 {
		return nil // extensions came with version 3, except for two that are only names
	}
	if len(p) < headerLength {
		return truncated("it ends within its header, after %d bytes", len(p))
	}
	incompatible, length := u64(72), u32(100)
	switch {
	case length < headerLength || length%8 != 0 || length > h.ClusterSize:
		return corrupt("its header would have %d bytes", length)
	case incompatible&4 != 0:
		return external()
	case incompatible&1 != 0:
		return corrupt("it is marked as not closed properly").Advise("run `qemu-img check -r leaks` on it, or fetch it again")
	case incompatible&2 != 0:
		return corrupt("it is marked as corrupt").Advise("fetch it again")
	case incompatible&8 != 0:
		return unsupported("its clusters are compressed in another way than zlib's, which older programs cannot read").
			Advise("convert it with `qemu-img convert -O qcow2`")
	case incompatible&16 != 0:
		return unsupported("it has extended L2 entries, which older programs cannot read").
			Advise("convert it with `qemu-img convert -O qcow2`")
	case incompatible != 0:
		return unsupported("it needs features that are not known (%#x)", incompatible)
	case u32(96) > 6:
		return corrupt("its refcounts would have 2^%d bits", u32(96))
	}
	return extensions(p, length, h.ClusterSize)
}

// extensions walks the list after the header. Its entries are padded to 8 bytes.
func extensions(p []byte, at, cluster int64) error {
	end := min(cluster, int64(len(p)))
	for at+8 <= end {
		kind, length := binary.BigEndian.Uint32(p[at:]), int64(binary.BigEndian.Uint32(p[at+4:]))
		switch kind {
		case extEnd:
			return nil
		case extExternalData:
			return external()
		case extEncryption:
			return format.Refuse(format.Encrypted, format.QCOW2, "it is encrypted").Advise("take the Factory's image as it is")
		case extBackingName:
			return format.Refuse(format.NeedsOther, format.QCOW2, "it names the format of a backing file").
				Advise("merge both with `qemu-img convert -O qcow2`")
		}
		if length > end-at-8 {
			break
		}
		at += 8 + (length+7)&^7
	}
	if at == end && end == cluster { // the list may fill the cluster to its end
		return nil
	}
	return corrupt("the list of extensions in its header does not end")
}

// sizes checks that what the header announces can be in the file.
func (h *Header) sizes(u32 func(int) int64, u64 func(int) uint64, length, limit int64) error {
	size, l1Entries, l1At := u64(24), u32(36), u64(40)
	refcountsAt, refcountClusters := u64(48), u32(56)
	switch {
	case size == 0:
		return corrupt("its disk has no bytes")
	case size > uint64(limit):
		return format.Refuse(format.TooLarge, format.QCOW2, "its disk has %d bytes, and %d are the limit", size, limit).Advise(format.Fit)
	case size%512 != 0:
		return corrupt("its disk has %d bytes, which is no multiple of 512", size)
	}
	h.VirtualSize = int64(size)
	perL1 := h.ClusterSize / 8 * h.ClusterSize
	needed := (h.VirtualSize + perL1 - 1) / perL1
	switch {
	case l1Entries < needed || l1Entries*8 > maxL1:
		return corrupt("its first table has %d entries, and a disk of %d bytes needs %d", l1Entries, size, needed)
	case refcountClusters == 0 || refcountClusters > 8<<20>>h.bits+1:
		return corrupt("its refcount table would have %d clusters", refcountClusters)
	}
	h.l1Entries = needed
	h.refcountsTable = refcountClusters << h.bits
	var err error
	if h.l1At, err = h.place("first table", l1At, needed*8, length); err != nil {
		return err
	}
	h.refcountsAt, err = h.place("refcount table", refcountsAt, h.refcountsTable, length)
	return err
}

// place checks that something aligned to clusters can be where the image says.
func (h *Header) place(what string, at uint64, size, length int64) (int64, error) {
	switch {
	case at < uint64(h.ClusterSize) || at%uint64(h.ClusterSize) != 0 || at >= 1<<56:
		return 0, corrupt("its %s is said to be at byte %d, where none can be", what, at)
	case length >= 0 && int64(at)+size > length:
		return 0, truncated("its %s reaches to byte %d, and it ends after %d", what, int64(at)+size, length)
	}
	return int64(at), nil
}

func external() *format.Refusal {
	return format.Refuse(format.NeedsOther, format.QCOW2, "its content is in an external data file").
		Advise("merge both with `qemu-img convert -O qcow2`")
}

func corrupt(text string, args ...any) *format.Refusal {
	return format.Refuse(format.Corrupt, format.QCOW2, text, args...).Advise("fetch it again")
}

func truncated(text string, args ...any) *format.Refusal {
	return format.Refuse(format.Truncated, format.QCOW2, text, args...).Advise("fetch it again, to its end")
}

func unsupported(text string, args ...any) *format.Refusal {
	return format.Refuse(format.Unsupported, format.QCOW2, text, args...).
		Advise("write it anew with `qemu-img convert -O qcow2`, or take the Factory's scaleway image")
}
