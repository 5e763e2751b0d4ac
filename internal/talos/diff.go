package talos

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	documents "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configdiff"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"bastide/internal/vault"
)

// Digest stands for a configuration: SHA-256 over its canonical form. Nodes
// keep the bytes that they were sent until something else, such as an upgrade
// of Kubernetes by talosctl, writes them anew with comments or in another
// order; the digest is the same then. It gives nothing of the secrets away.
func Digest(text []byte) (string, error) {
	p, err := configloader.NewFromBytes(text)
	if err != nil {
		return "", fmt.Errorf("read machine configuration: %w", err)
	}
	return digestOf(p)
}

func digestOf(p config.Provider) (string, error) {
	c, err := canonical(p)
	if err != nil {
		return "", err
	}
	text, err := encode(c)
	if err != nil {
		return "", fmt.Errorf("encode machine configuration: %w", err)
	}
	return digestText(text), nil
}

// digestText is the digest of a configuration that is in canonical form.
func digestText(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:12])
}

// canonical is the same with its documents in a fixed order; the encoder itself
// fixes the order of keys.
func canonical(p config.Provider) (*container.Container, error) {
	docs := slices.Clone(p.Documents()) // to put in order; the documents themselves are only read
	slices.SortStableFunc(docs, func(a, b documents.Document) int { return strings.Compare(documentName(a), documentName(b)) })
	return container.New(docs...)
}

func documentName(d documents.Document) string {
	name := d.Kind()
	if named, ok := d.(documents.NamedDocument); ok {
		name += "/" + named.Name()
	}
	return name
}

// Change is the difference between what a node has and what it should have.
type Change struct {
	Lines  []string // unified diff; secrets are masked
	Reboot bool     // the node must reboot for it to take effect
	Idle   bool     // nothing that runs notices: it is only read by the next upgrade
}

// Compare says what applying want to a node that has have would change. Either
// may hold secrets; the result does not, but says when a secret differs.
func Compare(have, want []byte) (Change, error) {
	old, err := configloader.NewFromBytes(have)
	if err != nil {
		return Change{}, fmt.Errorf("read the node's configuration: %w", err)
	}
	wanted, err := configloader.NewFromBytes(want)
	if err != nil {
		return Change{}, fmt.Errorf("read the wanted configuration: %w", err)
	}
	a, err := canonical(old.RedactSecrets(vault.Mask))
	if err != nil {
		return Change{}, err
	}
	b, err := canonical(wanted.RedactSecrets(vault.Mask))
	if err != nil {
		return Change{}, err
	}
	text, err := configdiff.DiffConfigs(a, b)
	if err != nil {
		return Change{}, fmt.Errorf("compare configurations: %w", err)
	}
	idle, err := idles(old, wanted)
	if err != nil {
		return Change{}, err
	}
	c := Change{Reboot: reboots(old, wanted), Idle: idle}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "--- ") && !strings.HasPrefix(line, "+++ ") {
			c.Lines = append(c.Lines, line)
		}
	}
	if len(c.Lines) == 0 {
		same, err := sameDigest(old, wanted)
		if err != nil {
			return Change{}, err
		}
		if !same {
			c.Lines = []string{"only secret values differ"}
		}
	}
	return c, nil
}

func sameDigest(a, b config.Provider) (bool, error) {
	x, err := digestOf(a)
	if err != nil {
		return false, err
	}
	y, err := digestOf(b)
	return x == y, err
}

// reboots says whether a change takes a reboot to be true of the node.
func reboots(have, want config.Provider) bool {
	return needsReboot(have.RawV1Alpha1(), want.RawV1Alpha1()) || restartsEtcd(have.RawV1Alpha1(), want.RawV1Alpha1())
}

// idles says whether two configurations differ in nothing but machine.install, which
// a node that runs from its disk reads when it is upgraded and at no other time.
func idles(have, want config.Provider) (bool, error) {
	old, next := have.RawV1Alpha1(), want.RawV1Alpha1()
	if old == nil || next == nil || old.MachineConfig == nil || next.MachineConfig == nil ||
		reflect.DeepEqual(old.MachineConfig.MachineInstall, next.MachineConfig.MachineInstall) {
		return false, nil
	}
	as, err := want.PatchV1Alpha1(func(c *v1alpha1.Config) error {
		c.MachineConfig.MachineInstall = old.MachineConfig.MachineInstall
		return nil
	})
	if err != nil {
		return false, err
	}
	return sameDigest(have, as)
}

// needsReboot follows Talos 1.13: everything under cluster and most of machine
// takes effect at once, and so do all other documents; the rest of machine
// (type, token, disks, files, environment, udev, disk encryption, some
// features) needs a reboot. The node has the last word when it is asked to
// apply.
func needsReboot(have, want *v1alpha1.Config) bool {
	if have == nil || want == nil || have.MachineConfig == nil || want.MachineConfig == nil {
		return true
	}
	next := want.DeepCopy()
	next.ConfigDebug, next.ClusterConfig = have.ConfigDebug, have.ClusterConfig
	m, old := next.MachineConfig, have.MachineConfig
	m.MachineCA, m.MachineAcceptedCAs, m.MachineCertSANs = old.MachineCA, old.MachineAcceptedCAs, old.MachineCertSANs
	m.MachineTime, m.MachineNetwork, m.MachineRegistries = old.MachineTime, old.MachineNetwork, old.MachineRegistries //nolint:staticcheck
	m.MachineInstall, m.MachineSysfs, m.MachineSysctls = old.MachineInstall, old.MachineSysfs, old.MachineSysctls
	m.MachineLogging, m.MachineControlPlane, m.MachineKubelet = old.MachineLogging, old.MachineControlPlane, old.MachineKubelet
	m.MachineKernel, m.MachinePods, m.MachineSeccompProfiles = old.MachineKernel, old.MachinePods, old.MachineSeccompProfiles
	m.MachineNodeAnnotations, m.MachineNodeLabels, m.MachineNodeTaints = old.MachineNodeAnnotations, old.MachineNodeLabels, old.MachineNodeTaints
	if m.MachineFeatures != nil && old.MachineFeatures != nil {
		f, o := m.MachineFeatures, old.MachineFeatures
		f.KubernetesTalosAPIAccessConfig, f.KubePrismSupport, f.HostDNSSupport = o.KubernetesTalosAPIAccessConfig, o.KubePrismSupport, o.HostDNSSupport
		f.ImageCacheSupport, f.FeatureNodeAddressSortAlgorithm = o.ImageCacheSupport, o.FeatureNodeAddressSortAlgorithm
	}
	return !reflect.DeepEqual(have, next)
}

// restartsEtcd says whether etcd's own settings differ: they are accepted at
// once but used only when etcd starts again.
func restartsEtcd(have, want *v1alpha1.Config) bool {
	if have == nil || want == nil || have.ClusterConfig == nil || want.ClusterConfig == nil {
		return false
	}
	return !reflect.DeepEqual(have.ClusterConfig.EtcdConfig, want.ClusterConfig.EtcdConfig)
}
