package disk

import (
	"bytes"

	"bastide/internal/image/format"
)

// BootSector is a place at which a fresh Talos disk has the beginning of a file
// system: EFI has FAT, BOOT has XFS. BIOS holds a program without a mark, and META
// is empty until a node writes to it.
type BootSector struct {
	Label  string
	Offset int64 // in bytes from the disk's beginning
}

// BootSectorSize is how many bytes from a BootSector's offset are checked.
const BootSectorSize = 512

// BootSectors are those of the partitions that are there.
func (t *Table) BootSectors() []BootSector {
	var all []BootSector
	for _, p := range t.Partitions {
		if (p.Label == "EFI" || p.Label == "BOOT") && p.Size >= BootSectorSize {
			all = append(all, BootSector{p.Label, p.Offset})
		}
	}
	return all
}

// Check refuses a partition without its file system: a table alone boots nothing.
// p are the BootSectorSize bytes at the offset.
//
// Errors: *format.Refusal.
func (b BootSector) Check(p []byte) error {
	found, kind := false, "XFS"
	switch b.Label {
	case "EFI":
		kind = "FAT"
		// The kind stands at 54 in FAT12 and FAT16, and at 82 in FAT32.
		found = len(p) >= BootSectorSize && p[510] == 0x55 && p[511] == 0xaa && (bytes.HasPrefix(p[54:], []byte("FAT")) || bytes.HasPrefix(p[82:], []byte("FAT")))
	case "BOOT":
		found = bytes.HasPrefix(p, []byte("XFSB"))
	}
	if found {
		return nil
	}
	what := "something else"
	if len(bytes.Trim(p, "\x00")) == 0 {
		what = "zeros"
	}
	return format.Refuse(format.NotTalos, format.Raw, "its partition %s begins with %s where a %s file system belongs, so nothing can boot from it", b.Label, what, kind).
		Advise("take a disk image of Talos, such as the Factory's scaleway image")
}

// End is where the disk ends by its table, in bytes: behind the table's copy.
func (t *Table) End() int64 { return t.Backup() + t.SectorSize }

// Ends refuses a disk that goes on after its end, with content at a place in bytes:
// such as a file that was appended to another one.
func (t *Table) Ends(content int64) error {
	return format.Refuse(format.TrailingJunk, format.Raw, "its partition table is that of a disk of %d bytes, and something else follows, at byte %d", t.End(), content).
		Advise("fetch it again: it is more than one file, or one that was written over another")
}
