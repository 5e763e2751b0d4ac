// Package talosdisk is the Talos disk image of the simulated region: a disk
// that partitioning tools take for a fresh Talos one, in the formats that the
// Image Factory serves, and how the region finds out what is on a disk that
// somebody gives it. It shares nothing with the product, which has a reader and
// a writer of its own.
package talosdisk

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"sort"
)

const mib = int64(1) << 20

// Size is the virtual size of an amd64 image in bytes: 4247 MiB.
const Size = 4247 * mib

// Label says what Talos is on a disk.
type Label struct {
	Version    string   `json:"version"`   // such as v1.13.5
	Schematic  string   `json:"schematic"` // the Image Factory's id
	Extensions []string `json:"extensions"`
	KernelArgs []string `json:"kernelArgs,omitempty"`
	Platform   string   `json:"platform"` // scaleway, metal
}

// Image is a disk whose few places with content are known, so that nobody has
// to read four gigabytes of nothing. It is an io.ReaderAt.
type Image struct {
	size    int64
	extents []extent
}

// extent is a stretch of the disk that is not empty.
type extent struct {
	from, length int64
	content      io.ReaderAt
}

// New makes the disk of a label. The same label makes the same bytes.
func New(l Label) (*Image, error) {
	i := &Image{size: Size}
	marker, err := i.payload(l)
	if err != nil {
		return nil, err
	}
	i.add(efiStart+markerAt, bytesAt(marker))
	i.add(efiStart, bytesAt(fatSector()))
	i.add(bootStart, bytesAt(xfsSector()))
	primary, secondary := partitionTable(l)
	i.add(0, bytesAt(primary))
	i.add(Size-int64(len(secondary)), bytesAt(secondary))
	sort.Slice(i.extents, func(a, b int) bool { return i.extents[a].from < i.extents[b].from })
	return i, nil
}

// payloadBytes is how much incompressible content each of the two boot
// partitions holds. Real ones hold about ten times as much; this is enough for
// an upload of several parts and little enough for a rehearsal.
const payloadBytes = 16 * mib

// payload puts in what stands for the unified kernel image and for GRUB's
// kernel and initramfs, and writes down their digests in the marker.
func (i *Image) payload(l Label) ([]byte, error) {
	m := marker{Label: l}
	for _, at := range []int64{efiStart + mib, bootStart + mib} {
		r, err := newNoise(l, at)
		if err != nil {
			return nil, err
		}
		i.extents = append(i.extents, extent{at, payloadBytes, r})
		sum := sha256.New()
		if _, err := io.Copy(sum, io.NewSectionReader(r, 0, payloadBytes)); err != nil {
			return nil, err
		}
		m.Payload = append(m.Payload, stretch{at, payloadBytes, hex.EncodeToString(sum.Sum(nil))})
	}
	return m.encode()
}

func (i *Image) add(at int64, b bytesAt) {
	i.extents = append(i.extents, extent{at, int64(len(b)), b})
}

// ReadAt reads the disk.
func (i *Image) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= i.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), i.size-off))
	clear(p[:n])
	for _, e := range i.extents {
		from, to := max(e.from, off), min(e.from+e.length, off+int64(n))
		if from >= to {
			continue
		}
		if _, err := e.content.ReadAt(p[from-off:to-off], from-e.from); err != nil && err != io.EOF {
			return 0, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// empty says whether nothing is in a stretch of the disk.
func (i *Image) empty(from, to int64) bool {
	for _, e := range i.extents {
		if e.from < to && from < e.from+e.length {
			return false
		}
	}
	return true
}

type bytesAt []byte

func (b bytesAt) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// noise is endless incompressible content that can be read from anywhere: a key
// stream of AES in counter mode.
type noise struct {
	block cipher.Block
	nonce [8]byte
}

func newNoise(l Label, at int64) (noise, error) {
	seed := sha256.New()
	for _, s := range append([]string{l.Version, l.Schematic, l.Platform}, l.Extensions...) {
		seed.Write([]byte(s + "\x00"))
	}
	block, err := aes.NewCipher(seed.Sum(nil))
	n := noise{block: block}
	binary.BigEndian.PutUint64(n.nonce[:], uint64(at))
	return n, err
}

func (n noise) ReadAt(p []byte, off int64) (int, error) {
	iv := make([]byte, aes.BlockSize)
	copy(iv, n.nonce[:])
	binary.BigEndian.PutUint64(iv[8:], uint64(off/aes.BlockSize))
	stream := cipher.NewCTR(n.block, iv)
	skip := make([]byte, off%aes.BlockSize)
	stream.XORKeyStream(skip, skip)
	clear(p)
	stream.XORKeyStream(p, p)
	return len(p), nil
}
