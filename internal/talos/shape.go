package talos

import (
	"fmt"
	"maps"

	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config"
	documents "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"bastide/internal/estate"
)

// KubePrismPort is where every node's own balancer of the Kubernetes API
// listens, on localhost.
const KubePrismPort = constants.DefaultKubePrismPort

const hostnameKind = network.HostnameKind

// minEphemeral is the least that EPHEMERAL must have, in bytes. Talos's own
// health check wants 6 GiB of disk, which leaves a little less than 4 GiB.
const minEphemeral = 3932 << 20

// shape turns the generated documents into what the estate asks for.
func (r *Renderer) shape(docs []documents.Document, contract *config.VersionContract, n estate.Node, a Addresses) ([]documents.Document, error) {
	for _, d := range docs {
		if c, ok := d.(*v1alpha1.Config); ok {
			r.shapeMachine(c.MachineConfig, contract, n)
			r.shapeCluster(c.ClusterConfig, n)
		}
	}
	if contract.MultidocNetworkConfigSupported() {
		hostname := network.NewHostnameConfigV1Alpha1()
		hostname.ConfigHostname = n.Name
		docs = append(docs, hostname)
	}
	volume, err := ephemeral(n)
	if err != nil {
		return nil, err
	}
	return append(append(docs, volume), r.firewall(n, a)...), nil
}

func (r *Renderer) shapeMachine(m *v1alpha1.MachineConfig, contract *config.VersionContract, n estate.Node) {
	if !contract.MultidocNetworkConfigSupported() {
		if m.MachineNetwork == nil { //nolint:staticcheck // the only place for a name before 1.12
			m.MachineNetwork = &v1alpha1.NetworkConfig{}
		}
		m.MachineNetwork.NetworkHostname = n.Name
	}
	k := r.estate.Kubernetes.Kubelet
	m.MachineKubelet.KubeletNodeIP = &v1alpha1.KubeletNodeIPConfig{KubeletNodeIPValidSubnets: []string{r.estate.Network.CIDR.String()}}
	m.MachineKubelet.KubeletExtraArgs = args(k.ExtraArgs)
	if len(k.ExtraConfig) > 0 {
		m.MachineKubelet.KubeletExtraConfig = v1alpha1.Unstructured{Object: k.ExtraConfig}
	}
	if len(n.Labels) > 0 {
		if m.MachineNodeLabels == nil {
			m.MachineNodeLabels = map[string]string{}
		}
		maps.Copy(m.MachineNodeLabels, n.Labels)
	}
	for _, t := range n.Taints {
		if m.MachineNodeTaints == nil {
			m.MachineNodeTaints = map[string]string{}
		}
		m.MachineNodeTaints[t.Key] = taint(t)
	}
}

// taint is Talos's form: value:effect, or the effect alone.
func taint(t estate.Taint) string {
	if t.Value == "" {
		return t.Effect
	}
	return t.Value + ":" + t.Effect
}

func (r *Renderer) shapeCluster(c *v1alpha1.ClusterConfig, n estate.Node) {
	off := true
	c.ClusterDiscoveryConfig.DiscoveryRegistries.RegistryService.RegistryDisabled = &off
	c.ClusterDiscoveryConfig.DiscoveryRegistries.RegistryKubernetes.RegistryDisabled = &off
	if n.Role != estate.RoleControlPlane {
		return
	}
	scheduling := false
	c.AllowSchedulingOnControlPlanes = &scheduling
	k := r.estate.Kubernetes
	c.APIServerConfig.ExtraArgsConfig = args(k.APIServer.ExtraArgs)
	if len(r.files.auditPolicy) > 0 {
		c.APIServerConfig.AuditPolicyConfig = v1alpha1.Unstructured{Object: r.files.auditPolicy}
	}
	for _, plugin := range r.files.admission {
		setAdmission(c.APIServerConfig, plugin)
	}
	c.EtcdConfig.EtcdAdvertisedSubnets = []string{r.estate.Network.CIDR.String()}
	c.EtcdConfig.EtcdExtraArgs = args(k.Etcd.ExtraArgs)
	if k.Etcd.Quota > 0 {
		if c.EtcdConfig.EtcdExtraArgs == nil {
			c.EtcdConfig.EtcdExtraArgs = v1alpha1.Args{}
		}
		c.EtcdConfig.EtcdExtraArgs["quota-backend-bytes"] = v1alpha1.NewArgValue(fmt.Sprint(int64(k.Etcd.Quota)), nil)
	}
	// A bundle from before Talos 1.3 has the older kind of key, and what etcd
	// holds is encrypted with it.
	if old := r.bundle.Machine().Secrets.AESCBCEncryptionSecret; old != "" {
		c.ClusterAESCBCEncryptionSecret = old
	}
}

// setAdmission replaces the configuration of a plug-in that Talos configures
// by itself (PodSecurity), or adds it.
func setAdmission(c *v1alpha1.APIServerConfig, plugin admissionPlugin) {
	entry := &v1alpha1.AdmissionPluginConfig{PluginName: plugin.name, PluginConfiguration: v1alpha1.Unstructured{Object: plugin.configuration}}
	for i, existing := range c.AdmissionControlConfig {
		if existing.PluginName == plugin.name {
			c.AdmissionControlConfig[i] = entry
			return
		}
	}
	c.AdmissionControlConfig = append(c.AdmissionControlConfig, entry)
}

func args(from map[string]string) v1alpha1.Args {
	if len(from) == 0 {
		return nil
	}
	out := v1alpha1.Args{}
	for k, v := range from {
		out[k] = v1alpha1.NewArgValue(v, nil)
	}
	return out
}

// ephemeral says where EPHEMERAL goes. A second volume is found by its size
// and by not being the system disk, never by a device path, which changes with
// the order in which disks appear. The bound is a tenth below what was asked
// for, so that a size that is reported slightly smaller still matches; nothing
// else is attached when EPHEMERAL is made.
func ephemeral(n estate.Node) (*block.VolumeConfigV1Alpha1, error) {
	match, least := "system_disk", uint64(minEphemeral)
	if n.Ephemeral != nil {
		bound := ephemeralBound(n.Ephemeral.Size)
		match = fmt.Sprintf("disk.size >= %du * GB && !system_disk", bound)
		least = max(least, bound*8/10*1e9)
	}
	expression, err := cel.ParseBooleanExpression(match, celenv.DiskLocator())
	if err != nil {
		return nil, fmt.Errorf("disk selector %q: %w", match, err)
	}
	grow := true
	v := block.NewVolumeConfigV1Alpha1()
	v.MetaName = constants.EphemeralPartitionLabel
	v.ProvisioningSpec.DiskSelectorSpec.Match = expression
	v.ProvisioningSpec.ProvisioningGrow = &grow
	if err := v.ProvisioningSpec.ProvisioningMinSize.UnmarshalText([]byte(fmt.Sprintf("%dMiB", least>>20))); err != nil {
		return nil, err
	}
	return v, nil
}

// ephemeralBound is the least size, in whole GB, of the disk that is taken for
// EPHEMERAL.
func ephemeralBound(size estate.Size) uint64 {
	return max(1, uint64(size)/1e9*9/10)
}
