package image

import (
	"bytes"

	"bastide/internal/image/disk"
	"bastide/internal/image/qcow2"
)

// rawWriter takes a raw disk from beginning to end.
type rawWriter struct {
	limit  int64
	size   int64
	table  *disk.Table
	places []*place
	to     *qcow2.Writer
}

func (w *rawWriter) take(p []byte, zeros int64) error {
	if n := w.size + int64(len(p)) + zeros; n > w.limit {
		return tooLarge(n, w.limit)
	}
	if err := w.see(p); err != nil {
		return err
	}
	w.size += int64(len(p))
	if _, err := w.to.Write(p); err != nil || zeros == 0 {
		return err
	}
	for _, at := range w.places {
		if err := at.pass(zeros, w.size, func(from, to int64) []byte { return make([]byte, to-from) }); err != nil {
			return err
		}
	}
	w.size += zeros
	return w.to.Skip(zeros)
}

// see looks at the next bytes of the disk.
func (w *rawWriter) see(p []byte) error {
	for _, at := range w.places {
		if err := at.pass(int64(len(p)), w.size, func(from, to int64) []byte { return p[from:to] }); err != nil {
			return err
		}
	}
	if behind := max(0, w.table.End()-w.size); behind < int64(len(p)) {
		if i := bytes.IndexFunc(p[behind:], func(r rune) bool { return r != 0 }); i >= 0 {
			return w.table.Ends(w.size + behind + int64(i))
		}
	}
	return nil
}

// done checks the places that the disk did not reach.
func (w *rawWriter) done() error {
	for _, at := range w.places {
		if err := at.check(at.have); err != nil {
			return err
		}
	}
	return nil
}

// placesOf are those that are looked at while a disk passes.
func placesOf(t *disk.Table) []*place {
	all := []*place{{at: t.Backup(), length: t.SectorSize, check: t.CheckBackup}}
	for _, b := range t.BootSectors() {
		all = append(all, &place{at: b.Offset, length: disk.BootSectorSize, check: b.Check})
	}
	return all
}

// place is a few bytes of a disk that are checked when they have passed.
type place struct {
	at, length int64
	check      func([]byte) error
	have       []byte
}

// pass takes n bytes of the disk, of which part gives those that are asked for.
func (b *place) pass(n, offset int64, part func(from, to int64) []byte) error {
	missing := b.length - int64(len(b.have))
	from := b.at + int64(len(b.have)) - offset
	if missing == 0 || from >= n {
		return nil
	}
	b.have = append(b.have, part(from, min(n, from+missing))...)
	if n < from+missing {
		return nil
	}
	return b.check(b.have)
}
