package node

import (
	"context"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/cosi-project/runtime/pkg/state/registry"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/cri"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/files"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/kubeaccess"
	"github.com/siderolabs/talos/pkg/machinery/resources/kubespan"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/perf"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"
	"github.com/siderolabs/talos/pkg/machinery/resources/security"
	"github.com/siderolabs/talos/pkg/machinery/resources/siderolink"
	"github.com/siderolabs/talos/pkg/machinery/resources/time"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
)

// newResources returns an empty store in which every namespace and type of a
// Talos node is registered: a listing of a type without entries is empty, not
// an error, and talosctl resolves short names from the definitions.
func newResources() (state.State, error) {
	ctx := context.Background()
	build := inmem.NewStateWithOptions(inmem.WithHistoryInitialCapacity(8), inmem.WithHistoryMaxCapacity(1024), inmem.WithHistoryGap(4))
	st := state.WrapCore(namespaced.NewState(func(ns resource.Namespace) state.CoreState { return build(ns) }))
	namespaces, types := registry.NewNamespaceRegistry(st), registry.NewResourceRegistry(st)
	if err := namespaces.RegisterDefault(ctx); err != nil {
		return nil, err
	}
	if err := types.RegisterDefault(ctx); err != nil {
		return nil, err
	}
	for name, about := range map[string]string{
		v1alpha1.NamespaceName: "Talos v1alpha1 subsystems.", cluster.NamespaceName: "Cluster configuration and discovery.",
		cluster.RawNamespaceName: "Cluster resources before merging.", config.NamespaceName: "Node configuration.",
		etcd.NamespaceName: "etcd.", files.NamespaceName: "Files.", hardware.NamespaceName: "Hardware.",
		k8s.NamespaceName: "Kubernetes on all nodes.", k8s.ControlPlaneNamespaceName: "Kubernetes on control plane nodes.",
		kubespan.NamespaceName: "KubeSpan.", network.NamespaceName: "Network.", network.ConfigNamespaceName: "Network configuration.",
		cri.NamespaceName: "Container runtime.", secrets.NamespaceName: "Secret material.",
		security.NamespaceName: "Security.", perf.NamespaceName: "Statistics.",
	} {
		if err := namespaces.Register(ctx, name, about); err != nil {
			return nil, err
		}
	}
	for _, t := range talosTypes() {
		if err := types.Register(ctx, t); err != nil {
			return nil, err
		}
	}
	return st, nil
}

// talosTypes lists the resource types that Talos 1.13 registers.
func talosTypes() []meta.ResourceWithRD {
	return []meta.ResourceWithRD{
		&block.Device{}, &block.DiscoveredVolume{}, &block.DiscoveryRefreshRequest{}, &block.DiscoveryRefreshStatus{}, &block.Disk{},
		&block.MountRequest{}, &block.MountStatus{}, &block.SwapStatus{}, &block.Symlink{}, &block.SystemDisk{},
		&block.UserDiskConfigStatus{}, &block.VolumeConfig{}, &block.VolumeLifecycle{}, &block.VolumeMountRequest{},
		&block.VolumeMountStatus{}, &block.VolumeStatus{}, &block.ZswapStatus{}, &cluster.Affiliate{}, &cluster.Config{},
		&cluster.Identity{}, &cluster.Info{}, &cluster.Member{}, &config.MachineConfig{}, &config.MachineType{}, &cri.ImageCacheConfig{},
		&cri.SeccompProfile{}, &etcd.Config{}, &etcd.PKIStatus{}, &etcd.Spec{}, &etcd.Member{}, &files.EtcFileSpec{},
		&files.EtcFileStatus{}, &hardware.MemoryModule{}, &hardware.PCIDevice{}, &hardware.PCIDriverRebindConfig{},
		&hardware.PCIDriverRebindStatus{}, &hardware.PCRStatus{}, &hardware.Processor{}, &hardware.SystemInformation{},
		&k8s.AdmissionControlConfig{}, &k8s.AuditPolicyConfig{}, &k8s.AuthorizationConfig{}, &k8s.APIServerConfig{},
		&k8s.KubePrismEndpoints{}, &k8s.ConfigStatus{}, &k8s.ControllerManagerConfig{}, &k8s.Endpoint{}, &k8s.ExtraManifestsConfig{},
		&k8s.KubeletConfig{}, &k8s.KubeletKubeconfig{}, &k8s.KubeletLifecycle{}, &k8s.KubeletSpec{}, &k8s.KubePrismConfig{},
		&k8s.KubePrismStatuses{}, &k8s.Manifest{}, &k8s.ManifestStatus{}, &k8s.BootstrapManifestsConfig{}, &k8s.NodeAnnotationSpec{},
		&k8s.NodeCordonedSpec{}, &k8s.NodeIP{}, &k8s.NodeIPConfig{}, &k8s.NodeLabelSpec{}, &k8s.Nodename{}, &k8s.NodeStatus{},
		&k8s.NodeTaintSpec{}, &k8s.SchedulerConfig{}, &k8s.StaticPod{}, &k8s.StaticPodServerStatus{}, &k8s.StaticPodStatus{},
		&k8s.SecretsStatus{}, &kubeaccess.Config{}, &kubespan.Config{}, &kubespan.Endpoint{}, &kubespan.Identity{}, &kubespan.PeerSpec{},
		&kubespan.PeerStatus{}, &network.AddressStatus{}, &network.AddressSpec{}, &network.DeviceConfigSpec{}, &network.DNSResolveCache{},
		&network.DNSUpstream{}, &network.EthernetSpec{}, &network.EthernetStatus{}, &network.HardwareAddr{}, &network.HostDNSConfig{},
		&network.HostnameStatus{}, &network.HostnameSpec{}, &network.LinkAliasSpec{}, &network.LinkRefresh{}, &network.LinkStatus{},
		&network.LinkSpec{}, &network.NfTablesChain{}, &network.NodeAddress{}, &network.NodeAddressFilter{},
		&network.NodeAddressSortAlgorithm{}, &network.OperatorSpec{}, &network.PlatformConfig{}, &network.ProbeSpec{},
		&network.ProbeStatus{}, &network.ResolverStatus{}, &network.ResolverSpec{}, &network.RouteStatus{}, &network.RouteSpec{},
		&network.RoutingRuleSpec{}, &network.RoutingRuleStatus{}, &network.Status{}, &network.TimeServerStatus{},
		&network.TimeServerSpec{}, &perf.CPU{}, &perf.Memory{}, &cri.RegistriesConfig{}, &runtime.APIServiceConfig{},
		&runtime.BootedEntry{}, &runtime.DevicesStatus{}, &runtime.Diagnostic{}, &runtime.Environment{}, &runtime.EventSinkConfig{},
		&runtime.ExtensionServiceConfig{}, &runtime.ExtensionServiceConfigStatus{}, &runtime.ExtensionStatus{}, &runtime.KernelCmdline{},
		&runtime.KernelModuleSpec{}, &runtime.KernelParamSpec{}, &runtime.KernelParamDefaultSpec{}, &runtime.KernelParamStatus{},
		&runtime.KmsgLogConfig{}, &runtime.LoadedKernelModule{}, &runtime.MaintenanceServiceConfig{}, &runtime.MaintenanceServiceRequest{},
		&runtime.MachineResetSignal{}, &runtime.MachineStatus{}, &runtime.MetaKey{}, &runtime.MetaLoaded{}, &runtime.MountStatus{},
		&runtime.OOMAction{}, &runtime.PlatformMetadata{}, &runtime.SBOMItem{}, &runtime.SecurityState{}, &runtime.ServicePID{},
		&runtime.UniqueMachineToken{}, &runtime.Version{}, &runtime.WatchdogTimerConfig{}, &runtime.WatchdogTimerStatus{}, &secrets.API{},
		&secrets.CertSAN{}, &secrets.EncryptionSalt{}, &secrets.Etcd{}, &secrets.EtcdRoot{}, &secrets.Kubelet{}, &secrets.Kubernetes{},
		&secrets.KubernetesDynamicCerts{}, &secrets.KubernetesRoot{}, &secrets.MaintenanceRoot{}, &secrets.OSRoot{}, &secrets.Trustd{},
		&security.ImageVerificationRule{}, &security.TUFTrustedRoot{}, &siderolink.Config{}, &siderolink.Status{}, &siderolink.Tunnel{},
		&time.AdjtimeStatus{}, &time.Status{}, &v1alpha1.AcquireConfigSpec{}, &v1alpha1.AcquireConfigStatus{}, &v1alpha1.Service{},
	}
}

// put creates or replaces a resource.
func (n *node) put(r resource.Resource) {
	ctx := context.Background()
	for range 5 {
		old, err := n.resources.Get(ctx, r.Metadata())
		switch {
		case state.IsNotFoundError(err):
			err = n.resources.Create(ctx, r)
		case err == nil:
			r.Metadata().SetVersion(old.Metadata().Version())
			err = n.resources.Update(ctx, r)
		}
		if err == nil {
			return
		}
		if !state.IsConflictError(err) {
			n.log.Error("storing a resource", "type", r.Metadata().Type(), "id", r.Metadata().ID(), "err", err)
			return
		}
	}
}

// drop removes a resource if it is there.
func (n *node) drop(r resource.Resource) {
	if err := n.resources.Destroy(context.Background(), r.Metadata()); err != nil && !state.IsNotFoundError(err) {
		n.log.Error("removing a resource", "type", r.Metadata().Type(), "id", r.Metadata().ID(), "err", err)
	}
}
