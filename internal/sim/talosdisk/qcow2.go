package talosdisk

import (
	"encoding/binary"
	"io"
)

// clusterBits is 13: the Factory asks for clusters of 8 KiB.
const (
	clusterBits = 13
	cluster     = int64(1) << clusterBits
	perL2       = cluster / 8
	perRefcount = cluster / 2 // 16 bits each
	copied      = uint64(1) << 63
)

// WriteQCOW2 writes the disk as a QCOW2 image of version 3, from its beginning
// to its end: header, tables, data, reference counts.
func (i *Image) WriteQCOW2(w io.Writer) error {
	clusters := (i.size + cluster - 1) / cluster
	l1Entries := (clusters + perL2 - 1) / perL2
	var used []int64 // guest clusters with content, in order
	for n := range clusters {
		if !i.empty(n*cluster, min((n+1)*cluster, i.size)) {
			used = append(used, n)
		}
	}
	l1At := int64(1)
	l2At := l1At + (l1Entries*8+cluster-1)/cluster
	l1, l2 := make([]byte, (l2At-l1At)*cluster), [][]byte{}
	dataAt := l2At
	for last, k := int64(-1), 0; k < len(used); k++ {
		if at := used[k] / perL2; at != last {
			binary.BigEndian.PutUint64(l1[at*8:], uint64(dataAt*cluster)|copied)
			l2 = append(l2, make([]byte, cluster))
			last, dataAt = at, dataAt+1
		}
	}
	for last, table, k := int64(-1), -1, 0; k < len(used); k++ {
		if at := used[k] / perL2; at != last {
			last, table = at, table+1
		}
		binary.BigEndian.PutUint64(l2[table][used[k]%perL2*8:], uint64((dataAt+int64(k))*cluster)|copied)
	}
	blocksAt := dataAt + int64(len(used))
	blocks := refcountBlocks(blocksAt)
	tableAt := blocksAt + blocks

	out := &counted{w: w}
	out.write(qcow2Header(i.size, l1Entries, l1At, tableAt))
	out.write(l1)
	for _, t := range l2 {
		out.write(t)
	}
	content := make([]byte, cluster)
	for _, n := range used {
		if _, err := i.ReadAt(content, n*cluster); err != nil && err != io.EOF {
			return err
		}
		out.write(content)
	}
	out.write(refcounts(blocks, tableAt+1))
	table := make([]byte, cluster)
	for b := range blocks {
		binary.BigEndian.PutUint64(table[b*8:], uint64((blocksAt+b)*cluster))
	}
	out.write(table)
	return out.err
}

// refcountBlocks is how many blocks count the clusters before them, themselves
// and the table behind them.
func refcountBlocks(before int64) int64 {
	n := int64(1)
	for n*perRefcount < before+n+1 {
		n++
	}
	return n
}

// refcounts are the blocks: one reference to each cluster there is.
func refcounts(blocks, clusters int64) []byte {
	b := make([]byte, blocks*cluster)
	for n := range clusters {
		binary.BigEndian.PutUint16(b[n*2:], 1)
	}
	return b
}

func qcow2Header(size, l1Entries, l1At, refcountTable int64) []byte {
	b := make([]byte, cluster)
	copy(b, "QFI\xfb")
	binary.BigEndian.PutUint32(b[4:], 3)
	binary.BigEndian.PutUint32(b[20:], clusterBits)
	binary.BigEndian.PutUint64(b[24:], uint64(size))
	binary.BigEndian.PutUint32(b[36:], uint32(l1Entries))
	binary.BigEndian.PutUint64(b[40:], uint64(l1At*cluster))
	binary.BigEndian.PutUint64(b[48:], uint64(refcountTable*cluster))
	binary.BigEndian.PutUint32(b[56:], 1)
	binary.BigEndian.PutUint32(b[96:], 4) // 16 bits of reference count
	binary.BigEndian.PutUint32(b[100:], 104)
	return b
}

// counted keeps the first error of many writes.
type counted struct {
	w   io.Writer
	n   int64
	err error
}

func (c *counted) write(p []byte) {
	if c.err != nil {
		return
	}
	var n int
	n, c.err = c.w.Write(p)
	c.n += int64(n)
}
