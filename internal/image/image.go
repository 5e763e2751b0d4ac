// Package image makes of a Talos disk, as the Image Factory or a file offers it,
// the one qcow2 file that Scaleway imports. It is bytes in, bytes out: no cloud,
// no bucket and no command is known here.
//
// Everything is one pass over a stream, without a temporary file. A qcow2 file
// begins with what is known last (its size and where its tables are), so the file
// is given away in two pieces: the body, from offset HeadSize upward, as it comes,
// and then the head. An uploader holds back the first part of a multipart upload
// until then; nothing that was not checked to the end can become a whole object.
package image

import (
	"context"
	"errors"
	"io"
	"net/http"

	"bastide/internal/image/disk"
	"bastide/internal/image/fetch"
	"bastide/internal/image/format"
	"bastide/internal/image/qcow2"
)

// HeadSize is how many bytes of the file are given to Sink.Head; the body begins
// at this offset.
const HeadSize = qcow2.HeadSize

// Sink takes the qcow2 file.
type Sink interface {
	// Write takes the next bytes of the body. The first call is for offset
	// HeadSize. It must not keep p, and an error ends the conversion.
	Write(p []byte) (int, error)
	// Head takes the bytes for offset 0. It is called once, last, and only if the
	// whole source was read, checked and written. They are HeadSize long, unless
	// the file is shorter than that and has no body.
	Head(head []byte) error
}

// Options of a conversion; the zero value is good.
type Options struct {
	// Limit is the largest disk that is taken, in bytes; 0 means DefaultLimit.
	Limit int64
	// SourceDigest asks for Result.SourceDigest. It costs a second for each 1.5 GB.
	SourceDigest bool
}

// DefaultLimit is the largest disk that is taken unless told otherwise: no Talos
// image comes near it, and a root volume of this size would cost what a server does.
const DefaultLimit = 128 << 30

// Result says what was read and written.
type Result struct {
	Format    format.Kind `json:"format"`    // of the source
	Content   format.Kind `json:"content"`   // of what was inside: raw or qcow2
	Converted bool        `json:"converted"` // false: the qcow2 file is the source's, byte for byte

	SourceSize   int64  `json:"sourceSize"`             // bytes read
	SourceDigest string `json:"sourceDigest,omitempty"` // if asked for: "sha256:" and the hex digest of the bytes read, as sha256sum prints it

	VirtualSize int64 `json:"virtualSize"` // bytes of the disk; a multiple of 512, not rounded to gigabytes
	FileSize    int64 `json:"fileSize"`    // bytes of the qcow2 file

	// Digest names the content of the qcow2 file: "sha256:" and the hex SHA-256 of
	// its body followed by its head, which is the order in which they are known:
	//
	//	{ tail -c +196609 FILE; head -c 196608 FILE; } | sha256sum
	//
	// Why not of the raw disk: four of its 4.2 GB are zeros, and hashing them would
	// take longer than all the rest. Why not of the file from its beginning: that
	// would need the file twice. The writer is deterministic and decompression does
	// not show in its input, so one disk has one digest whether it came as raw, zst
	// or xz. The Factory's own qcow2 of the same disk has another one: it is another
	// file. To recognise a source without converting it, compare SourceDigest, the
	// digest of far fewer bytes, or for the Factory its URL, which names the content.
	Digest string `json:"digest"`

	Disk *disk.Table `json:"disk"` // the partition table that was found
}

// Convert reads src to its end, recognises by content what it is, checks it, and
// gives sink the qcow2 file of the disk inside: written here if it is a raw disk,
// compressed with zstd or xz or not at all; unchanged if it is qcow2 itself. The
// partition table is checked before the first byte reaches sink, and whatever can
// only be known at the end before Head is called.
//
// If src is also a RandomAccess, a qcow2 file is checked as a whole before the
// first byte reaches sink.
//
// Errors: a *format.Refusal (see Explain) if it is the file that is wrong; src's
// and sink's own errors; ctx's. In all cases Head has not been called.
func Convert(ctx context.Context, src io.Reader, sink Sink, o Options) (*Result, error) {
	return convert(ctx, src, sink, o)
}

// RandomAccess is a source that can also be read anywhere, such as a file.
type RandomAccess interface {
	At() io.ReaderAt // nil if this one cannot
	Length() int64   // in bytes; negative if it is not known
}

// Check reads src to its end and says whether Convert would take it, writing nothing.
func Check(ctx context.Context, src io.Reader, o Options) (*Result, error) {
	return convert(ctx, src, nowhere{}, o)
}

// Look reads src as far as it takes to know that it begins as Convert would take it:
// a form that is known, and a Talos disk inside; of a qcow2 file that is also a
// RandomAccess, all but the content. It says nothing of the rest.
func Look(ctx context.Context, src io.Reader, o Options) error {
	_, err := convert(ctx, src, glance{}, o)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Open begins to read from a URL with http or https, or else a file's path.
// client nil means http.DefaultClient. See fetch.Open.
func Open(ctx context.Context, from string, client *http.Client, o fetch.Options) (*fetch.Source, error) {
	return fetch.Open(ctx, from, client, o)
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Head([]byte) error           { return nil }

var errEnough = errors.New("enough was seen")

// glance ends a conversion at what would be written first: the partition table has
// been checked by then.
type glance struct{ nowhere }

func (glance) Write([]byte) (int, error) { return 0, errEnough }

// FileSink writes the qcow2 file to a file, in place.
type FileSink struct {
	to   io.WriterAt
	next int64
}

// NewFileSink writes to an empty file.
func NewFileSink(to io.WriterAt) *FileSink { return &FileSink{to: to, next: HeadSize} }

// Write writes the body.
func (f *FileSink) Write(p []byte) (int, error) {
	n, err := f.to.WriteAt(p, f.next)
	f.next += int64(n)
	return n, err
}

// Head writes the head.
func (f *FileSink) Head(head []byte) error {
	_, err := f.to.WriteAt(head, 0)
	return err
}
