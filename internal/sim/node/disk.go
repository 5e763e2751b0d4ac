package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bastide/internal/sim/hardware"
)

const (
	mib = int64(1) << 20
	// imageSize is what the amd64 disk image itself takes: EFI, BIOS, BOOT with
	// both boot entries, and META.
	imageSize = 4247 * mib
	// stateSize is the STATE partition, made at the first boot with a configuration.
	stateSize = 100 * mib
	// smallestEphemeral is below what Talos makes an EPHEMERAL volume of.
	smallestEphemeral = 2048 * mib
)

// installed is a boot entry: what the disk image, or an upgrade, put on a disk.
type installed struct {
	Version    string   `json:"version"`
	Schematic  string   `json:"schematic"`
	Extensions []string `json:"extensions"`
	KernelArgs []string `json:"kernelArgs,omitempty"` // the schematic's own
	// Platform is what Talos takes the machine for; empty means scaleway.
	Platform string `json:"platform,omitempty"`
}

func (i installed) platform() string {
	if i.Platform == "" {
		return "scaleway"
	}
	return i.Platform
}

// table is what a disk carries, kept as disk.json in the volume's folder beside
// the folders of its file systems, state and ephemeral.
type table struct {
	Boot     *installed `json:"boot,omitempty"`     // nil: not a Talos disk
	Previous *installed `json:"previous,omitempty"` // the other boot entry
	State    bool       `json:"state,omitempty"`
	// EphemeralSize is the size of the EPHEMERAL partition in bytes, 0 for none.
	EphemeralSize int64 `json:"ephemeralSize,omitempty"`
}

// disk is a volume as one machine sees it during one boot.
type disk struct {
	table
	dir  string
	dev  string // such as /dev/vda
	id   string // such as vda
	vol  hardware.Volume
	boot bool
}

// disks are all disks of a machine in the order of their device names.
type disks []*disk

// openDisks reads the disks of a machine. It fails when none has a boot entry
// where the firmware looks.
func openDisks(f *Farm, hw hardware.Machine, q quirks) (disks, error) {
	var all disks
	for _, v := range hw.Volumes {
		d := &disk{dir: f.volumeDir(v.ID), vol: v}
		if err := d.load(); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	if len(all) == 0 {
		return nil, errors.New("no disk")
	}
	if all[0].Boot == nil {
		return nil, fmt.Errorf("disk %s holds no operating system", all[0].vol.ID)
	}
	all[0].boot = true
	if err := all.forget(q.Forget); err != nil {
		return nil, err
	}
	if sys := all[0]; q.FallBack && sys.Previous != nil {
		sys.Boot, sys.Previous = sys.Previous, sys.Boot
		if err := sys.save(); err != nil {
			return nil, err
		}
	}
	if q.DiskOrder {
		for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
			all[i], all[j] = all[j], all[i]
		}
	}
	for i, d := range all {
		d.id = fmt.Sprintf("vd%c", 'a'+i)
		d.dev = "/dev/" + d.id
	}
	return all, nil
}

// system is the disk that the machine booted from.
func (ds disks) system() *disk {
	for _, d := range ds {
		if d.boot {
			return d
		}
	}
	return ds[0]
}

// ephemeral is the disk with the EPHEMERAL partition, nil when there is none.
func (ds disks) ephemeral() *disk {
	for _, d := range ds {
		if d.EphemeralSize > 0 {
			return d
		}
	}
	return nil
}

// forget loses what a fault script says that a boot finds gone.
func (ds disks) forget(what string) error {
	eph := ds.ephemeral()
	switch {
	case what == "state":
		return ds.system().wipe("STATE")
	case what == "ephemeral" && eph != nil:
		return eph.wipe("EPHEMERAL")
	case what == "etcd" && eph != nil:
		return os.RemoveAll(filepath.Join(eph.ephemeralDir(), "etcd"))
	}
	return nil
}

func (d *disk) load() error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(d.dir, "disk.json"))
	if errors.Is(err, fs.ErrNotExist) {
		if img := d.vol.Image; img != nil {
			d.Boot = &installed{img.Version, img.Schematic, img.Extensions, img.KernelArgs, img.Platform}
			return d.save()
		}
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &d.table); err != nil {
		return fmt.Errorf("reading the partitions of volume %s: %w", d.vol.ID, err)
	}
	return nil
}

func (d *disk) save() error {
	raw, err := json.Marshal(d.table)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(d.dir, "disk.json"), raw)
}

// free is how much a new EPHEMERAL partition could take.
func (d *disk) free() int64 {
	if d.EphemeralSize > 0 {
		return 0
	}
	if d.boot {
		return d.vol.SizeBytes - imageSize - stateSize
	}
	return d.vol.SizeBytes - 2*mib
}

func (d *disk) stateFile() string    { return filepath.Join(d.dir, "state", "config.yaml") }
func (d *disk) ephemeralDir() string { return filepath.Join(d.dir, "ephemeral") }

// savedConfig returns the configuration on the STATE partition, nil for none.
func (d *disk) savedConfig() ([]byte, error) {
	raw, err := os.ReadFile(d.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}

// saveConfig writes the configuration to the STATE partition, which it makes
// when there is none.
func (d *disk) saveConfig(raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(d.stateFile()), 0o700); err != nil {
		return err
	}
	if !d.State {
		d.State = true
		if err := d.save(); err != nil {
			return err
		}
	}
	return replaceFile(d.stateFile(), raw)
}

// wipe empties a partition, or the whole disk when label is empty.
func (d *disk) wipe(label string) error {
	switch label {
	case "STATE":
		d.State = false
		return errors.Join(os.RemoveAll(filepath.Dir(d.stateFile())), d.save())
	case "EPHEMERAL":
		d.EphemeralSize = 0
		return errors.Join(os.RemoveAll(d.ephemeralDir()), d.save())
	case "":
		d.table = table{}
		return errors.Join(os.RemoveAll(filepath.Dir(d.stateFile())), os.RemoveAll(d.ephemeralDir()), d.save())
	}
	return nil
}

// replaceFile writes a file so that a reader sees the old or the new contents
// and nothing between.
func replaceFile(name string, data []byte) error {
	tmp := name + ".new"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}
