package qcow2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Writer makes an image of a raw disk that is written to it from beginning to
// end. Clusters that are all zeros take no room. The same disk gives the same
// bytes, however it is cut into writes.
//
// The body holds, in the order of the disk, the clusters that are not empty; the
// L2 table of each 512 MiB after its clusters; and at the end the refcount blocks.
// As every cluster of the file is used exactly once, they all count one, so
// nothing of what was written has to be remembered but one L2 table.
type Writer struct {
	body io.Writer

	partial []byte // the beginning of a cluster that no write has finished
	size    int64  // bytes of the disk in whole clusters so far
	next    int64  // offset in the file of the next cluster of the body
	used    bool   // the current L2 table has an entry
	l2      []byte
	l1      []uint64
	closed  bool
}

// ErrTooLarge is the error of a disk over MaxVirtual.
var ErrTooLarge = fmt.Errorf("qcow2: the disk is larger than %d bytes", int64(MaxVirtual))

var errClosed = errors.New("qcow2: the writer is closed")

// NewWriter writes everything after the head to body. Writes to body are of whole
// clusters, and body must not keep what it is given.
func NewWriter(body io.Writer) *Writer {
	return &Writer{body: body, next: HeadSize, l2: make([]byte, cluster), partial: make([]byte, 0, cluster)}
}

// Write takes the next bytes of the disk. Large writes that are a multiple of
// 64 KiB are passed on without a copy.
func (w *Writer) Write(p []byte) (int, error) {
	if w.closed {
		return 0, errClosed
	}
	total := len(p)
	if len(w.partial) > 0 {
		n := min(cluster-len(w.partial), len(p))
		w.partial = append(w.partial, p[:n]...)
		p = p[n:]
		if len(w.partial) < cluster {
			return total, nil
		}
		if err := w.clusters(w.partial); err != nil {
			return 0, err
		}
		w.partial = w.partial[:0]
	}
	whole := len(p) &^ (cluster - 1)
	if err := w.clusters(p[:whole]); err != nil {
		return 0, err
	}
	w.partial = append(w.partial, p[whole:]...)
	return total, nil
}

// Skip is Write of n zeros, which it does not look at.
func (w *Writer) Skip(n int64) error {
	for n > 0 {
		if len(w.partial) > 0 || n < cluster {
			part := min(n, int64(cluster-len(w.partial)))
			if _, err := w.Write(empty[:part]); err != nil {
				return err
			}
			n -= part
			continue
		}
		if w.closed {
			return errClosed
		}
		whole := min(n/cluster*cluster, perL1-w.size%perL1)
		if w.size+whole > MaxVirtual {
			return ErrTooLarge
		}
		w.size += whole
		n -= whole
		if w.size%perL1 == 0 {
			if err := w.table(); err != nil {
				return err
			}
		}
	}
	return nil
}

var empty [cluster]byte

// clusters takes whole clusters, and writes neighbours that are not empty at once.
func (w *Writer) clusters(p []byte) error {
	begin := 0 // of the run that is not yet written
	for at := 0; at < len(p); at += cluster {
		if w.size >= MaxVirtual {
			return ErrTooLarge
		}
		if Zero(p[at : at+cluster]) {
			if err := w.emit(p[begin:at]); err != nil {
				return err
			}
			begin = at + cluster
		} else {
			w.enter(w.next + int64(at-begin))
		}
		w.size += cluster
		if w.size%perL1 == 0 {
			if err := w.emit(p[begin : at+cluster]); err != nil {
				return err
			}
			begin = at + cluster
			if err := w.table(); err != nil {
				return err
			}
		}
	}
	return w.emit(p[begin:])
}

// enter notes where in the file the current cluster of the disk is.
func (w *Writer) enter(offset int64) {
	i := w.size % perL1 / cluster
	binary.BigEndian.PutUint64(w.l2[8*i:], uint64(offset)|copied)
	w.used = true
}

func (w *Writer) emit(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	n, err := w.body.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	w.next += int64(len(p))
	return err
}

// table writes the L2 table of the 512 MiB that have just ended, if anything is in it.
func (w *Writer) table() error {
	if !w.used {
		w.l1 = append(w.l1, 0)
		return nil
	}
	w.l1 = append(w.l1, uint64(w.next)|copied)
	err := w.emit(w.l2)
	clear(w.l2)
	w.used = false
	return err
}

// Close writes what is left of the body and returns the head. The disk ends at the
// next multiple of 512 bytes, the sector that every consumer counts in. An empty
// disk is an error.
func (w *Writer) Close() (head []byte, size int64, err error) {
	if w.closed {
		return nil, 0, errClosed
	}
	w.closed = true
	size = w.size + (int64(len(w.partial))+511)&^511
	if size == 0 {
		return nil, 0, errors.New("qcow2: the disk is empty")
	}
	if len(w.partial) > 0 {
		n := len(w.partial)
		w.partial = w.partial[:cluster]
		clear(w.partial[n:])
		if err := w.clusters(w.partial); err != nil {
			return nil, 0, err
		}
	}
	if w.size%perL1 != 0 {
		if err := w.table(); err != nil {
			return nil, 0, err
		}
	}
	blocks, err := w.refcounts()
	if err != nil {
		return nil, 0, err
	}
	return w.head(size, blocks), size, nil
}

// Written is how long the file is so far, the head included.
func (w *Writer) Written() int64 { return w.next }

// refcounts ends the body with blocks that count one for each cluster of the file,
// their own included, and returns where they are.
func (w *Writer) refcounts() ([]uint64, error) {
	used := w.next / cluster
	var count int64
	for count*perBlock < used+count {
		count++
	}
	total := used + count
	var at []uint64
	block := make([]byte, cluster)
	for first := int64(0); first < total; first += perBlock {
		clear(block)
		for i := range min(perBlock, total-first) {
			block[2*i+1] = 1
		}
		at = append(at, uint64(w.next))
		if err := w.emit(block); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// head is header, refcount table and L1 table.
func (w *Writer) head(size int64, blocks []uint64) []byte {
	head := make([]byte, HeadSize)
	put32 := func(at int, v uint32) { binary.BigEndian.PutUint32(head[at:], v) }
	put64 := func(at int, v uint64) { binary.BigEndian.PutUint64(head[at:], v) }
	put32(0, magic)
	put32(4, 3) // version
	put32(20, clusterBits)
	put64(24, uint64(size))
	put32(36, uint32(len(w.l1)))
	put64(40, l1At)
	put64(48, refcountTableAt)
	put32(56, 1) // clusters of the refcount table
	put32(96, 4) // refcounts of 1<<4 bits
	put32(100, headerLength)
	// The list of extensions, right after, is empty: an entry of type 0 ends it.
	for i, b := range blocks {
		put64(refcountTableAt+8*i, b)
	}
	for i, entry := range w.l1 {
		put64(l1At+8*i, entry)
	}
	return head
}
