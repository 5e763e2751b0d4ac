package talos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"bastide/internal/estate"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

func (v *verifier) version(ctx context.Context, s *session) {
	want := v.c.estate.Talos.Version
	have, err := s.version(ctx)
	if err != nil {
		v.unread("Talos version", want, err)
		return
	}
	v.add("Talos version", have == want, want, have, "upgrade the node, or set talos.version to what runs")
}

// schematic is what the running image was made with, by the mark that the
// Image Factory leaves in it; an image without extensions has the mark too.
func (v *verifier) schematic(ctx context.Context, s *session) {
	want := v.c.estate.Talos.SchematicID()
	have, err := s.schematic(ctx)
	if err != nil {
		v.unread("running schematic", want, err)
		return
	}
	have = schematicOf(have, want)
	v.add("running schematic", have == want, want, have, "upgrade the node with the installer image of its schematic, or set talos.extensions and talos.kernelArgs to what runs")
}

// schematicOf is what a mark says, beside the one that is wanted. Images without
// any addition have no mark where they are not of the Factory's making, and one
// of its own where they are: both mean the same.
func schematicOf(mark, want string) string {
	switch {
	case mark != "":
		return mark
	case want == estate.NoSchematic:
		return want
	}
	return "none: nothing was added to this image"
}

// schematic is the id of the schematic that the node's image was made with; ""
// where the image does not say.
func (s *session) schematic(ctx context.Context) (string, error) {
	list, err := read(ctx, s, func(ctx context.Context) (safe.List[*runtime.ExtensionStatus], error) {
		return safe.StateListAll[*runtime.ExtensionStatus](ctx, s.cosi)
	})
	if err != nil {
		return "", err
	}
	for e := range list.All() {
		if m := e.TypedSpec().Metadata; m.Name == "schematic" {
			return m.Version, nil
		}
	}
	return "", nil
}

func (v *verifier) configuration(ctx context.Context, s *session) {
	image := InstallerImage(v.c.estate.Talos)
	have, err := s.configuration(ctx)
	if err != nil {
		v.unread("installer image", image, err)
		return
	}
	p, err := configloader.NewFromBytes(have.active)
	if err != nil {
		v.unread("installer image", image, s.clean(err))
		return
	}
	v.add("installer image", p.Machine().Install().Image() == image, image, p.Machine().Install().Image(), "run `bastide up`")
	v.elsewhere()
	v.add("no change waits for a reboot", !have.staged, "nothing staged", map[bool]string{true: "a staged change", false: "nothing staged"}[have.staged], "run `bastide up`")
	v.elsewhere()
	if v.gateway.IsValid() {
		addresses := v.c.addresses
		addresses.Gateway = v.gateway
		if wanted, err := v.c.renderer.Node(v.node, addresses); err == nil {
			v.add("configuration", wanted.Digest == have.digest, wanted.Digest, have.digest, "run `bastide up`")
			v.elsewhere()
		}
	}
}

// ephemeral: the right disk and enough of it. Field report 17: an image whose
// partition table was not extended leaves a gigabyte.
func (v *verifier) ephemeral(ctx context.Context, s *session) {
	least, where := uint64(minEphemeral), "the system disk"
	if v.node.Ephemeral != nil {
		least, where = ephemeralBound(v.node.Ephemeral.Size)*1e9, "the second volume"
	}
	want := fmt.Sprintf("at least %d MiB on %s", least>>20, where)
	volume, err := read(ctx, s, func(ctx context.Context) (*block.VolumeStatus, error) {
		return safe.StateGetByID[*block.VolumeStatus](ctx, s.cosi, constants.EphemeralPartitionLabel)
	})
	if err != nil {
		v.unread("EPHEMERAL volume", want, err)
		return
	}
	spec := volume.TypedSpec()
	have := fmt.Sprintf("%d MiB on %s, %s", spec.Size>>20, spec.ParentLocation, spec.Phase)
	if spec.ErrorMessage != "" {
		have += ": " + spec.ErrorMessage
	}
	ok := spec.Phase == block.VolumePhaseReady && spec.Size >= least
	if system, err := s.systemDisk(ctx); err == nil && system != "" {
		onSystem := spec.ParentLocation == system
		ok = ok && onSystem == (v.node.Ephemeral == nil)
	}
	fix := "EPHEMERAL is smaller than the minimum: give the node a larger disk or a second volume (ephemeral:), and recreate it before it carries anything"
	v.add("EPHEMERAL volume", ok, want, have, fix)
}

// systemDisk is the device path of the disk that Talos booted from.
func (s *session) systemDisk(ctx context.Context) (string, error) {
	disk, err := read(ctx, s, func(ctx context.Context) (*block.SystemDisk, error) {
		return safe.StateGetByID[*block.SystemDisk](ctx, s.cosi, block.SystemDiskID)
	})
	if err != nil {
		return "", err
	}
	return disk.TypedSpec().DevPath, nil
}

func (v *verifier) nodeIP(ctx context.Context, s *session) {
	cidr := v.c.estate.Network.CIDR.Prefix
	want := v.c.addresses.Nodes[v.node.Name].String()
	ips, err := read(ctx, s, func(ctx context.Context) (*k8s.NodeIP, error) {
		return safe.StateGet[*k8s.NodeIP](ctx, s.cosi, resource.NewMetadata(k8s.NamespaceName, k8s.NodeIPType, k8s.KubeletID, resource.VersionUndefined))
	})
	if err != nil {
		v.unread("kubelet address", want, err)
		return
	}
	var have []string
	inside := len(ips.TypedSpec().Addresses) > 0
	for _, ip := range ips.TypedSpec().Addresses {
		have = append(have, ip.String())
		inside = inside && cidr.Contains(ip)
	}
	v.add("kubelet address", inside && slices.Contains(have, want), want, strings.Join(have, " "), "run `bastide up`: machine.kubelet.nodeIP.validSubnets must be "+cidr.String())
}

// discovery: a node with discovery off knows of no other.
func (v *verifier) discovery(ctx context.Context, s *session) {
	members, err := read(ctx, s, func(ctx context.Context) (safe.List[*cluster.Member], error) {
		return safe.StateListAll[*cluster.Member](ctx, s.cosi)
	})
	if err != nil {
		v.unread("discovery is off", "no member", err)
		return
	}
	v.add("discovery is off", members.Len() == 0, "no member", fmt.Sprintf("%d members", members.Len()), "run `bastide up`: cluster.discovery.enabled must be false")
}
