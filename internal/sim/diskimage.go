package sim

import (
	"errors"

	"bastide/internal/sim/api"
	"bastide/internal/sim/hardware"
	"bastide/internal/sim/s3"
	"bastide/internal/sim/talosdisk"
)

const gigabyte = 1_000_000_000

// diskImage looks at an object as block storage does when it imports a snapshot:
// it must be a whole QCOW2 image that needs no other file. A disk without Talos
// is a good disk, which boots nothing here. The object is read as it was when
// the import began, whatever happens to it meanwhile.
func diskImage(store *s3.Server, region, bucket, key string) (api.Object, error) {
	content, length, err := store.Open(region, bucket, key)
	if err != nil {
		return api.Object{}, err
	}
	size, err := talosdisk.PeekSize(content)
	if err != nil {
		return api.Object{}, errors.Join(err, content.Close())
	}
	return api.Object{SizeBytes: snapshotSize(size), Read: func() (image *hardware.TalosImage, err error) {
		defer func() { err = errors.Join(err, content.Close()) }()
		disk, err := talosdisk.OpenQCOW2(content, length)
		if err != nil {
			return nil, err
		}
		label, err := talosdisk.Read(disk)
		if errors.Is(err, talosdisk.ErrNoTalos) {
			return nil, nil
		}
		return &hardware.TalosImage{Version: label.Version, Schematic: label.Schematic, Extensions: label.Extensions,
			KernelArgs: label.KernelArgs, Platform: label.Platform}, err
	}}, nil
}

// snapshotSize is the size that block storage gives a disk. One that is no
// multiple of 1 GiB, such as the recorded one is, is rounded up to the whole
// gigabyte that block storage counts in.
func snapshotSize(disk int64) int64 {
	if disk%(1<<30) == 0 {
		return disk
	}
	return (disk + gigabyte - 1) / gigabyte * gigabyte
}
