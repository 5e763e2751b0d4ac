package talosdisk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// xzBlock is how much of the disk goes into one block of the stream; xz with
// several threads makes blocks too, larger ones.
const (
	xzBlock = 1 * mib
	xzDict  = 8 << 20
)

var crc64ECMA = crc64.MakeTable(crc64.ECMA)

// WriteXZ writes the disk as one xz stream of many blocks. Empty blocks are
// compressed once and repeated; the incompressible rest is stored, which is what
// xz does with it too.
func (i *Image) WriteXZ(w io.Writer) error {
	flags := []byte{0, 4} // CRC64
	out := &counted{w: w}
	out.write(append([]byte("\xfd7zXZ\x00"), crcAfter(flags)...))
	var index []byte
	records, empty := uint64(0), map[int64]xzBody{}
	for at := int64(0); at < i.size && out.err == nil; at += xzBlock {
		n := min(xzBlock, i.size-at)
		body, err := i.xzBody(at, n, empty)
		if err != nil {
			return err
		}
		head := xzHeader(len(body.data), n)
		out.write(head)
		out.write(body.data)
		out.write(make([]byte, padding(len(body.data))))
		out.write(binary.LittleEndian.AppendUint64(nil, body.check))
		index = binary.AppendUvarint(index, uint64(len(head)+len(body.data)+8))
		index = binary.AppendUvarint(index, uint64(n))
		records++
	}
	index = append(binary.AppendUvarint([]byte{0}, records), index...)
	index = append(index, make([]byte, padding(len(index)))...)
	out.write(binary.LittleEndian.AppendUint32(index, crc32.ChecksumIEEE(index)))
	foot := append(binary.LittleEndian.AppendUint32(nil, uint32(len(index)/4)), flags...)
	out.write(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(foot)))
	out.write(append(foot, "YZ"...))
	return out.err
}

// xzBody is a block's LZMA2 data and the checksum of what it holds.
type xzBody struct {
	data  []byte
	check uint64
}

func (i *Image) xzBody(at, n int64, empty map[int64]xzBody) (xzBody, error) {
	nothing := i.empty(at, at+n)
	if b, ok := empty[n]; nothing && ok {
		return b, nil
	}
	content := make([]byte, n)
	if _, err := i.ReadAt(content, at); err != nil && err != io.EOF {
		return xzBody{}, err
	}
	b := xzBody{check: crc64.Checksum(content, crc64ECMA)}
	var err error
	b.data, err = lzma2(content)
	if nothing {
		empty[n] = b
	}
	return b, err
}

// lzma2 compresses stretches of zeros and stores the rest.
func lzma2(content []byte) ([]byte, error) {
	if len(bytes.TrimLeft(content, "\x00")) == 0 {
		var b bytes.Buffer
		w, err := lzma.Writer2Config{DictCap: xzDict}.NewWriter2(&b)
		if err != nil {
			return nil, err
		}
		_, err = w.Write(content)
		err = errors.Join(err, w.Close())
		return b.Bytes(), err
	}
	var out []byte
	for control := byte(1); len(content) > 0; control = 2 { // the first one resets the dictionary
		n := min(len(content), 64<<10)
		out = append(out, control, byte((n-1)>>8), byte(n-1))
		out = append(out, content[:n]...)
		content = content[n:]
	}
	return append(out, 0), nil
}

// xzHeader is a block's header with both sizes and one filter, LZMA2.
func xzHeader(compressed int, uncompressed int64) []byte {
	h := []byte{0, 0xc0}
	h = binary.AppendUvarint(h, uint64(compressed))
	h = binary.AppendUvarint(h, uint64(uncompressed))
	h = append(h, 0x21, 1, 22) // a dictionary of 8 MiB
	h = append(h, make([]byte, padding(len(h)))...)
	h[0] = byte(len(h) / 4)
	return crcAfter(h)
}

func crcAfter(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b)) }

// padding is how many bytes bring a length to a multiple of four.
func padding(n int) int { return (4 - n%4) % 4 }
