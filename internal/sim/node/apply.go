package node

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configdiff"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tryTimeout is how long a TRY lasts when the request does not say.
const tryTimeout = time.Minute

// ApplyConfiguration takes a whole machine configuration.
func (a *talosAPI) ApplyConfiguration(ctx context.Context, in *machine.ApplyConfigurationRequest) (*machine.ApplyConfigurationResponse, error) {
	n := a.node
	if err := n.beginApply(); err != nil {
		return nil, err
	}
	defer n.endApply()
	maintenance := !n.configured()
	if !maintenance && !rolesOf(ctx).Includes(role.Admin) {
		return nil, errNotAuthorized
	}
	if slow := n.live().SlowApply; slow > 0 {
		if err := n.spend(ctx, slow); err != nil {
			return nil, status.FromContextError(err).Err()
		}
	}
	if in.Mode != machine.ApplyConfigurationRequest_TRY {
		n.cancelRollback()
	}
	cfg, warnings, err := n.judge(ctx, in.Data, maintenance)
	if err != nil {
		return nil, err
	}
	mode, details, err := n.applyMode(in.Mode, cfg, maintenance)
	if err != nil {
		return nil, err
	}
	if in.DryRun {
		diff, err := configdiff.DiffConfigs(n.config(), cfg)
		if err != nil {
			return nil, fmt.Errorf("failed to generate diff: %w", err)
		}
		if diff == "" {
			diff = "No changes."
		}
		return applied(mode, fmt.Sprintf("Dry run summary:\n%s (skipped in dry-run).\nConfig diff:\n\n%s", details, diff), nil), nil
	}
	n.console.printf("apply config request: mode %s", mode)
	if details, err = n.enact(mode, cfg, in, details); err != nil {
		return nil, err
	}
	return applied(mode, details, warnings), nil
}

func applied(mode machine.ApplyConfigurationRequest_Mode, details string, warnings []string) *machine.ApplyConfigurationResponse {
	return &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{{
		Mode: mode, ModeDetails: details, Warnings: warnings,
	}}}
}

func (n *node) beginApply() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.applying:
		return status.Error(codes.FailedPrecondition, "another apply configuration is already in progress")
	case n.rebooting:
		return status.Error(codes.FailedPrecondition, "configuration was already applied and node is rebooting, cannot apply more configuration changes until next reboot")
	}
	n.applying = true
	return nil
}

func (n *node) endApply() {
	n.mu.Lock()
	n.applying = false
	n.mu.Unlock()
}

func (n *node) cancelRollback() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rollback != nil {
		n.rollback.Stop()
		n.rollback = nil
	}
}

// judge decodes and validates what was sent.
func (n *node) judge(ctx context.Context, raw []byte, maintenance bool) (config.Provider, []string, error) {
	cfg, err := configloader.NewFromBytes(raw)
	if err != nil {
		return nil, nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if !maintenance && cfg.RawV1Alpha1() == nil {
		return nil, nil, status.Error(codes.InvalidArgument, "the applied machine configuration doesn't contain v1alpha1 config, did you mean to patch the machine config instead?")
	}
	warnings, err := cfg.Validate(cloudMode{})
	if err != nil {
		return nil, nil, status.Error(codes.InvalidArgument, err.Error())
	}
	more, err := cfg.RuntimeValidate(ctx, n.resources, cloudMode{})
	if err != nil {
		return nil, nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return cfg, slices.Concat(warnings, more), nil
}

// applyMode turns the requested mode into the one that is used, with its description.
func (n *node) applyMode(mode machine.ApplyConfigurationRequest_Mode, cfg config.Provider, maintenance bool) (machine.ApplyConfigurationRequest_Mode, string, error) {
	if maintenance && mode == machine.ApplyConfigurationRequest_REBOOT {
		mode = machine.ApplyConfigurationRequest_NO_REBOOT
	}
	switch mode {
	case machine.ApplyConfigurationRequest_TRY, machine.ApplyConfigurationRequest_NO_REBOOT:
		if !maintenance {
			if err := immediate(n.config(), cfg); err != nil {
				return 0, "", status.Error(codes.InvalidArgument, err.Error())
			}
		}
		return mode, "Applied configuration without a reboot", nil
	case machine.ApplyConfigurationRequest_STAGED:
		return mode, "Staged configuration to be applied after the next reboot", nil
	case machine.ApplyConfigurationRequest_AUTO:
		if !maintenance {
			if err := immediate(n.config(), cfg); err != nil {
				return machine.ApplyConfigurationRequest_REBOOT, "Applied configuration with a reboot: " + err.Error(), nil
			}
		}
		return machine.ApplyConfigurationRequest_NO_REBOOT, "Applied configuration without a reboot", nil
	case machine.ApplyConfigurationRequest_REBOOT:
		return mode, "Applied configuration with a reboot", nil
	}
	return 0, "", fmt.Errorf("incorrect mode '%s' specified for the apply config call", mode)
}

// enact does what the mode says.
func (n *node) enact(mode machine.ApplyConfigurationRequest_Mode, cfg config.Provider, in *machine.ApplyConfigurationRequest, details string) (string, error) {
	switch mode {
	case machine.ApplyConfigurationRequest_TRY:
		timeout := tryTimeout
		if in.TryModeTimeout != nil {
			timeout = in.TryModeTimeout.AsDuration()
		}
		n.tryConfig(cfg, timeout)
		details += fmt.Sprintf("\nThe config is applied in 'try' mode and will be automatically reverted back in %s", timeout)
	case machine.ApplyConfigurationRequest_NO_REBOOT:
		// STATE does not exist before the first complete configuration: there,
		// persisting happens when the boot goes on.
		if n.configured() {
			if err := n.persist(cfg); err != nil {
				return "", err
			}
		}
		n.setConfig(cfg, true)
	case machine.ApplyConfigurationRequest_STAGED:
		if n.configured() {
			if err := n.persist(cfg); err != nil {
				return "", err
			}
		} else if err := n.disks.system().saveConfig(mustBytes(cfg)); err != nil {
			return "", err
		}
	case machine.ApplyConfigurationRequest_REBOOT:
		if err := n.persist(cfg); err != nil {
			return "", err
		}
		n.mu.Lock()
		n.rebooting = true
		n.mu.Unlock()
		n.spawn(func() { n.rebootSequence("") })
	}
	return details, nil
}

// tryConfig activates a configuration for a while only.
func (n *node) tryConfig(cfg config.Provider, timeout time.Duration) {
	old := n.config()
	n.setConfig(cfg, false)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rollback != nil {
		n.rollback.Stop()
	}
	n.rollback = n.farm.opt.Clock.After(timeout, func() {
		if n.ctx.Err() == nil && old != nil {
			n.console.printf("config rollback: try mode timed out")
			n.setConfig(old, false)
		}
	})
}

// immediate tells whether a change needs no reboot. Of the main document these
// parts may change at any time; other documents never need one.
func immediate(current, next config.Provider) error {
	if current == nil {
		return errors.New("no current config")
	}
	was, now := current.RawV1Alpha1(), next.RawV1Alpha1()
	if was == nil {
		return errors.New("current config is not v1alpha1")
	}
	if now == nil {
		return errors.New("new config is not v1alpha1")
	}
	now = now.DeepCopy()
	now.ConfigDebug, now.ClusterConfig = was.ConfigDebug, was.ClusterConfig
	if now.MachineConfig != nil && was.MachineConfig != nil {
		copyImmediate(now.MachineConfig, was.MachineConfig)
	}
	if reflect.DeepEqual(was, now) {
		return nil
	}
	diff, err := configdiff.DiffConfigs(container.NewV1Alpha1(was), container.NewV1Alpha1(now))
	if err != nil {
		return fmt.Errorf("error calculating diff: %w", err)
	}
	return fmt.Errorf("this config change can't be applied in immediate mode\ndiff:\n%s", diff)
}

// immediateFields are the fields of the machine section that change without a
// reboot, and of its features.
var (
	immediateFields = []string{
		"MachineCA", "MachineAcceptedCAs", "MachineTime", "MachineCertSANs", "MachineInstall", "MachineNetwork",
		"MachineSysfs", "MachineSysctls", "MachineLogging", "MachineControlPlane", "MachineKubelet", "MachineKernel",
		"MachineRegistries", "MachinePods", "MachineSeccompProfiles", "MachineNodeAnnotations", "MachineNodeLabels", "MachineNodeTaints",
	}
	immediateFeatures = []string{
		"KubernetesTalosAPIAccessConfig", "KubePrismSupport", "HostDNSSupport", "ImageCacheSupport", "FeatureNodeAddressSortAlgorithm",
	}
)

func copyImmediate(dst, src *v1alpha1.MachineConfig) {
	copyFields(reflect.ValueOf(dst).Elem(), reflect.ValueOf(src).Elem(), immediateFields)
	if dst.MachineFeatures != nil && src.MachineFeatures != nil {
		copyFields(reflect.ValueOf(dst.MachineFeatures).Elem(), reflect.ValueOf(src.MachineFeatures).Elem(), immediateFeatures)
	}
}

func copyFields(dst, src reflect.Value, fields []string) {
	for _, f := range fields {
		dst.FieldByName(f).Set(src.FieldByName(f))
	}
}
