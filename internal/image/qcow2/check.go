package qcow2

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"
)

// Check checks a whole image: the header, and that whatever it names is in the
// file. length is the image's length in bytes, limit the largest disk that is
// taken. It reads the tables and nothing else.
//
// Errors: *format.Refusal, or r's.
func Check(r io.ReaderAt, length, limit int64) (*Header, error) {
	h, err := ReadHeader(io.NewSectionReader(r, 0, length), length, limit)
	if err != nil {
		return nil, err
	}
	g := NewGuest(h, r, length)
	tables, err := g.tables()
	if err != nil {
		return nil, err
	}
	l2 := make([]byte, h.ClusterSize)
	for _, t := range tables {
		if err := g.exactly(l2, t.at); err != nil {
			return nil, err
		}
		if _, err := h.checkTable(l2, t.guest, length); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// tablePlace is where an L2 table is: in the file, and what it stands for on the disk.
type tablePlace struct{ at, guest int64 }

// tables are all L2 tables in the order of the file.
func (g *Guest) tables() ([]tablePlace, error) {
	perL1 := g.h.ClusterSize / 8 * g.h.ClusterSize
	var all []tablePlace
	chunk := make([]byte, min(g.h.l1Entries*8, 64<<10))
	for first := int64(0); first < g.h.l1Entries; {
		part := chunk[:min(int64(len(chunk)), (g.h.l1Entries-first)*8)]
		if err := g.exactly(part, g.h.l1At+first*8); err != nil {
			return nil, err
		}
		for i := 0; i < len(part); i += 8 {
			at, err := g.h.table(binary.BigEndian.Uint64(part[i:]), g.length)
			if err != nil {
				return nil, err
			}
			if at != 0 {
				all = append(all, tablePlace{at, first * perL1})
			}
			first++
		}
	}
	slices.SortFunc(all, func(a, b tablePlace) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(all); i++ {
		if all[i].at == all[i-1].at {
			return nil, corrupt("two parts of its disk have the same table, at byte %d", all[i].at)
		}
	}
	return all, nil
}

// checkTable checks the entries of an L2 table whose first cluster is at guest,
// and says how long the file must be for what they name.
func (h *Header) checkTable(l2 []byte, guest, length int64) (end int64, err error) {
	for i := 0; i < len(l2) && guest < h.VirtualSize; i += 8 {
		e, err := h.cluster(binary.BigEndian.Uint64(l2[i:]), guest, length)
		if err != nil {
			return 0, err
		}
		guest += h.ClusterSize
		switch {
		case e.compressed: // the last sector need not be whole
			end = max(end, e.at+e.size-511)
		default:
			end = max(end, e.at+e.size)
		}
	}
	return end, nil
}
