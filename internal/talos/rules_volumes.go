package talos

import (
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// claims: a node has its system disk and at most one more, and EPHEMERAL grows
// over all that is left of the disk that it is on. A further volume could not be
// made, or would take EPHEMERAL's place, unless EPHEMERAL's size is bounded. With
// a second disk for EPHEMERAL the system disk has room.
func (r rules) claims(p config.Provider, _ *v1alpha1.Config) *breach {
	bounded := false
	for _, d := range p.Documents() {
		if v, ok := d.(*block.VolumeConfigV1Alpha1); ok && v.MetaName == constants.EphemeralPartitionLabel {
			bounded = v.ProvisioningSpec.ProvisioningMaxSize.Value() > 0
		}
	}
	if bounded {
		return nil
	}
	for _, d := range p.Documents() {
		var spec block.ProvisioningSpec
		switch v := d.(type) {
		case *block.UserVolumeConfigV1Alpha1:
			if v.VolumeType != nil && v.VolumeType.String() == "directory" {
				continue // it lies on EPHEMERAL itself
			}
			spec = v.ProvisioningSpec
		case *block.RawVolumeConfigV1Alpha1:
			spec = v.ProvisioningSpec
		case *block.SwapVolumeConfigV1Alpha1:
			spec = v.ProvisioningSpec
		default:
			continue
		}
		match, err := spec.DiskSelectorSpec.Match.MarshalText()
		if r.node.Ephemeral != nil && err == nil && string(match) == "system_disk" {
			continue
		}
		return &breach{d.Kind() + ".provisioning.diskSelector", "wants a disk that EPHEMERAL takes whole", "a disk that two volumes claim goes to one of them, and the other is never made",
			"bound EPHEMERAL with provisioning.maxSize, or give the node a second volume with ephemeral: in the environment file and select system_disk here"}
	}
	return nil
}
