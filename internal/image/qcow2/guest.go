package qcow2

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"

	"bastide/internal/image/format"
)

// Guest reads the disk inside an image. Every place that the image names is
// checked against the image's length before it is read, and no other file is
// ever opened.
type Guest struct {
	h      *Header
	r      io.ReaderAt
	length int64 // of the image; negative if not known
}

// NewGuest reads the disk of an image whose header was checked.
func NewGuest(h *Header, r io.ReaderAt, length int64) *Guest {
	return &Guest{h: h, r: r, length: length}
}

// ReadAt reads from the disk.
//
// Errors: *format.Refusal if the image is not sound; io.EOF at the disk's end.
func (g *Guest) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) && off < g.h.VirtualSize {
		within := off % g.h.ClusterSize
		part := p[n:][:min(int64(len(p)-n), g.h.ClusterSize-within, g.h.VirtualSize-off)]
		if err := g.read(part, off-within, within); err != nil {
			return n, err
		}
		n += len(part)
		off += int64(len(part))
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Content is where the first byte that is not zero is, at or behind from; -1 if there
// is none. What the tables say is empty is not read.
//
// Errors: *format.Refusal if the image is not sound.
func (g *Guest) Content(from int64) (int64, error) {
	p := make([]byte, g.h.ClusterSize)
	span := g.h.ClusterSize / 8 * g.h.ClusterSize // of one table
	for at := from; at < g.h.VirtualSize; {
		cluster := at / g.h.ClusterSize * g.h.ClusterSize
		l1, err := g.entry(g.h.l1At + 8*(cluster/span))
		if err != nil {
			return -1, err
		}
		switch table, err := g.h.table(l1, g.length); {
		case err != nil:
			return -1, err
		case table == 0:
			at = (cluster/span + 1) * span
			continue
		}
		next := min(cluster+g.h.ClusterSize, g.h.VirtualSize)
		e, err := g.find(cluster)
		if err != nil {
			return -1, err
		}
		if !e.empty {
			part := p[:next-at]
			if err := g.read(part, cluster, at-cluster); err != nil {
				return -1, err
			}
			if i := bytes.IndexFunc(part, func(r rune) bool { return r != 0 }); i >= 0 {
				return at + int64(i), nil
			}
		}
		at = next
	}
	return -1, nil
}

// read reads part of one cluster.
func (g *Guest) read(p []byte, cluster, within int64) error {
	e, err := g.find(cluster)
	switch {
	case err != nil:
		return err
	case e.empty:
		clear(p)
		return nil
	case e.compressed:
		return g.inflate(p, e, within)
	}
	return g.exactly(p, e.at+within)
}

func (g *Guest) find(cluster int64) (extent, error) {
	perTable := g.h.ClusterSize / 8
	index := cluster / g.h.ClusterSize
	l1, err := g.entry(g.h.l1At + 8*(index/perTable))
	if err != nil {
		return extent{}, err
	}
	table, err := g.h.table(l1, g.length)
	if err != nil || table == 0 {
		return extent{empty: true}, err
	}
	l2, err := g.entry(table + 8*(index%perTable))
	if err != nil {
		return extent{}, err
	}
	return g.h.cluster(l2, cluster, g.length)
}

func (g *Guest) entry(at int64) (uint64, error) {
	var b [8]byte
	err := g.exactly(b[:], at)
	return binary.BigEndian.Uint64(b[:]), err
}

func (g *Guest) exactly(p []byte, at int64) error {
	n, err := g.r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return truncated("it is read at byte %d and ends before", at+int64(len(p)))
	}
	return err
}

func (g *Guest) inflate(p []byte, e extent, within int64) error {
	in := make([]byte, e.size)
	n, err := g.r.ReadAt(in, e.at)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	out := make([]byte, g.h.ClusterSize)
	if _, err := io.ReadFull(flate.NewReader(bytes.NewReader(in[:n])), out); err != nil {
		return corrupt("a compressed cluster at byte %d cannot be decompressed", e.at)
	}
	copy(p, out[within:])
	return nil
}

// beginning is the first bytes of an image that is read as a stream.
type beginning struct {
	p     []byte
	whole bool // there are no more
}

func (b beginning) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	if off < int64(len(b.p)) {
		n = copy(p, b.p[off:])
	}
	switch {
	case n == len(p):
		return n, nil
	case b.whole:
		return n, io.EOF
	}
	return n, format.Refuse(format.NotCheckable, format.QCOW2, "what it says of the disk's beginning is at byte %d, too far behind for a check while it is downloaded", off).
		Advise("download it and give the file with `--from`")
}
