// Package imagetest makes disks as Talos's images are, for tests and benchmarks:
// with a partition table that is right, whatever size, and content that is the
// same each time.
package imagetest

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"unicode/utf16"
)

// Disk is a disk that is made while it is read.
type Disk struct {
	Size  int64
	front []byte // protective MBR, header, entries
	back  []byte // entries, header
	data  []Extent
	boot  map[int64][]byte // what file systems begin with, by offset
}

// Extent is a part of a disk that is not empty.
type Extent struct {
	Offset, Length int64 // multiples of 64 KiB
	// Dense content cannot be compressed; other content is like programs and comes
	// down to about half.
	Dense bool
}

// Fresh are the partitions of a fresh Talos image for BIOS and UEFI.
var Fresh = []string{"EFI", "BIOS", "BOOT", "META"}

const (
	sector  = 512
	entries = 128
	block   = 64 << 10
	mib     = 1 << 20
)

// New is a disk with these partitions, which share its room, and nothing in them
// but data and what the file systems of EFI and BOOT begin with. size is a multiple of 512 and at least 3 MiB.
func New(size int64, labels []string, data ...Extent) *Disk {
	d := &Disk{Size: size, data: data, boot: map[int64][]byte{}}
	last := size/sector - 1
	table := make([]byte, entries*128)
	share := (size/mib - 2) / int64(max(len(labels), 1)) * mib / sector
	for i, label := range labels {
		e := table[i*128:]
		e[0], e[16] = byte(i+1), byte(i+1) // types and GUIDs do not matter here, but must not be zero
		first := int64(mib/sector) + int64(i)*share
		binary.LittleEndian.PutUint64(e[32:], uint64(first))
		binary.LittleEndian.PutUint64(e[40:], uint64(first+share-1))
		if text := begins(label); text != nil {
			d.boot[first*sector] = text
		}
		for j, u := range utf16.Encode([]rune(label)) {
			binary.LittleEndian.PutUint16(e[56+2*j:], u)
		}
	}
	sum := crc32.ChecksumIEEE(table)
	d.front = make([]byte, 2*sector, 2*sector+len(table))
	d.front[446+4] = 0xee
	binary.LittleEndian.PutUint32(d.front[446+8:], 1)
	binary.LittleEndian.PutUint32(d.front[446+12:], uint32(min(last, 1<<32-1)))
	d.front[510], d.front[511] = 0x55, 0xaa
	copy(d.front[sector:], header(1, last, last, 2, sum))
	d.front = append(d.front, table...)
	d.back = append(table, header(last, 1, last, last-32, sum)...)
	return d
}

// begins is the first sector of a partition's file system, as far as its kind shows
// there.
func begins(label string) []byte {
	p := make([]byte, sector)
	switch label {
	case "EFI":
		copy(p, "\xeb\x58\x90mkfs.fat")
		copy(p[82:], "FAT32   ")
		p[510], p[511] = 0x55, 0xaa
	case "BOOT":
		copy(p, "XFSB")
	default:
		return nil
	}
	return p
}

func header(own, alternate, last, at int64, sum uint32) []byte {
	h := make([]byte, sector)
	copy(h, "EFI PART")
	binary.LittleEndian.PutUint32(h[8:], 0x00010000)
	binary.LittleEndian.PutUint32(h[12:], 92)
	binary.LittleEndian.PutUint64(h[24:], uint64(own))
	binary.LittleEndian.PutUint64(h[32:], uint64(alternate))
	binary.LittleEndian.PutUint64(h[40:], 34)
	binary.LittleEndian.PutUint64(h[48:], uint64(last-33))
	h[56] = 42
	binary.LittleEndian.PutUint64(h[72:], uint64(at))
	binary.LittleEndian.PutUint32(h[80:], entries)
	binary.LittleEndian.PutUint32(h[84:], 128)
	binary.LittleEndian.PutUint32(h[88:], sum)
	binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(h[:92]))
	return h
}

// Reader reads the disk from beginning to end.
func (d *Disk) Reader() io.Reader { return io.NewSectionReader(d, 0, d.Size) }

// Bytes is the whole disk, for small ones.
func (d *Disk) Bytes() []byte {
	p := make([]byte, d.Size)
	_, _ = d.ReadAt(p, 0)
	return p
}

// ReadAt makes the disk's content.
func (d *Disk) ReadAt(p []byte, off int64) (int, error) {
	if off >= d.Size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), d.Size-off))
	p = p[:n]
	clear(p)
	for _, e := range d.data {
		begin, end := max(off, e.Offset), min(off+int64(n), e.Offset+e.Length)
		for at := begin; at < end; {
			first := at / block * block
			stop := min(end, first+block)
			copy(p[at-off:stop-off], content(first, e.Dense)[at-first:])
			at = stop
		}
	}
	for at, text := range d.boot {
		overlay(p, off, text, at)
	}
	overlay(p, off, d.front, 0)
	overlay(p, off, d.back, d.Size-int64(len(d.back)))
	if n > 0 && off+int64(n) == d.Size {
		return n, io.EOF
	}
	return n, nil
}

func overlay(p []byte, off int64, what []byte, at int64) {
	begin, end := max(off, at), min(off+int64(len(p)), at+int64(len(what)))
	if begin < end {
		copy(p[begin-off:end-off], what[begin-at:])
	}
}

// content is what the 64 KiB at an offset are filled with.
func content(at int64, dense bool) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(at)+1)
	r := rand.NewChaCha8(seed)
	p := make([]byte, block)
	_, _ = r.Read(p)
	if dense {
		return p
	}
	// Pieces of 8 to 71 bytes, every other one again something from before, as
	// compilers and linkers make them.
	for i := 256; i < block; {
		n := min(8+int(p[i])&63, block-i)
		if p[i]&64 != 0 {
			back := 1 + int(binary.LittleEndian.Uint16(p[i-2:]))%i
			for j := range n {
				p[i+j] = p[i+j-back]
			}
		}
		i += n
	}
	return p
}
