// Package disk checks that a disk is one that Talos boots from: a protective MBR,
// a GPT whose checksums are right, and in it the partitions of a fresh image.
package disk

import (
	"bastide/internal/image/format"
)

// Table is a partition table that was found sound.
type Table struct {
	SectorSize int64       `json:"sectorSize"` // 512, or 4096 for an image made for such disks
	GUID       string      `json:"guid"`
	Partitions []Partition `json:"partitions"` // in the order of the table

	header header
}

// Partition is one entry of a partition table.
type Partition struct {
	Number int    `json:"number"` // from 1
	Label  string `json:"label"`  // such as BOOT
	Type   string `json:"type"`   // GUID, upper case
	Offset int64  `json:"offset"` // in bytes
	Size   int64  `json:"size"`   // in bytes
}

// Has says whether a partition with this label is there.
func (t *Table) Has(label string) bool {
	for _, p := range t.Partitions {
		if p.Label == label {
			return true
		}
	}
	return false
}

// Labels are the partitions' labels in the order of the table.
func (t *Table) Labels() []string {
	var labels []string
	for _, p := range t.Partitions {
		labels = append(labels, p.Label)
	}
	return labels
}

// Talos refuses a disk that does not have the partitions of a fresh Talos image.
// Images for BIOS and UEFI have EFI, BIOS, BOOT and META, images for UEFI alone
// EFI and META. META is what tells Talos that it is installed; without it a node
// would wait for an installation that nobody starts. STATE and EPHEMERAL are made
// at the first boot; a disk that has both was a node once, with its secrets.
func (t *Table) Talos() error {
	switch {
	case !t.Has("META"):
		return format.Refuse(format.NotTalos, format.Raw, "its partitions are %q, and Talos's META is not among them", t.Labels()).
			Advise("take a disk image of Talos, such as the Factory's scaleway image")
	case !t.Has("EFI") && !t.Has("BOOT"):
		return format.Refuse(format.NotTalos, format.Raw, "its partitions are %q, and none that Talos boots from (EFI or BOOT) is among them", t.Labels()).
			Advise("take a disk image of Talos, such as the Factory's scaleway image")
	case t.Has("STATE") && t.Has("EPHEMERAL"):
		return format.Refuse(format.NotTalos, format.Raw, "it is the disk of a node that has run: it has STATE and EPHEMERAL, with that node's configuration and secrets").
			Advise("take a fresh disk image, such as the Factory's scaleway image")
	}
	return nil
}

// Fits refuses a disk that is shorter than its partition table says.
func (t *Table) Fits(size int64) error {
	if end := t.End(); size < end {
		return format.Refuse(format.Truncated, format.Raw, "the disk has %d bytes, and its partition table is that of one with %d", size, end).
			Advise("fetch it again, to its end")
	}
	return nil
}
