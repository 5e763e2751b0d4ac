package node

import (
	"bytes"
	"compress/gzip"
	"io"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
)

// cloudMode is the validation mode of the scaleway platform: no installation is
// asked for, since the disk image is one.
type cloudMode struct{}

func (cloudMode) String() string        { return "cloud" }
func (cloudMode) RequiresInstall() bool { return false }
func (cloudMode) InContainer() bool     { return false }

// setConfig makes a configuration the active one, and the persistent one when
// persist is set. The first complete one starts the boot.
func (n *node) setConfig(cfg config.Provider, persist bool) {
	n.mu.Lock()
	n.active = cfg
	if persist {
		n.persistent = cfg
	}
	close(n.changed)
	n.changed = make(chan struct{})
	first := cfg.CompleteForBoot() && !n.configuredLocked()
	n.mu.Unlock()

	n.put(configres.NewMachineConfigWithID(cfg, configres.ActiveID))
	if persist {
		n.put(configres.NewMachineConfigWithID(cfg, configres.PersistentID))
	}
	if cfg.Machine() != nil {
		t := configres.NewMachineType()
		t.SetMachineType(cfg.Machine().Type())
		n.put(t)
	}
	if first {
		n.mu.Lock()
		if !n.configuredLocked() {
			close(n.complete)
		}
		n.mu.Unlock()
	}
}

// persist stores a configuration for the next boot only.
func (n *node) persist(cfg config.Provider) error {
	if err := n.disks.system().saveConfig(mustBytes(cfg)); err != nil {
		return err
	}
	n.mu.Lock()
	n.persistent = cfg
	n.mu.Unlock()
	n.put(configres.NewMachineConfigWithID(cfg, configres.PersistentID))
	return nil
}

func (n *node) persisted() config.Provider {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.persistent
}

func (n *node) configuredLocked() bool {
	select {
	case <-n.complete:
		return true
	default:
		return false
	}
}

// watchConfig republishes what depends on the configuration whenever it changes.
func (n *node) watchConfig() {
	for {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		select {
		case <-n.ctx.Done():
			return
		case <-changed:
			n.publishConfigured()
			n.kubelet.poke()
		}
	}
}

// mustBytes returns the bytes that a configuration was read from. They exist:
// every configuration of a node was loaded from bytes.
func mustBytes(cfg config.Provider) []byte {
	raw, err := cfg.Bytes()
	if err != nil {
		return nil
	}
	return slices.Clone(raw)
}

// gunzip unpacks user data that is compressed, which Talos detects by itself.
func gunzip(raw []byte) ([]byte, error) {
	if !bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		return raw, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
