package image

import (
	"bastide/internal/image/disk"
	"bastide/internal/image/qcow2"
)

// rawWriter takes a raw disk from beginning to end.
type rawWriter struct {
	limit  int64
	size   int64
	backup backupCheck
	to     *qcow2.Writer
}

func (w *rawWriter) take(p []byte, zeros int64) error {
	if n := w.size + int64(len(p)) + zeros; n > w.limit {
		return tooLarge(n, w.limit)
	}
	if err := w.backup.see(p, w.size); err != nil {
		return err
	}
	w.size += int64(len(p))
	if _, err := w.to.Write(p); err != nil || zeros == 0 {
		return err
	}
	if err := w.backup.zeros(zeros, w.size); err != nil {
		return err
	}
	w.size += zeros
	return w.to.Skip(zeros)
}

// backupCheck checks the copy of the partition table when its sector passes.
type backupCheck struct {
	table  *disk.Table
	sector []byte
}

func (b *backupCheck) see(p []byte, offset int64) error {
	return b.pass(int64(len(p)), offset, func(from, to int64) []byte { return p[from:to] })
}

func (b *backupCheck) zeros(n, offset int64) error {
	return b.pass(n, offset, func(from, to int64) []byte { return make([]byte, to-from) })
}

// pass takes n bytes of the disk, of which part gives those that are asked for.
func (b *backupCheck) pass(n, offset int64, part func(from, to int64) []byte) error {
	missing := b.table.SectorSize - int64(len(b.sector))
	from := b.table.Backup() + int64(len(b.sector)) - offset
	if missing == 0 || from >= n {
		return nil
	}
	b.sector = append(b.sector, part(from, min(n, from+missing))...)
	if n < from+missing {
		return nil
	}
	return b.done()
}

// done checks the copy.
func (b *backupCheck) done() error { return b.table.CheckBackup(b.sector) }
