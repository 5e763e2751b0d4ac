package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"unicode/utf16"

	"bastide/internal/image/format"
)

// Prefix is how many bytes from a disk's beginning Read needs at most: partitions
// begin at 1 MiB by all tools' habit, and the table is before them.
const Prefix = 1 << 20

const (
	sign     = "EFI PART"
	revision = 0x00010000
	fixed    = 92 // bytes of the header that the checksum covers at least
)

// header is a GPT header, by the UEFI specification, section 5.3.2. Addresses are
// in sectors.
type header struct {
	own, alternate int64
	first, last    int64 // that partitions may use
	guid           string
	entriesAt      int64
	count, size    int64
	entriesSum     uint32
}

// Read reads and checks the partition table at the beginning of a disk. Only the
// first Prefix bytes are read.
//
// Errors: *format.Refusal, or r's.
func Read(r io.ReaderAt) (*Table, error) {
	prefix := make([]byte, Prefix)
	n, err := r.ReadAt(prefix, 0)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return Parse(prefix[:n])
}

// Parse is Read of a disk's first bytes, of which Prefix are enough.
func Parse(prefix []byte) (*Table, error) {
	sector := sectorSize(prefix)
	if sector == 0 {
		return nil, format.Refuse(format.NoPartitions, format.Raw, "the disk has no GPT where one begins").
			Advise("take a disk image of Talos, such as the Factory's scaleway image")
	}
	if !protective(prefix) {
		return nil, format.Refuse(format.NoPartitions, format.Raw, "the disk has a GPT but no protective MBR before it, so it was damaged or never whole")
	}
	h, err := parseHeader(prefix[sector:min(2*sector, len(prefix))], int64(sector), 1)
	if err != nil {
		return nil, corrupt("its partition table is not valid: %w", err)
	}
	t := &Table{SectorSize: int64(sector), GUID: h.guid, header: *h}
	if t.Partitions, err = h.entries(prefix, int64(sector)); err != nil {
		return nil, corrupt("its partition table is not valid: %w", err)
	}
	return t, nil
}

func corrupt(text string, err error) *format.Refusal {
	return format.Refuse(format.Corrupt, format.Raw, "%s", fmt.Errorf(text, err)).Advise("fetch it again")
}

func sectorSize(p []byte) int {
	for _, size := range []int{512, 4096} {
		if len(p) >= size+len(sign) && string(p[size:size+len(sign)]) == sign {
			return size
		}
	}
	return 0
}

// protective looks for the MBR entry of type 0xEE that keeps old tools away.
func protective(p []byte) bool {
	if p[510] != 0x55 || p[511] != 0xaa {
		return false
	}
	for i := range 4 {
		if p[446+16*i+4] == 0xee {
			return true
		}
	}
	return false
}

// parseHeader checks a header that is in the sector with the address own.
func parseHeader(p []byte, sector, own int64) (*header, error) {
	if len(p) < fixed || string(p[:len(sign)]) != sign {
		return nil, errors.New("there is no header")
	}
	length := int64(binary.LittleEndian.Uint32(p[12:]))
	switch {
	case binary.LittleEndian.Uint32(p[8:]) != revision:
		return nil, errors.New("the header has an unknown revision")
	case length < fixed || length > int64(len(p)):
		return nil, fmt.Errorf("the header says that it has %d bytes", length)
	}
	summed := bytes.Clone(p[:length])
	clear(summed[16:20])
	if crc32.ChecksumIEEE(summed) != binary.LittleEndian.Uint32(p[16:]) {
		return nil, errors.New("the header's checksum is wrong")
	}
	h := &header{guid: guid(p[56:72]), entriesSum: binary.LittleEndian.Uint32(p[88:])}
	for _, f := range []struct {
		at int
		to *int64
	}{{24, &h.own}, {32, &h.alternate}, {40, &h.first}, {48, &h.last}, {72, &h.entriesAt}} {
		v := binary.LittleEndian.Uint64(p[f.at:])
		if v > uint64(1<<62/sector) {
			return nil, fmt.Errorf("the header names sector %d", v)
		}
		*f.to = int64(v)
	}
	h.count, h.size = int64(binary.LittleEndian.Uint32(p[80:])), int64(binary.LittleEndian.Uint32(p[84:]))
	switch {
	case h.own != own:
		return nil, fmt.Errorf("the header is in sector %d and says that it is in %d", own, h.own)
	case h.size < 128 || h.size > 4096 || h.size&(h.size-1) != 0 || h.count < 1 || h.count*h.size > Prefix/2:
		return nil, fmt.Errorf("the header announces %d entries of %d bytes", h.count, h.size)
	case h.first > h.last:
		return nil, errors.New("the header leaves no room for partitions")
	}
	return h, nil
}

// entries reads the partitions of the primary table, which has to be in front.
func (h *header) entries(p []byte, sector int64) ([]Partition, error) {
	begin, length := h.entriesAt*sector, h.count*h.size
	if h.entriesAt < 2 || begin+length > int64(len(p)) {
		return nil, fmt.Errorf("its entries are said to be at byte %d, which is not in front of the partitions", begin)
	}
	table := p[begin : begin+length]
	if crc32.ChecksumIEEE(table) != h.entriesSum {
		return nil, errors.New("the checksum of its entries is wrong")
	}
	var all []Partition
	for i := range h.count {
		e := table[i*h.size : (i+1)*h.size]
		if bytes.Equal(e[:16], make([]byte, 16)) {
			continue
		}
		first, last := binary.LittleEndian.Uint64(e[32:]), binary.LittleEndian.Uint64(e[40:])
		if first > last || first < uint64(h.first) || last > uint64(h.last) {
			return nil, fmt.Errorf("partition %d reaches from sector %d to %d, outside of what the header allows", i+1, first, last)
		}
		all = append(all, Partition{
			Number: int(i + 1), Label: label(e[56:128]), Type: guid(e[:16]),
			Offset: int64(first) * sector, Size: int64(last-first+1) * sector,
		})
	}
	return all, overlap(all)
}

func overlap(all []Partition) error {
	for i, a := range all {
		for _, b := range all[:i] {
			if a.Offset < b.Offset+b.Size && b.Offset < a.Offset+a.Size {
				return fmt.Errorf("partitions %d and %d overlap", b.Number, a.Number)
			}
		}
	}
	return nil
}

func label(p []byte) string {
	var units []uint16
	for i := 0; i < len(p); i += 2 {
		u := binary.LittleEndian.Uint16(p[i:])
		if u == 0 {
			break
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units))
}

// guid prints a GUID, whose first three parts are little-endian.
func guid(p []byte) string {
	return fmt.Sprintf("%08X-%04X-%04X-%X-%X", binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint16(p[4:]),
		binary.LittleEndian.Uint16(p[6:]), p[8:10], p[10:16])
}

// Backup is where the copy of the header is, in bytes from the disk's beginning.
// It is the last thing on a whole disk.
func (t *Table) Backup() int64 { return t.header.alternate * t.SectorSize }

// CheckBackup checks the copy of the header, of which sector are the bytes at
// Backup. A disk that was cut and filled up again does not have it.
func (t *Table) CheckBackup(sector []byte) error {
	h, err := parseHeader(sector, t.SectorSize, t.header.alternate)
	if err == nil && (h.guid != t.GUID || h.entriesSum != t.header.entriesSum || h.alternate != t.header.own) {
		err = errors.New("it belongs to another table")
	}
	if err != nil {
		return corrupt("the copy of its partition table, at the end of the disk, is not valid: %w", err)
	}
	return nil
}
