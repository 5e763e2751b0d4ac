package node

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/extensions"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
	"github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	timeres "github.com/siderolabs/talos/pkg/machinery/resources/time"
)

// publishHardware tells of what does not depend on a network.
func (n *node) publishHardware() {
	v := runtime.NewVersion()
	v.TypedSpec().Name, v.TypedSpec().Version = "Talos", n.version()
	n.put(v)
	n.publishDisks()
	sec := runtime.NewSecurityStateSpec(runtime.NamespaceName)
	sec.TypedSpec().BootedWithUKI = true
	n.put(sec)
	boot := n.disks.system().Boot
	for i, e := range boot.Extensions {
		n.publishExtension(fmt.Sprint(i), e[strings.LastIndexByte(e, '/')+1:], n.version(), "Sidero Labs")
	}
	if boot.Schematic != "" {
		n.publishExtension(fmt.Sprint(len(boot.Extensions)), "schematic", boot.Schematic, "Image Factory")
	}
	n.publishCmdline(boot)
	n.publishPlatform(boot.platform())
	n.publishTime()
}

// publishCmdline tells how the kernel was started, as far as it concerns people:
// where Talos runs, and what the schematic adds.
func (n *node) publishCmdline(boot *installed) {
	r := runtime.NewKernelCmdline()
	args := append([]string{"talos.platform=" + boot.platform(), "console=ttyS0", "init_on_alloc=1", "slab_nomerge=", "pti=on",
		"consoleblank=0", "nvme_core.io_timeout=4294967295", "printk.devkmsg=on", "selinux=1"}, boot.KernelArgs...)
	r.TypedSpec().Cmdline = strings.Join(args, " ")
	n.put(r)
}

// publishPlatform tells what the metadata service said of the machine; only
// Talos for Scaleway asks it.
func (n *node) publishPlatform(platform string) {
	p := runtime.NewPlatformMetadataSpec(runtime.NamespaceName, runtime.PlatformMetadataID)
	s := p.TypedSpec()
	if s.Platform = platform; platform != "scaleway" {
		n.put(p)
		return
	}
	s.Hostname, s.Zone, s.InstanceType, s.InstanceID = n.hw.Hostname, n.hw.Zone, n.hw.CommercialType, n.hw.ServerID
	if i := strings.LastIndexByte(n.hw.Zone, '-'); i > 0 {
		s.Region = n.hw.Zone[:i]
	}
	s.ProviderID = "scaleway://instance/" + n.hw.Zone + "/" + n.hw.ServerID
	n.put(p)
}

func (n *node) publishExtension(id, name, version, author string) {
	r := runtime.NewExtensionStatus(runtime.NamespaceName, id)
	r.TypedSpec().Image = fmt.Sprintf("00%s.ghcr.io-siderolabs-%s.sqsh", id, name)
	r.TypedSpec().Metadata = extensions.Metadata{Name: name, Version: version, Author: author, Description: name}
	n.put(r)
}

func (n *node) publishTime() {
	n.mu.Lock()
	synced := n.timeSynced
	n.mu.Unlock()
	t := timeres.NewStatus()
	t.TypedSpec().Synced = synced
	n.put(t)
}

// publishNetwork tells of links, addresses and routes as DHCP gave them.
func (n *node) publishNetwork() {
	var all []netip.Prefix
	for i, nic := range n.hw.NICs {
		link := fmt.Sprintf("eth%d", i+1)
		l := network.NewLinkStatus(network.NamespaceName, link)
		mac, _ := net.ParseMAC(nic.MAC)
		l.TypedSpec().Index, l.TypedSpec().HardwareAddr, l.TypedSpec().PermanentAddr = uint32(i+2), nethelpers.HardwareAddr(mac), nethelpers.HardwareAddr(mac)
		l.TypedSpec().Type, l.TypedSpec().LinkState, l.TypedSpec().OperationalState, l.TypedSpec().MTU, l.TypedSpec().Driver = nethelpers.LinkEther, true, nethelpers.OperStateUp, 1500, "virtio_net"
		n.put(l)
		if !nic.Address.IsValid() {
			continue
		}
		all = append(all, nic.Address)
		a := network.NewAddressStatus(network.NamespaceName, link+"/"+nic.Address.String())
		a.TypedSpec().Address, a.TypedSpec().LinkName, a.TypedSpec().LinkIndex, a.TypedSpec().Family = nic.Address, link, uint32(i+2), nethelpers.FamilyInet4
		n.put(a)
		n.publishRoute(link, nic.Address.Masked(), netip.Addr{})
		if nic.Gateway.IsValid() {
			n.publishRoute(link, netip.Prefix{}, nic.Gateway)
		}
	}
	for _, ip := range n.hw.PublicIPs {
		all = append(all, netip.PrefixFrom(ip, ip.BitLen()))
	}
	for _, id := range []string{
		network.NodeAddressDefaultID, network.NodeAddressCurrentID, network.NodeAddressAccumulativeID, network.NodeAddressRoutedID,
		network.FilteredNodeAddressID(network.NodeAddressCurrentID, k8s.NodeAddressFilterNoK8s),
		network.FilteredNodeAddressID(network.NodeAddressAccumulativeID, k8s.NodeAddressFilterNoK8s),
		network.FilteredNodeAddressID(network.NodeAddressRoutedID, k8s.NodeAddressFilterNoK8s),
	} {
		r := network.NewNodeAddress(network.NamespaceName, id)
		r.TypedSpec().Addresses = slices.Clone(all)
		if id == network.NodeAddressDefaultID && len(all) > 1 {
			r.TypedSpec().Addresses = all[:1]
		}
		n.put(r)
	}
	s := network.NewStatus(network.NamespaceName, network.StatusID)
	s.TypedSpec().AddressReady, s.TypedSpec().HostnameReady, s.TypedSpec().EtcFilesReady = true, true, true
	s.TypedSpec().ConnectivityReady = n.defaultRoute()
	n.put(s)
	n.publishHostname()
}

func (n *node) publishRoute(link string, to netip.Prefix, via netip.Addr) {
	id := "inet4/"
	if via.IsValid() {
		id += via.String()
	}
	id += "/"
	if to.IsValid() {
		id += to.String()
	}
	r := network.NewRouteStatus(network.NamespaceName, id+"/1024")
	s := r.TypedSpec()
	s.Family, s.Destination, s.Gateway, s.OutLinkName, s.Priority = nethelpers.FamilyInet4, to, via, link, 1024
	s.Table, s.Protocol = nethelpers.TableMain, nethelpers.ProtocolBoot
	n.put(r)
}

func (n *node) publishHostname() {
	h := network.NewHostnameStatus(network.NamespaceName, network.HostnameID)
	h.TypedSpec().Hostname = n.hostname()
	n.put(h)
}

// publishConfigured tells of what follows from the configuration.
func (n *node) publishConfigured() {
	cfg := n.config()
	n.publishHostname()
	n.publishPartition("STATE", "5", stateSize, true)
	nn := k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID)
	nn.TypedSpec().Nodename, nn.TypedSpec().SkipNodeRegistration = n.hostname(), cfg.Machine().Kubelet().SkipNodeRegistration()
	n.put(nn)
	info := cluster.NewInfo()
	info.TypedSpec().ClusterID, info.TypedSpec().ClusterName = cfg.Cluster().ID(), cfg.Cluster().Name()
	n.put(info)
	disc := cluster.NewConfig(cluster.NamespaceName, cluster.ConfigID)
	disc.TypedSpec().DiscoveryEnabled = cfg.Cluster().Discovery().Enabled()
	n.put(disc)
	n.publishKubelet()
	n.mu.Lock()
	a := n.listeners
	n.mu.Unlock()
	if a != nil && a.cert != nil {
		if n.isControlPlane() {
			a.cert.renew()
		} else {
			n.askForCertificate(a.cert)
		}
	}
	if n.isControlPlane() {
		n.publishManifestsConfig()
		if n.criUp {
			n.publishEtcd()
		}
	}
}

// publishKubelet tells how the kubelet is started.
func (n *node) publishKubelet() {
	cfg := n.config()
	m := cfg.Machine().Kubelet()
	ip := n.nodeIP()
	if !ip.IsValid() {
		return
	}
	addr := k8s.NewNodeIP(k8s.NamespaceName, k8s.KubeletID)
	addr.TypedSpec().Addresses = []netip.Addr{ip}
	n.put(addr)
	set := newArgs(map[string]string{
		"config": "/etc/kubernetes/kubelet.yaml", "cert-dir": "/var/lib/kubelet/pki", "hostname-override": n.hostname(),
		"bootstrap-kubeconfig": "/etc/kubernetes/bootstrap-kubeconfig", "kubeconfig": "/etc/kubernetes/kubeconfig-kubelet", "node-ip": ip.String(),
	}).deny("bootstrap-kubeconfig", "kubeconfig", "container-runtime", "container-runtime-endpoint", "config", "cert-dir")
	if cfg.Cluster().ExternalCloudProvider().Enabled() {
		set.values["cloud-provider"] = []string{"external"}
	}
	if err := set.merge(m.ExtraArgs()); err != nil {
		n.console.printf("error merging arguments: %v", err)
		return
	}
	r := k8s.NewKubeletSpec(k8s.NamespaceName, k8s.KubeletID)
	s := r.TypedSpec()
	s.Image, s.Args, s.ExpectedNodename, s.ExtraMounts = m.Image(), set.flags(), n.hostname(), m.ExtraMounts()
	s.Config = map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "clusterDomain": cfg.Cluster().Network().DNSDomain(),
		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock", "rotateCertificates": true, "protectKernelDefaults": true,
		"seccompDefault": m.DefaultRuntimeSeccompProfileEnabled(),
	}
	for k, v := range m.ExtraConfig() {
		s.Config[k] = v
	}
	n.put(r)
}

func (n *node) publishManifestsConfig() {
	cfg := n.config()
	r := k8s.NewBootstrapManifestsConfig()
	s := r.TypedSpec()
	cl := cfg.Cluster()
	s.Server, s.ClusterDomain, s.PodCIDRs = n.inClusterServer(), cl.Network().DNSDomain(), cl.Network().PodCIDRs()
	s.ProxyEnabled, s.ProxyImage = cl.Proxy().Enabled(), cl.Proxy().Image()
	s.CoreDNSEnabled, s.CoreDNSImage = cl.CoreDNS().Enabled(), cl.CoreDNS().Image()
	s.FlannelEnabled, s.CNIName = cl.Network().CNI().Name() == "flannel", cl.Network().CNI().Name()
	if ips, err := cl.Network().DNSServiceIPs(); err == nil && len(ips) > 0 {
		s.DNSServiceIP = ips[0].String()
	}
	n.put(r)
}

func (n *node) publishEtcd() {
	r := etcd.NewSpec(etcd.NamespaceName, etcd.SpecID)
	s := r.TypedSpec()
	s.Name, s.AdvertisedAddresses, s.Image = n.hostname(), n.etcdAddresses(), n.config().Cluster().Etcd().Image()
	s.ListenPeerAddresses, s.ListenClientAddresses = []netip.Addr{netip.IPv4Unspecified()}, []netip.Addr{netip.IPv4Unspecified()}
	n.put(r)
	n.spawn(func() {
		for {
			if id, err := n.askMemberID(n.ctx); err == nil {
				m := etcd.NewMember(etcd.NamespaceName, etcd.LocalMemberID)
				m.TypedSpec().MemberID = etcd.FormatMemberID(id)
				n.put(m)
				return
			}
			if n.etcd.empty() || n.pause(n.ctx, 5*time.Second) != nil {
				return
			}
		}
	})
}

// publishStaticPods tells of the control plane's pods while they run.
func (n *node) publishStaticPods() {
	for _, name := range staticPods {
		r := k8s.NewStaticPodStatus(k8s.NamespaceName, "kube-system/"+name+"-"+n.hostname())
		if !n.apiserver.ready() {
			n.drop(r)
			continue
		}
		r.TypedSpec().PodStatus = map[string]any{
			"phase": "Running", "hostIP": n.nodeIP().String(), "podIP": n.nodeIP().String(),
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "ContainersReady", "status": "True"}},
		}
		n.put(r)
	}
}

// staticPodProblem says which of the control plane's pods do not run.
func (n *node) staticPodProblem() string {
	if !n.isControlPlane() || n.apiserver.ready() {
		return ""
	}
	return "kube-system/kube-apiserver not ready"
}
