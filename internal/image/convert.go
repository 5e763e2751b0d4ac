package image

import (
	"bytes"
	"context"
	"errors"
	"io"

	"bastide/internal/image/disk"
	"bastide/internal/image/format"
	"bastide/internal/image/qcow2"
	"bastide/internal/image/unpack"
)

// taken is how the refusals name what would have been right.
const taken = "a disk that is taken (qcow2, or raw, raw.zst, raw.xz)"

func convert(ctx context.Context, src io.Reader, sink Sink, o Options) (*Result, error) {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	in := newIntake(ctx, src, o.SourceDigest)
	begin, err := upTo(in, disk.Prefix)
	if err != nil {
		return nil, err
	}
	c := &conversion{limit: o.Limit, out: newOutlet(sink), result: Result{Format: format.Sniff(begin)}, sameLength: func() error {
		if length := lengthOf(src); randomAccess(src) != nil && length >= 0 && in.size != length {
			return format.Refuse(format.Truncated, format.Sniff(begin), "it had %d bytes when it was opened and %d when it was read", length, in.size).
				Advise("run again when nobody writes to it")
		}
		return nil
	}}
	c.result.Content = c.result.Format
	defer c.out.close()
	switch c.result.Format {
	case format.Zstd, format.XZ:
		err = c.packed(io.MultiReader(bytes.NewReader(begin), in))
	case format.QCOW2:
		err = c.qcow2(io.MultiReader(bytes.NewReader(begin), in), randomAccess(src), lengthOf(src))
	case format.Raw:
		err = c.raw(begin, in)
	default:
		err = format.Instead(c.result.Format, taken)
	}
	if err != nil {
		return nil, err
	}
	c.result.SourceSize, c.result.SourceDigest = in.size, in.digest()
	return &c.result, nil
}

// conversion is one run of Convert.
type conversion struct {
	limit  int64
	out    *outlet
	result Result
	// sameLength refuses a file that another program writes to, at its end.
	sameLength func() error
}

// packed decompresses, and looks at what is inside.
func (c *conversion) packed(stream io.Reader) error {
	u, err := unpack.NewReader(c.result.Format, stream)
	if err != nil {
		return err
	}
	err = c.inside(u)
	return errors.Join(err, u.Close())
}

func (c *conversion) inside(u io.Reader) error {
	begin, err := upTo(u, disk.Prefix)
	if err != nil {
		return err
	}
	c.result.Content = format.Sniff(begin)
	switch c.result.Content {
	case format.QCOW2:
		return c.qcow2(io.MultiReader(bytes.NewReader(begin), u), nil, -1)
	case format.Raw:
		return c.raw(begin, u)
	}
	r := format.Instead(c.result.Content, taken)
	r.Text = "inside the " + string(c.result.Format) + " stream: " + r.Text
	if c.result.Content == format.Zstd || c.result.Content == format.XZ { // one layer is taken off here, not two
		r.Do = "take the outer one off by hand with `" + string(c.result.Format) + " -d` and name what comes out"
	}
	return r
}

// raw writes the qcow2 file of a raw disk, of which begin was read already. How long
// the disk is shows at its end.
func (c *conversion) raw(begin []byte, rest io.Reader) error {
	table, err := disk.Parse(begin)
	if err != nil {
		return err
	}
	c.result.Disk = table
	if err := table.Talos(); err != nil {
		return err
	}
	if end := table.End(); end > c.limit {
		return tooLarge(end, c.limit)
	}
	w := rawWriter{limit: c.limit, table: table, places: placesOf(table), to: qcow2.NewWriter(c.out)}
	if err := w.take(begin, 0); err != nil {
		return err
	}
	if err := feed(rest, w.take); err != nil {
		return err
	}
	if err := table.Fits(w.size); err != nil {
		return err
	}
	if err := w.done(); err != nil {
		return err
	}
	if err := c.sameLength(); err != nil {
		return err
	}
	head, virtual, err := w.to.Close()
	if err != nil {
		return err
	}
	c.result.Converted, c.result.VirtualSize, c.result.FileSize = true, virtual, w.to.Written()
	c.result.Digest, err = c.out.finish(head)
	return err
}

// qcow2 passes a qcow2 file on as it is. at, if it is not nil, reads the same file.
func (c *conversion) qcow2(stream io.Reader, at io.ReaderAt, length int64) error {
	var (
		header *qcow2.Header
		guest  *qcow2.Guest
		pass   = func(p []byte) error { return nil }
		end    = func() error { return nil }
		begin  []byte
		err    error
	)
	if at != nil && length >= 0 {
		if header, err = qcow2.Check(at, length, c.limit); err != nil {
			return err
		}
		guest = qcow2.NewGuest(header, at, length)
		begin, err = upTo(stream, HeadSize)
	} else {
		at = nil
		if begin, err = upTo(stream, qcow2.Beginning); err != nil {
			return err
		}
		check, bad := qcow2.NewStream(begin, length, c.limit)
		if bad != nil {
			return bad
		}
		header, guest, end = check.Header(), check.Guest(), check.Close
		pass = func(p []byte) error { _, err := check.Write(p); return err }
	}
	if err != nil {
		return err
	}
	if err := c.partitions(guest, header.VirtualSize, at != nil); err != nil {
		return err
	}
	head := begin[:min(HeadSize, len(begin))]
	size := int64(len(head))
	write := func(p []byte) error {
		size += int64(len(p))
		_, err := c.out.Write(p)
		return err
	}
	if err := write(begin[len(head):]); err != nil {
		return err
	}
	if err := feed(stream, func(p []byte, _ int64) error { // a stream of two readers has no zeros as a number
		if err := pass(p); err != nil {
			return err
		}
		return write(p)
	}); err != nil {
		return err
	}
	if err := c.sameLength(); err != nil {
		return err
	}
	if err := end(); err != nil {
		return err
	}
	c.result.VirtualSize, c.result.FileSize = header.VirtualSize, size
	c.result.Digest, err = c.out.finish(head)
	return err
}

// partitions checks the disk inside a qcow2 file, to its end if all can be read.
func (c *conversion) partitions(guest *qcow2.Guest, size int64, whole bool) error {
	table, err := disk.Read(guest)
	if err != nil {
		return err
	}
	c.result.Disk = table
	if err := table.Talos(); err != nil {
		return err
	}
	if err := table.Fits(size); err != nil {
		return err
	}
	for _, b := range table.BootSectors() {
		sector := make([]byte, disk.BootSectorSize)
		if _, err := guest.ReadAt(sector, b.Offset); err != nil {
			if r := format.Refused(err); !whole && r != nil && r.Reason == format.NotCheckable {
				continue // behind what is known of a stream
			}
			return err
		}
		if err := b.Check(sector); err != nil {
			return err
		}
	}
	if !whole {
		return nil
	}
	sector := make([]byte, table.SectorSize)
	if _, err := guest.ReadAt(sector, table.Backup()); err != nil {
		return err
	}
	if err := table.CheckBackup(sector); err != nil {
		return err
	}
	content, err := guest.Content(table.End())
	if err != nil || content < 0 {
		return err
	}
	return table.Ends(content)
}

func tooLarge(size, limit int64) error {
	return format.Refuse(format.TooLarge, format.Raw, "the disk has %d bytes or more, and %d are the limit", size, limit).Advise(format.Fit)
}
