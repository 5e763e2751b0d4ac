// Package disk checks that a disk is one that Talos boots from: a protective MBR,
// a GPT whose checksums are right, and in it the partitions of a fresh image.
package disk

// Table is a partition table that was found sound.
type Table struct {
	SectorSize int64       `json:"sectorSize"` // 512, or 4096 for an image made for such disks
	GUID       string      `json:"guid"`
	Partitions []Partition `json:"partitions"` // in the order of the table
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
