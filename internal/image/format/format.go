// Package format recognises a disk image by how its bytes begin, never by its
// name, and has the one type in which the image rooms say no to a file.
package format

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// Kind is what a file was recognised as.
type Kind string

// The kinds that are told apart. What is taken is raw, qcow2, zstd and xz; the
// others are known so that a refusal can name them.
const (
	QCOW2   Kind = "qcow2"
	Raw     Kind = "raw"  // a disk with a partition table
	Zstd    Kind = "zstd" // compressed; what is inside shows when it is decompressed
	XZ      Kind = "xz"
	Gzip    Kind = "gzip"
	Bzip2   Kind = "bzip2"
	LZ4     Kind = "lz4"
	HTML    Kind = "HTML"
	JSON    Kind = "JSON"
	XML     Kind = "XML"
	VMDK    Kind = "VMDK"
	VHD     Kind = "VHD"
	VHDX    Kind = "VHDX"
	VDI     Kind = "VDI"
	ISO     Kind = "ISO 9660"
	Tar     Kind = "tar"
	Zip     Kind = "zip"
	PE      Kind = "EFI program" // a UKI, which the Factory offers beside the disks
	Empty   Kind = "empty"
	Unknown Kind = "unknown"
)

// Enough is how many bytes from the beginning Sniff wants to see: the mark of an
// ISO 9660 file is in its 17th sector of 2048 bytes.
const Enough = 34 << 10

var marks = []struct {
	at   int
	mark string
	kind Kind
}{
	{0, "QFI\xfb", QCOW2},
	{0, "\x28\xb5\x2f\xfd", Zstd},
	{0, "\xfd7zXZ\x00", XZ},
	{0, "\x1f\x8b", Gzip},
	{0, "BZh", Bzip2},
	{0, "\x04\x22\x4d\x18", LZ4},
	{0, "KDMV", VMDK},
	{0, "COWD", VMDK},
	{0, "# Disk DescriptorFile", VMDK},
	{0, "conectix", VHD},
	{0, "vhdxfile", VHDX},
	{0x40, "\x7f\x10\xda\xbe", VDI},
	{0, "PK\x03\x04", Zip},
	{257, "ustar", Tar},
}

// Sniff says what a file is by its first bytes; more than Enough make no
// difference, fewer only if the file has no more.
func Sniff(p []byte) Kind {
	if len(p) == 0 {
		return Empty
	}
	for _, m := range marks {
		if len(p) >= m.at+len(m.mark) && string(p[m.at:m.at+len(m.mark)]) == m.mark {
			return m.kind
		}
	}
	switch {
	case skippable(p):
		return Zstd
	case partitioned(p): // before ISO: a hybrid ISO has both, and is taken for what it can boot as
		if iso(p) {
			return ISO
		}
		return Raw
	case iso(p):
		return ISO
	case len(p) > 1 && p[0] == 'M' && p[1] == 'Z':
		return PE
	}
	return text(p)
}

// skippable frames may come before zstd's first real one; pzstd writes them.
func skippable(p []byte) bool {
	return len(p) >= 4 && binary.LittleEndian.Uint32(p)&^0xf == 0x184d2a50
}

// partitioned looks for an MBR, protective or not, or a GPT header that has lost it.
func partitioned(p []byte) bool {
	if len(p) >= 512 && p[510] == 0x55 && p[511] == 0xaa {
		return true
	}
	for _, sector := range []int{512, 4096} {
		if len(p) >= sector+8 && string(p[sector:sector+8]) == "EFI PART" {
			return true
		}
	}
	return false
}

func iso(p []byte) bool {
	const at = 16*2048 + 1
	return len(p) >= at+5 && string(p[at:at+5]) == "CD001"
}

// text tells the ways in which servers say something else than the file.
func text(p []byte) Kind {
	head := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(p[:min(len(p), 1024)], []byte("\xef\xbb\xbf")), " \t\r\n"))
	switch {
	case bytes.HasPrefix(head, []byte("<!doctype html")), bytes.HasPrefix(head, []byte("<html")), bytes.HasPrefix(head, []byte("<head")), bytes.HasPrefix(head, []byte("<!--")):
		return HTML
	case bytes.HasPrefix(head, []byte("<?xml")), bytes.HasPrefix(head, []byte("<error")):
		return XML
	case (bytes.HasPrefix(head, []byte("{")) || bytes.HasPrefix(head, []byte("["))) && legible(p):
		return JSON
	}
	return Unknown
}

// legible says that nothing in the first bytes is what no text has: a program may
// begin with a bracket too.
func legible(p []byte) bool {
	p = p[:min(len(p), 1024)]
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		if r == utf8.RuneError && n == 1 && utf8.FullRune(p) || r < ' ' && r != '\t' && r != '\r' && r != '\n' || r == 0x7f {
			return false
		}
		p = p[n:]
	}
	return true
}
