package talosdisk

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"unicode/utf16"
)

// The layout of a fresh amd64 image with both boot loaders, as Talos's imager
// makes it since 1.11 (sizes of machinery's imager/quirks): an EFI partition as
// large as all three of the older layout, GRUB's two, and META. STATE and
// EPHEMERAL are made at the first boot. 143 MiB at the end stay free.
const (
	sector = 512

	efiStart  = 1 * mib
	efiSize   = 2101 * mib
	biosStart = efiStart + efiSize
	biosSize  = 1 * mib
	bootStart = biosStart + biosSize
	bootSize  = 2000 * mib
	metaStart = bootStart + bootSize
	metaSize  = 1 * mib
)

// partition is an entry of the table.
type partition struct {
	name        string
	kind        string // GUID in its usual spelling, without dashes
	start, size int64
}

const (
	kindEFI   = "c12a7328f81f11d2ba4b00a0c93ec93b"
	kindBIOS  = "2168614864496e6f744e656564454649"
	kindLinux = "0fc63daf848347728e793d69d8477de4"
)

var partitions = []partition{
	{"EFI", kindEFI, efiStart, efiSize},
	{"BIOS", kindBIOS, biosStart, biosSize},
	{"BOOT", kindLinux, bootStart, bootSize},
	{"META", kindLinux, metaStart, metaSize},
}

const (
	entrySize  = 128
	entryCount = 128
	headerSize = 92
	tableLBAs  = entrySize * entryCount / sector
	lastLBA    = uint64(Size/sector - 1)
)

// partitionTable gives the first and the last sectors of the disk: protective
// MBR, header and entries, and at the end entries and header.
func partitionTable(l Label) (primary, secondary []byte) {
	entries := make([]byte, entrySize*entryCount)
	for n, p := range partitions {
		e := entries[n*entrySize:]
		copy(e, mixedEndian(unhex(p.kind)))
		copy(e[16:], guid(l, p.name))
		binary.LittleEndian.PutUint64(e[32:], uint64(p.start/sector))
		binary.LittleEndian.PutUint64(e[40:], uint64((p.start+p.size)/sector-1))
		for i, u := range utf16.Encode([]rune(p.name)) {
			binary.LittleEndian.PutUint16(e[56+2*i:], u)
		}
	}
	primary = append(protectiveMBR(), header(l, 1, lastLBA, 2, entries)...)
	primary = append(primary, entries...)
	secondary = append(entries, header(l, lastLBA, 1, lastLBA-tableLBAs, entries)...)
	return primary, secondary
}

func header(l Label, self, other, table uint64, entries []byte) []byte {
	h := make([]byte, sector)
	copy(h, "EFI PART")
	binary.LittleEndian.PutUint32(h[8:], 0x00010000)
	binary.LittleEndian.PutUint32(h[12:], headerSize)
	binary.LittleEndian.PutUint64(h[24:], self)
	binary.LittleEndian.PutUint64(h[32:], other)
	binary.LittleEndian.PutUint64(h[40:], uint64(mib/sector)) // Talos aligns the first usable sector
	binary.LittleEndian.PutUint64(h[48:], lastLBA-tableLBAs-1)
	copy(h[56:], guid(l, "disk"))
	binary.LittleEndian.PutUint64(h[72:], table)
	binary.LittleEndian.PutUint32(h[80:], entryCount)
	binary.LittleEndian.PutUint32(h[84:], entrySize)
	binary.LittleEndian.PutUint32(h[88:], crc32.ChecksumIEEE(entries))
	binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(h[:headerSize]))
	return h
}

func protectiveMBR() []byte {
	b := make([]byte, sector)
	e := b[446:]
	copy(e[1:], []byte{0x00, 0x02, 0x00, 0xee, 0xff, 0xff, 0xff})
	binary.LittleEndian.PutUint32(e[8:], 1)
	binary.LittleEndian.PutUint32(e[12:], uint32(lastLBA))
	b[510], b[511] = 0x55, 0xaa
	return b
}

// guid is one that follows from the label, in the table's byte order.
func guid(l Label, name string) []byte {
	sum := sha256.Sum256([]byte(l.Version + "\x00" + l.Schematic + "\x00" + l.Platform + "\x00" + name))
	g := sum[:16]
	g[6], g[8] = g[6]&0x0f|0x40, g[8]&0x3f|0x80
	return mixedEndian(g)
}

// mixedEndian turns the first three fields of a GUID around.
func mixedEndian(g []byte) []byte {
	out := append([]byte{}, g...)
	out[0], out[1], out[2], out[3] = g[3], g[2], g[1], g[0]
	out[4], out[5] = g[5], g[4]
	out[6], out[7] = g[7], g[6]
	return out
}

// fatSector is the beginning of the EFI partition, as far as tools look that
// tell file systems apart. There is no file system behind it.
func fatSector() []byte {
	b := make([]byte, sector)
	copy(b, "\xeb\x58\x90mkfs.fat")
	binary.LittleEndian.PutUint16(b[11:], sector)
	b[13], b[14], b[16] = 8, 32, 2 // sectors of a cluster, reserved sectors, tables
	b[21] = 0xf8                   // a hard disk
	binary.LittleEndian.PutUint32(b[32:], uint32(efiSize/sector))
	binary.LittleEndian.PutUint32(b[36:], uint32(efiSize/sector/8*4/sector+1)) // sectors of a table
	b[44], b[48], b[50], b[66] = 2, 1, 6, 0x29                                 // root, information, backup, "more follows"
	copy(b[71:], "EFI        FAT32   ")
	b[510], b[511] = 0x55, 0xaa
	return b
}

// xfsSector is the same for the BOOT partition.
func xfsSector() []byte {
	b := make([]byte, sector)
	const block, groups = 4096, 4
	blocks := uint64(bootSize / block)
	copy(b, "XFSB")
	binary.BigEndian.PutUint32(b[4:], block)
	binary.BigEndian.PutUint64(b[8:], blocks)
	binary.BigEndian.PutUint32(b[80:], 1)
	binary.BigEndian.PutUint32(b[84:], uint32(blocks/groups))
	binary.BigEndian.PutUint32(b[88:], groups)
	binary.BigEndian.PutUint16(b[100:], 0xb4a5) // version 5 of the format
	binary.BigEndian.PutUint16(b[102:], sector)
	binary.BigEndian.PutUint16(b[104:], 512) // an inode
	binary.BigEndian.PutUint16(b[106:], block/512)
	copy(b[108:], "BOOT")
	copy(b[120:], []byte{12, 9, 9, 3, 17, 0, 0, 25}) // logarithms of the sizes, and the share of inodes
	return b
}
