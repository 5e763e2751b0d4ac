package talos

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	documents "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/vault"
)

// rules is what must hold of a node's configuration whatever patches say.
type rules struct {
	renderer *Renderer
	node     estate.Node
	address  netip.Addr
	sans     []string
	endpoint string
	openings []documents.Document // bastide's own part of the firewall
}

// breach is a rule that does not hold.
type breach struct {
	path string // key path
	have string
	why  string
	do   string
}

func (b *breach) refusal(where, node string) error {
	return outcome.Refuse(fmt.Sprintf("%s: %s %s on %s", where, b.path, b.have, node), b.why, b.do)
}

func (r *Renderer) rules(n estate.Node, a Addresses) rules {
	return rules{renderer: r, node: n, address: a.Nodes[n.Name], sans: r.sans(n, a), endpoint: a.Endpoint(), openings: r.firewall(n, a)}
}

// check finds the first rule that a configuration breaks.
func (r rules) check(p config.Provider) *breach {
	c := p.RawV1Alpha1()
	if c == nil || c.MachineConfig == nil || c.ClusterConfig == nil || c.MachineConfig.MachineKubelet == nil || c.MachineConfig.MachineInstall == nil {
		return &breach{"machine", "is deleted", "a node cannot be without it", "delete single keys instead"}
	}
	for _, rule := range []func(config.Provider, *v1alpha1.Config) *breach{
		r.identity, r.names, r.networks, r.virtual, r.routes, r.discovery, r.install, r.roleOnly, r.certificates, r.volumes, r.claims, r.links, r.arguments, r.firewall,
	} {
		if b := rule(p, c); b != nil {
			return b
		}
	}
	return nil
}

// identity: role, endpoint, name and secrets are the file's and the bundle's.
func (r rules) identity(p config.Provider, c *v1alpha1.Config) *breach {
	controlPlane := r.node.Role == estate.RoleControlPlane
	fromFile := "the environment file and the secrets bundle decide it"
	switch {
	case p.Machine().Type().IsControlPlane() != controlPlane:
		return &breach{"machine.type", "is " + p.Machine().Type().String(), fromFile, "remove it"}
	case c.ClusterConfig.ControlPlane == nil || c.ClusterConfig.ControlPlane.Endpoint == nil || c.ClusterConfig.ControlPlane.Endpoint.String() != r.endpoint:
		return &breach{"cluster.controlPlane.endpoint", "is not " + r.endpoint, "nodes find the cluster through the private load balancer", "remove it"}
	case c.ClusterConfig.ClusterName != r.renderer.estate.Name:
		return &breach{"cluster.clusterName", "is " + c.ClusterConfig.ClusterName, fromFile, "remove it"}
	}
	if !controlPlane {
		return r.workerIdentity(c)
	}
	if c.ClusterConfig.EtcdConfig == nil || c.ClusterConfig.APIServerConfig == nil || c.MachineConfig.MachineCA == nil || c.ClusterConfig.ClusterCA == nil ||
		c.ClusterConfig.EtcdConfig.RootCA == nil || !strings.Contains(c.ClusterConfig.BootstrapToken, ".") {
		return &breach{"cluster", "lacks a part that a control plane node needs", fromFile, "delete single keys instead"}
	}
	bundle := vault.FromMachine(secrets.NewBundleFromConfig(secrets.NewClock(), p))
	if d := vault.Differences(r.renderer.bundle, bundle); len(d) > 0 {
		return &breach{"cluster", "has another " + strings.Join(d, " and "), "secrets come from the bundle alone, or nodes could not join each other", "remove it"}
	}
	return nil
}

func (r rules) workerIdentity(c *v1alpha1.Config) *breach {
	m, b := r.renderer.bundle.Machine(), c.ClusterConfig
	if c.MachineConfig.MachineToken != m.TrustdInfo.Token || b.BootstrapToken != m.Secrets.BootstrapToken || b.ClusterSecret != m.Cluster.Secret ||
		c.MachineConfig.MachineCA == nil || string(c.MachineConfig.MachineCA.Crt) != string(m.Certs.OS.Crt) ||
		b.ClusterCA == nil || string(b.ClusterCA.Crt) != string(m.Certs.K8s.Crt) {
		return &breach{"machine", "has another token or certificate authority", "secrets come from the bundle alone, or the node could not join", "remove it"}
	}
	return nil
}

// names: a node that changes its name joins as another node.
func (r rules) names(p config.Provider, c *v1alpha1.Config) *breach {
	why := "a node that changes its name joins Kubernetes and etcd as another one"
	if net := c.MachineConfig.MachineNetwork; net != nil && net.NetworkHostname != "" && net.NetworkHostname != r.node.Name { //nolint:staticcheck
		return &breach{"machine.network.hostname", "is " + net.NetworkHostname, why, "remove it"}
	}
	if name := p.NetworkHostnameConfig(); name == nil || name.Hostname() != r.node.Name {
		return &breach{network.HostnameKind + ".hostname", "is not the node's name", why, "remove the document"}
	}
	return nil
}

// install: the image must be the one that carries the extensions.
func (r rules) install(_ config.Provider, c *v1alpha1.Config) *breach {
	want := r.renderer.installer
	if have := c.MachineConfig.MachineInstall.InstallImage; have != want {
		return &breach{"machine.install.image", "is " + have, "the next upgrade would drop the system extensions or change the version", "remove it: " + want + " follows from talos.version, talos.extensions and talos.kernelArgs"}
	}
	return nil
}

// roleOnly: nothing for control planes only goes to a worker.
func (r rules) roleOnly(_ config.Provider, c *v1alpha1.Config) *breach {
	if r.node.Role == estate.RoleControlPlane {
		return nil
	}
	k := c.ClusterConfig
	for _, part := range []struct {
		path string
		set  bool
	}{
		{"cluster.apiServer", k.APIServerConfig != nil}, {"cluster.controllerManager", k.ControllerManagerConfig != nil},
		{"cluster.scheduler", k.SchedulerConfig != nil}, {"cluster.etcd", k.EtcdConfig != nil}, {"cluster.proxy", k.ProxyConfig != nil},
		{"cluster.coreDNS", k.CoreDNSConfig != nil}, {"cluster.aggregatorCA", k.ClusterAggregatorCA != nil},
		{"cluster.serviceAccount", k.ClusterServiceAccount != nil}, {"cluster.adminKubeconfig", k.AdminKubeconfigConfig != nil},
		{"cluster.secretboxEncryptionSecret", k.ClusterSecretboxEncryptionSecret != ""}, {"cluster.aescbcEncryptionSecret", k.ClusterAESCBCEncryptionSecret != ""},
		{"cluster.inlineManifests", len(k.ClusterInlineManifests) > 0}, {"cluster.extraManifests", len(k.ExtraManifests) > 0},
		{"cluster.allowSchedulingOnControlPlanes", k.AllowSchedulingOnControlPlanes != nil},
		{"machine.controlPlane", c.MachineConfig.MachineControlPlane != nil},
	} {
		if part.set {
			return &breach{part.path, "is set", "it is for control plane nodes only", "move it to talos.patches.controlPlane"}
		}
	}
	return nil
}

// certificates: names may be added, never taken away.
func (r rules) certificates(_ config.Provider, c *v1alpha1.Config) *breach {
	why := "clients reach the node by it and would reject its certificate"
	for _, san := range r.sans {
		if !slices.Contains(c.MachineConfig.MachineCertSANs, san) {
			return &breach{"machine.certSANs", "lacks " + san, why, "add names instead of deleting them"}
		}
		if r.node.Role == estate.RoleControlPlane && !slices.Contains(c.ClusterConfig.APIServerConfig.CertSANs, san) {
			return &breach{"cluster.apiServer.certSANs", "lacks " + san, why, "add names instead of deleting them"}
		}
	}
	return nil
}

// volumes: EPHEMERAL must be able to exist, and be where it is wanted. A patch
// to a volume's provisioning replaces all of it, so one that changes a size
// also drops the disk selector unless it repeats it.
func (r rules) volumes(p config.Provider, _ *v1alpha1.Config) *breach {
	for _, d := range p.Documents() {
		v, ok := d.(*block.VolumeConfigV1Alpha1)
		if !ok {
			continue
		}
		least, most := v.ProvisioningSpec.ProvisioningMinSize.Value(), v.ProvisioningSpec.ProvisioningMaxSize.Value()
		if v.MetaName == constants.EphemeralPartitionLabel {
			least = max(least, minEphemeral)
			if b := r.ephemeralDisk(v); b != nil {
				return b
			}
		}
		if most != 0 && most < least {
			return &breach{"VolumeConfig.provisioning.maxSize", fmt.Sprintf("is below the least size of %s, %d MiB,", v.MetaName, least>>20), "the volume could never be made", "raise maxSize"}
		}
	}
	return nil
}

func (r rules) ephemeralDisk(v *block.VolumeConfigV1Alpha1) *breach {
	text := ""
	if match := v.ProvisioningSpec.DiskSelectorSpec.Match; !match.IsZero() {
		raw, err := match.MarshalText()
		if err != nil {
			return &breach{"VolumeConfig.provisioning.diskSelector", "cannot be read", err.Error(), "correct it"}
		}
		text = string(raw)
	}
	path, again := "VolumeConfig.provisioning.diskSelector", "a patch to provisioning replaces all of it: repeat the selector that `bastide render machines` shows"
	switch {
	case strings.Contains(text, "dev_path"):
		return &breach{path, "names a device path", "paths change with the order in which disks appear", again}
	case r.node.Ephemeral == nil && text != "" && text != "system_disk":
		return &breach{path, "is not system_disk", "the node has no other disk", "ask for a second volume with ephemeral: in the environment file"}
	case r.node.Ephemeral != nil && !strings.Contains(text, "!system_disk"):
		return &breach{path, "does not select the second volume", "EPHEMERAL would go to the system disk", again}
	}
	return nil
}

// arguments: flags that would keep a component from starting, or open it.
func (r rules) arguments(_ config.Provider, c *v1alpha1.Config) *breach {
	if r.node.Role != estate.RoleControlPlane {
		return nil
	}
	for flag, value := range c.ClusterConfig.APIServerConfig.ExtraArgsConfig.ToMap() {
		if flag != "advertise-address" {
			continue
		}
		if i := slices.IndexFunc(value, nowhere); i >= 0 {
			return &breach{"cluster.apiServer.extraArgs.advertise-address", "is " + value[i], "other components would be told to reach the API server at no address", "remove it"}
		}
	}
	etcd := c.ClusterConfig.EtcdConfig.EtcdExtraArgs.ToMap()
	flags := make([]string, 0, len(etcd))
	for flag := range etcd {
		flags = append(flags, flag)
	}
	slices.Sort(flags)
	for _, flag := range flags {
		path := "cluster.etcd.extraArgs." + flag
		switch {
		case slices.Contains(etcdOwned, flag):
			return &breach{path, "is set", "Talos sets it and etcd would not start", "remove it"}
		case !slices.Contains(etcdFlags, flag):
			return &breach{path, "is not a flag of etcd", "etcd would not start", "correct its name"}
		}
	}
	return nil
}

// nowhere says whether a text is the address that stands for all and none.
func nowhere(text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && a.IsUnspecified()
}

// warn names what is allowed but probably not meant.
func (r rules) warn(p config.Provider) []string {
	var out []string
	prism := p.Machine().Features().KubePrism()
	switch {
	case !prism.Enabled():
		out = append(out, "machine.features.kubePrism is off: controllers on workers then look for the Kubernetes API at localhost, where nothing listens")
	case prism.Port() != KubePrismPort:
		out = append(out, fmt.Sprintf("machine.features.kubePrism.port is %d: what is told to use localhost:%d must be told the same", prism.Port(), KubePrismPort))
	}
	if r.node.Role == estate.RoleControlPlane && p.Cluster().SecretboxEncryptionSecret() == "" {
		out = append(out, "the secrets bundle has no secretbox key: Kubernetes Secrets are encrypted with the older AES-CBC")
	}
	if w := strangeNetwork(p); w != "" {
		out = append(out, w)
	}
	if _, tag, _ := strings.Cut(p.Machine().Kubelet().Image(), ":"); tag != "v"+r.renderer.estate.Kubernetes.Version {
		out = append(out, "machine.kubelet.image is not of kubernetes.version "+r.renderer.estate.Kubernetes.Version)
	}
	return out
}

// CheckKubePrism refuses a client that is pointed at the node's own balancer
// where that does not listen: host and port are what the client (such as
// Cilium's k8sServiceHost and k8sServicePort) is told.
func CheckKubePrism(c Config, host string, port int) error {
	if host != "localhost" && host != "127.0.0.1" {
		return nil
	}
	prism := c.provider.Machine().Features().KubePrism()
	if !prism.Enabled() {
		return errors.New("k8sServiceHost is localhost and machine.features.kubePrism.enabled is false: nothing listens there")
	}
	if prism.Port() != port {
		return fmt.Errorf("k8sServicePort is %d and machine.features.kubePrism.port is %d: nothing listens there", port, prism.Port())
	}
	return nil
}
