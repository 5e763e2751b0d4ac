package node

import (
	"context"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
)

// boot is the start of the operating system, up to the end of its boot sequence.
func (n *node) boot() error {
	n.setSequence("initialize")
	n.setStage(stageBooting)
	if err := n.spend(n.ctx, firmwareTime+kernelTime); err != nil {
		return err
	}
	n.console.printf("Talos %s", n.version())
	for _, id := range []string{"machined", "containerd", "udevd", "syslogd", "auditd"} {
		n.services.set(id, stateRunning, "Started task "+id)
		n.services.health(id, true, "")
	}
	n.publishHardware()
	if !n.leased() { // no lease: nothing to wait for but a lease
		<-n.ctx.Done()
		return context.Cause(n.ctx)
	}
	n.linkUp()
	n.publishNetwork()
	n.setSequence("boot")
	if err := n.acquire(); err != nil {
		return err
	}
	return n.start()
}

// acquire finds the machine configuration: STATE first, then the user data, and
// maintenance when neither has one. It returns when the node has a complete one.
func (n *node) acquire() error {
	if raw, err := n.disks.system().savedConfig(); err != nil {
		return fmt.Errorf("reading STATE: %w", err)
	} else if raw != nil {
		cfg, err := n.load(raw)
		if err != nil {
			return n.never(fmt.Errorf("the configuration on STATE: %w", err))
		}
		n.console.printf("loaded config from STATE partition")
		n.setConfig(cfg, true)
	}
	if n.configured() {
		return nil
	}
	if n.disks.system().Boot.platform() != "scaleway" {
		return n.maintain() // an image for other machines does not know where Scaleway keeps user data
	}
	raw, err := n.readUserData()
	if err != nil {
		return err
	}
	if len(raw) > 0 {
		cfg, err := n.load(raw)
		if err != nil {
			return n.never(err)
		}
		n.console.printf("storing config from platform scaleway")
		n.setConfig(cfg, true)
		if cfg.CompleteForBoot() {
			return n.disks.system().saveConfig(raw)
		}
	}
	return n.maintain()
}

// readUserData asks the metadata service. Without a default route it does not
// answer, and the node asks for ever without opening its API.
func (n *node) readUserData() ([]byte, error) {
	for !n.defaultRoute() {
		n.console.printf("failed to fetch machine config from platform: dial tcp 169.254.42.42:80: connect: no route to host")
		if err := n.spend(n.ctx, metadataRetry); err != nil {
			return nil, err
		}
	}
	raw, err := gunzip(n.hw.UserData["cloud-init"])
	if err != nil {
		return nil, n.never(err)
	}
	return raw, nil
}

// load decodes and validates a configuration as the node itself would find it.
func (n *node) load(raw []byte) (config.Provider, error) {
	cfg, err := configloader.NewFromBytes(raw)
	if err != nil {
		return nil, err
	}
	if _, err := cfg.Validate(cloudMode{}); err != nil {
		return nil, err
	}
	if _, err := cfg.RuntimeValidate(n.ctx, n.resources, cloudMode{}); err != nil {
		return nil, err
	}
	return cfg, nil
}

// never retries a broken configuration until the boot ends: Talos does not fall
// back to maintenance.
func (n *node) never(why error) error {
	for {
		n.console.printf("failed to load config: %v", why)
		n.events.publish(&machine.ConfigLoadErrorEvent{Error: why.Error()}, "")
		if err := n.spend(n.ctx, metadataRetry); err != nil {
			return err
		}
	}
}

// maintain serves the maintenance API until a complete configuration arrives.
func (n *node) maintain() error {
	n.setStage(stageMaintenance)
	if err := n.openMaintenance(); err != nil {
		return err
	}
	select {
	case <-n.ctx.Done():
		return context.Cause(n.ctx)
	case <-n.complete:
	}
	n.closeAPI()
	n.setStage(stageBooting)
	return n.spend(n.ctx, apiRestart)
}

// start brings a configured node up.
func (n *node) start() error {
	cfg := n.config()
	if err := n.disks.system().saveConfig(mustBytes(n.persisted())); err != nil {
		return fmt.Errorf("writing STATE: %w", err)
	}
	n.publishConfigured()
	n.spawn(n.watchConfig)
	n.spawn(n.syncTime)
	if cfg.Machine().Type().IsControlPlane() {
		if err := n.openControlPlaneAPI(); err != nil {
			return err
		}
	} else {
		n.services.set("apid", statePreparing, "Running pre state")
		n.spawn(n.openWorkerAPI)
	}
	if err := n.spend(n.ctx, provisionTime); err != nil {
		return err
	}
	if err := n.provision(cfg); err != nil {
		n.console.printf("volume EPHEMERAL: %v", err)
		<-n.ctx.Done() // Talos waits for a volume that never comes
		return context.Cause(n.ctx)
	}
	n.services.set("cri", stateWaiting, "Waiting for network")
	if err := n.spend(n.ctx, criTime); err != nil {
		return err
	}
	n.services.set("cri", stateRunning, "Started task cri")
	n.services.health("cri", true, "Health check successful")
	n.mu.Lock()
	n.criUp = true
	n.mu.Unlock()

	n.spawn(n.trackEndpoints)
	if cfg.Machine().Type().IsControlPlane() {
		n.spawn(n.serveTrustd)
		n.spawn(n.etcd.run)
		n.spawn(n.apiserver.run)
		n.spawn(n.control)
	}
	n.spawn(n.kubelet.run)
	return n.awaitServices()
}

// awaitServices ends the boot sequence when all services are up.
func (n *node) awaitServices() error {
	need := []string{"apid", "kubelet"}
	if n.isControlPlane() {
		need = append(need, "trustd", "etcd")
	}
	for {
		missing := false
		for _, id := range need {
			missing = missing || !n.services.up(id)
		}
		if !missing {
			break
		}
		if err := n.pause(n.ctx, time.Second); err != nil {
			return err
		}
	}
	n.mu.Lock()
	n.booted = true
	n.mu.Unlock()
	n.setSequence("")
	n.setStage(stageRunning)
	n.console.printf("boot sequence: done")
	return nil
}

// syncTime is what the node needs a default route for first.
func (n *node) syncTime() {
	cfg := n.config().NetworkTimeSyncConfig()
	if cfg == nil || !cfg.Disabled() {
		for !n.defaultRoute() {
			n.console.printf("time query error with server time.cloudflare.com: network is unreachable")
			if n.spend(n.ctx, metadataRetry) != nil {
				return
			}
		}
		if n.spend(n.ctx, timeSyncTime) != nil {
			return
		}
	}
	n.mu.Lock()
	n.timeSynced = true
	n.mu.Unlock()
	n.publishTime()
	n.refreshStatus()
}

// awaitTime waits for time sync; it returns false when the context ends first.
func (n *node) awaitTime(ctx context.Context) bool {
	for {
		n.mu.Lock()
		ok := n.timeSynced
		n.mu.Unlock()
		if ok {
			return true
		}
		if n.pause(ctx, time.Second) != nil {
			return false
		}
	}
}

// version is the Talos version that the machine booted, such as v1.13.5.
func (n *node) version() string {
	if n.quirks.OldVersion != "" {
		return n.quirks.OldVersion
	}
	return n.disks.system().Boot.Version
}
