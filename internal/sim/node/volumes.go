package node

import (
	"errors"
	"fmt"
	"os"

	blockpb "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/block"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
)

// provision finds or makes the EPHEMERAL volume and says where it is.
func (n *node) provision(cfg config.Provider) error {
	d, err := n.ephemeralDisk(cfg)
	if err != nil {
		n.publishVolume(nil, err)
		return err
	}
	if err := os.MkdirAll(d.ephemeralDir(), 0o700); err != nil {
		return err
	}
	if err := d.save(); err != nil {
		return err
	}
	n.mu.Lock()
	n.varDir, n.varSize = d.ephemeralDir(), d.EphemeralSize
	n.mu.Unlock()
	n.publishVolume(d, nil)
	return nil
}

// ephemeralDisk returns the disk that has, or now gets, the EPHEMERAL partition:
// an existing one wins wherever it is; else the first disk that the
// configuration's selector matches and that has room.
func (n *node) ephemeralDisk(cfg config.Provider) (*disk, error) {
	vol, _ := cfg.Volumes().ByName("EPHEMERAL")
	prov := vol.Provisioning()
	least := int64(prov.MinSize().ValueOr(uint64(smallestEphemeral)))
	most := int64(prov.MaxSize().ValueOr(0))
	limit := func(size int64) int64 {
		if most > 0 {
			size = min(size, most)
		}
		if n.quirks.SmallEphemeral > 0 {
			size = min(size, n.quirks.SmallEphemeral)
		}
		return size
	}
	if d := n.disks.ephemeral(); d != nil {
		if prov.Grow().ValueOr(true) {
			whole := d.EphemeralSize
			d.EphemeralSize = 0
			room := d.free()
			d.EphemeralSize = max(whole, limit(room))
		}
		return d, nil
	}
	selector, chosen := prov.DiskSelector().Get()
	matched := false
	for _, d := range n.disks {
		ok := d.boot
		if chosen {
			var err error
			ok, err = selector.EvalBool(celenv.DiskLocator(), map[string]any{"disk": d.locator(), "system_disk": d.boot})
			if err != nil {
				return nil, fmt.Errorf("error evaluating disk locator: %w", err)
			}
		}
		if !ok {
			continue
		}
		matched = true
		if room := d.free(); room >= least {
			size := limit(room)
			if !prov.Grow().ValueOr(true) && most == 0 {
				size = limit(least)
			}
			d.EphemeralSize = size
			return d, nil
		}
	}
	if !matched {
		return nil, errors.New("no disks matched for volume")
	}
	return nil, errors.New("no disks matched the expression: not enough space")
}

// locator is the disk as a disk selector sees it.
func (d *disk) locator() *blockpb.DiskSpec {
	return &blockpb.DiskSpec{
		Size: uint64(d.vol.SizeBytes), IoSize: 512, SectorSize: 512, DevPath: d.dev, Transport: "virtio",
		Serial: d.vol.ID, BusPath: "/virtio-" + d.id, SubSystem: "/sys/class/block",
	}
}

func (n *node) publishVolume(d *disk, failed error) {
	r := block.NewVolumeStatus(block.NamespaceName, "EPHEMERAL")
	s := r.TypedSpec()
	s.Type = block.VolumeTypePartition
	if failed != nil {
		s.Phase, s.ErrorMessage = block.VolumePhaseFailed, failed.Error()
		n.put(r)
		return
	}
	part := "1"
	if d.boot {
		part = "6"
	}
	s.Phase, s.Location, s.ParentLocation, s.Filesystem = block.VolumePhaseReady, d.dev+part, d.dev, block.FilesystemTypeXFS
	s.MountLocation, s.MountSpec.TargetPath = d.dev+part, "/var"
	s.SetSize(uint64(d.EphemeralSize))
	n.put(r)
}

// publishDisks tells of the disks and of the partitions that the image has.
func (n *node) publishDisks() {
	for _, d := range n.disks {
		r := block.NewDisk(block.NamespaceName, d.id)
		s := r.TypedSpec()
		s.DevPath, s.IOSize, s.SectorSize, s.Transport, s.Serial, s.SubSystem = d.dev, 512, 512, "virtio", d.vol.ID, "/sys/class/block"
		s.SetSize(uint64(d.vol.SizeBytes))
		n.put(r)
	}
	sys := n.disks.system()
	r := block.NewSystemDisk(block.NamespaceName, block.SystemDiskID)
	r.TypedSpec().DevPath, r.TypedSpec().DiskID = sys.dev, sys.id
	n.put(r)
	n.publishPartition("META", "4", mib, true)
	n.publishPartition("STATE", "5", stateSize, sys.State)
}

func (n *node) publishPartition(label, number string, size int64, there bool) {
	sys := n.disks.system()
	r := block.NewVolumeStatus(block.NamespaceName, label)
	s := r.TypedSpec()
	s.Type, s.Phase = block.VolumeTypePartition, block.VolumePhaseMissing
	if there {
		s.Phase, s.Location, s.ParentLocation, s.Filesystem = block.VolumePhaseReady, sys.dev+number, sys.dev, block.FilesystemTypeXFS
		s.SetSize(uint64(size))
	}
	n.put(r)
}
