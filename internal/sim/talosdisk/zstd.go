package talosdisk

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/cespare/xxhash/v2"
)

const (
	zstdMagic     = 0xfd2fb528
	zstdWindowLog = 23 // what zstd takes at the level that Talos's imager asks for
	zstdBlock     = int64(128 << 10)
)

// WriteZstd writes the disk as one zstd frame with its length and a checksum.
// What is empty becomes run-length blocks, and the incompressible rest raw ones,
// as zstd itself does with such content.
func (i *Image) WriteZstd(w io.Writer) error {
	out, sum := &counted{w: w}, xxhash.New()
	head := binary.LittleEndian.AppendUint32(nil, zstdMagic)
	head = append(head, 0xc4, (zstdWindowLog-10)<<3) // length in eight bytes, window, checksum
	out.write(binary.LittleEndian.AppendUint64(head, uint64(i.size)))
	block, zeros := make([]byte, zstdBlock), make([]byte, zstdBlock)
	for at := int64(0); at < i.size && out.err == nil; at += zstdBlock {
		n := min(zstdBlock, i.size-at)
		content := zeros[:n]
		if !i.empty(at, at+n) {
			content = block[:n]
			if _, err := i.ReadAt(content, at); err != nil && err != io.EOF {
				return err
			}
		}
		_, _ = sum.Write(content)
		last := uint32(0)
		if at+n == i.size {
			last = 1
		}
		if run := bytes.Equal(content, zeros[:n]); run {
			out.write(blockHeader(last|1<<1|uint32(n)<<3, 0))
		} else {
			out.write(blockHeader(last | uint32(n)<<3))
			out.write(content)
		}
	}
	out.write(binary.LittleEndian.AppendUint32(nil, uint32(sum.Sum64())))
	return out.err
}

func blockHeader(h uint32, more ...byte) []byte {
	return append([]byte{byte(h), byte(h >> 8), byte(h >> 16)}, more...)
}
