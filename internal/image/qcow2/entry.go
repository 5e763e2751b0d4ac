package qcow2

// Entries of L1 and L2 tables.
const (
	offsetMask   = 0x00fffffffffffe00
	compressed   = 1 << 62
	zeros        = 1 << 0 // in an L2 entry of version 3: the cluster reads as zeros
	reservedInL1 = ^uint64(copied | offsetMask)
	reservedInL2 = ^uint64(copied | offsetMask | compressed | zeros)
)

// extent is where in the file the content of a cluster is.
type extent struct {
	at, size   int64
	empty      bool // nothing is stored
	compressed bool // size is at most, and the content ends by itself
}

// table is where the L2 table of an L1 entry is; 0 for none.
func (h *Header) table(entry uint64, length int64) (int64, error) {
	if entry&offsetMask == 0 && entry&^copied == 0 {
		return 0, nil
	}
	if entry&reservedInL1 != 0 {
		return 0, corrupt("an entry of its first table has unknown bits (%#x)", entry)
	}
	return h.place("second table", entry&offsetMask, h.ClusterSize, length)
}

// cluster is where the content of an L2 entry is. guest is the cluster's offset on
// the disk: of the last one the file may have only what is on the disk.
func (h *Header) cluster(entry uint64, guest, length int64) (extent, error) {
	if entry&compressed != 0 {
		return h.squeezed(entry, length)
	}
	if entry&reservedInL2 != 0 {
		return extent{}, corrupt("an entry of a second table has unknown bits (%#x)", entry)
	}
	if h.Version == 2 && entry&zeros != 0 {
		return extent{}, corrupt("an entry of a second table has a bit of version 3 (%#x)", entry)
	}
	if entry&offsetMask == 0 {
		return extent{empty: true}, nil
	}
	size := min(h.ClusterSize, h.VirtualSize-guest)
	at, err := h.place("content", entry&offsetMask, size, length)
	return extent{at: at, size: size, empty: entry&zeros != 0}, err
}

// squeezed is a cluster that is compressed: the entry says in which sectors of 512
// bytes it is, of which the last need not be whole at the end of the file.
func (h *Header) squeezed(entry uint64, length int64) (extent, error) {
	shift := 62 - (h.bits - 8)
	at := int64(entry & (1<<shift - 1))
	sectors := int64(entry&^(copied|compressed)) >> shift
	size := (sectors+1)*512 - at%512
	if at < h.ClusterSize || at >= 1<<56 {
		return extent{}, corrupt("its content is said to be at byte %d, where none can be", at)
	}
	if length >= 0 && at+size > (length+511)&^511 {
		return extent{}, truncated("its content reaches to byte %d, and it ends after %d", at+size, length)
	}
	return extent{at: at, size: size, compressed: true}, nil
}
