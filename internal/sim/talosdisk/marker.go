package talosdisk

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// marker is the region's own note on a disk that it made: what Talos is on it,
// and digests of all that has to be there for it to boot.
type marker struct {
	Label
	Payload []stretch `json:"payload"`
}

type stretch struct {
	From   int64  `json:"from"`
	Length int64  `json:"length"`
	SHA256 string `json:"sha256"`
}

const (
	// markerAt is where the note begins, within the EFI partition.
	markerAt    = 64 << 10
	markerMagic = "talos of a simulated region\x00"
	markerLimit = 64 << 10
)

func (m marker) encode() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	b := append([]byte(markerMagic), make([]byte, 4)...)
	binary.BigEndian.PutUint32(b[len(markerMagic):], uint32(len(text)))
	b = append(b, text...)
	sum := sha256.Sum256(text)
	return append(b, sum[:]...), nil
}

// ErrNoTalos is what Read answers for a disk that would not boot Talos.
var ErrNoTalos = errors.New("no Talos that boots is on the disk")

// Read finds out what Talos a disk boots. A disk with another partition table,
// or one of which a part was lost on its way, boots nothing: ErrNoTalos says why.
func Read(disk io.ReaderAt) (Label, error) {
	first := make([]byte, (2+tableLBAs)*sector)
	if _, err := disk.ReadAt(first, 0); err != nil {
		return Label{}, noTalos("its first sectors cannot be read", err)
	}
	if err := checkTable(first); err != nil {
		return Label{}, err
	}
	m, err := readMarker(disk)
	if err != nil {
		return Label{}, err
	}
	for _, s := range m.Payload {
		sum := sha256.New()
		if _, err := io.Copy(sum, io.NewSectionReader(disk, s.From, s.Length)); err != nil {
			return Label{}, noTalos("its boot partitions cannot be read", err)
		}
		if hex.EncodeToString(sum.Sum(nil)) != s.SHA256 {
			return Label{}, fmt.Errorf("%w: what is at byte %d is not what the image had there", ErrNoTalos, s.From)
		}
	}
	return m.Label, nil
}

func noTalos(what string, err error) error { return fmt.Errorf("%w: %s: %w", ErrNoTalos, what, err) }

// checkTable looks at the primary partition table as the firmware does.
func checkTable(b []byte) error {
	h := bytes.Clone(b[sector : sector+headerSize])
	sum := binary.LittleEndian.Uint32(h[16:])
	clear(h[16:20])
	entries := b[2*sector : 2*sector+entrySize*entryCount]
	switch {
	case b[510] != 0x55 || b[511] != 0xaa || string(h[:8]) != "EFI PART":
		return fmt.Errorf("%w: there is no partition table", ErrNoTalos)
	case crc32.ChecksumIEEE(h) != sum || crc32.ChecksumIEEE(entries) != binary.LittleEndian.Uint32(h[88:]):
		return fmt.Errorf("%w: the checksum of the partition table is wrong", ErrNoTalos)
	case binary.LittleEndian.Uint64(entries[32:])*sector != uint64(efiStart):
		return fmt.Errorf("%w: the EFI partition is not where Talos's is", ErrNoTalos)
	}
	return nil
}

func readMarker(disk io.ReaderAt) (marker, error) {
	r := io.NewSectionReader(disk, efiStart+markerAt, markerLimit)
	head := make([]byte, len(markerMagic)+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return marker{}, noTalos("its EFI partition cannot be read", err)
	}
	n := binary.BigEndian.Uint32(head[len(markerMagic):])
	if string(head[:len(markerMagic)]) != markerMagic || n > markerLimit-256 {
		return marker{}, fmt.Errorf("%w: the region's note is missing", ErrNoTalos)
	}
	text := make([]byte, n+sha256.Size)
	if _, err := io.ReadFull(r, text); err != nil {
		return marker{}, noTalos("its EFI partition cannot be read", err)
	}
	sum := sha256.Sum256(text[:n])
	var m marker
	if !bytes.Equal(sum[:], text[n:]) || json.Unmarshal(text[:n], &m) != nil {
		return marker{}, fmt.Errorf("%w: the region's note is damaged", ErrNoTalos)
	}
	return m, nil
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err) // only constants come here
	}
	return b
}
