package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"bastide/internal/sim/hardware"
	"bastide/internal/sim/s3"
)

// diskImage looks at an object as block storage does when it imports a snapshot:
// it must be a QCOW2 image that needs no other file. What Talos is on the disk
// is not looked for, so an imported disk boots nothing.
func diskImage(store *s3.Server, region, bucket, key string) (sizeBytes int64, image *hardware.TalosImage, err error) {
	content, _, err := store.Open(region, bucket, key)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	sizeBytes, err = qcow2Size(content)
	return sizeBytes, nil, err
}

// qcow2Header is how a QCOW2 image begins, as QEMU's docs/interop/qcow2 lays it
// down, as far as the disk's size. All numbers are big-endian.
type qcow2Header struct {
	Magic         uint32
	Version       uint32
	BackingOffset uint64
	BackingLength uint32
	ClusterBits   uint32
	Size          uint64
}

const (
	qcow2Magic = 0x514649fb // "QFI" 0xfb
	gigabyte   = 1_000_000_000
)

// qcow2Size is the size of the disk that an image holds, in bytes. One that is no
// multiple of 1 GiB, such as the recorded one is, is rounded up to the whole
// gigabyte that block storage counts in.
func qcow2Size(r io.Reader) (int64, error) {
	var h qcow2Header
	if err := binary.Read(r, binary.BigEndian, &h); err != nil {
		return 0, err
	}
	switch {
	case h.Magic != qcow2Magic || h.Version < 2 || h.Version > 3:
		return 0, errors.New("it is no QCOW2 image")
	case h.BackingOffset != 0 || h.BackingLength != 0:
		return 0, errors.New("it needs a backing file")
	case h.Size == 0 || h.Size > 10_000*gigabyte:
		return 0, fmt.Errorf("a disk of %d bytes is not possible", h.Size)
	case h.Size%(1<<30) == 0:
		return int64(h.Size), nil
	}
	return int64((h.Size + gigabyte - 1) / gigabyte * gigabyte), nil
}
