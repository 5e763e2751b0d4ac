package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// claim begins a sequence unless another one runs, which then only shows as an
// event: the call that asked for it was already answered.
func (n *node) claim(name, actor string) bool {
	n.mu.Lock()
	busy := n.sequence != "" && n.sequence != "boot" && n.sequence != "initialize"
	n.mu.Unlock()
	if busy {
		n.events.publish(&machine.SequenceEvent{
			Sequence: name, Action: machine.SequenceEvent_NOOP,
			Error: &common.Error{Code: common.Code_LOCKED, Message: "sequence failed: locked"},
		}, actor)
		return false
	}
	n.mu.Lock()
	n.sequence = name
	n.mu.Unlock()
	n.events.publish(&machine.SequenceEvent{Sequence: name, Action: machine.SequenceEvent_START}, actor)
	return true
}

// task tells the event stream of one step of a sequence.
func (n *node) task(name, actor string) {
	n.events.publish(&machine.TaskEvent{Task: name, Action: machine.TaskEvent_START}, actor)
	n.events.publish(&machine.TaskEvent{Task: name, Action: machine.TaskEvent_STOP}, actor)
}

func (n *node) rebootSequence(actor string) {
	if !n.claim("reboot", actor) {
		return
	}
	n.setStage(runtime.MachineStageRebooting)
	n.stopServices(actor)
	n.end(errRebooting)
}

func (n *node) shutdownSequence(actor string) {
	if !n.claim("shutdown", actor) {
		return
	}
	n.setStage(runtime.MachineStageShuttingDown)
	n.stopServices(actor)
	n.end(errHalting)
}

// stopServices ends what the node runs, in Talos's order, except the API, which
// stays until the very end.
func (n *node) stopServices(actor string) {
	n.task("stopAllPods", actor)
	for _, id := range []string{"kubelet", "etcd", "trustd", "cri"} {
		if n.services.state(id) != "" {
			n.services.set(id, stateStopping, "Sending SIGTERM")
		}
	}
	_ = n.spend(n.ctx, shutdownTime)
	n.task("stopAllServices", actor)
}

// Reboot restarts the node without draining it.
func (a *talosAPI) Reboot(context.Context, *machine.RebootRequest) (*machine.RebootResponse, error) {
	actor := uuid.NewString()
	a.node.spawn(func() { a.node.rebootSequence(actor) })
	return &machine.RebootResponse{Messages: []*machine.Reboot{{ActorId: actor}}}, nil
}

// Shutdown switches the node off.
func (a *talosAPI) Shutdown(context.Context, *machine.ShutdownRequest) (*machine.ShutdownResponse, error) {
	actor := uuid.NewString()
	a.node.spawn(func() { a.node.shutdownSequence(actor) })
	return &machine.ShutdownResponse{Messages: []*machine.Shutdown{{ActorId: actor}}}, nil
}

// Reset wipes partitions, or the whole system disk when none is named, and
// reboots or switches off.
func (a *talosAPI) Reset(_ context.Context, in *machine.ResetRequest) (*machine.ResetResponse, error) {
	n := a.node
	labels, err := n.resetTargets(in)
	if err != nil {
		return nil, err
	}
	actor := uuid.NewString()
	n.spawn(func() { n.resetSequence(actor, in, labels) })
	return &machine.ResetResponse{Messages: []*machine.Reset{{ActorId: actor}}}, nil
}

// resetTargets returns the partitions to wipe; a lone empty label is the disk.
func (n *node) resetTargets(in *machine.ResetRequest) ([]string, error) {
	if len(in.UserDisksToWipe) > 0 {
		if in.Mode == machine.ResetRequest_SYSTEM_DISK {
			return nil, errors.New("reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter")
		}
		for _, dev := range in.UserDisksToWipe {
			i := slices.IndexFunc(n.disks, func(d *disk) bool { return d.dev == dev })
			if i < 0 {
				return nil, fmt.Errorf("reset user disk failed: device %s wasn't found", dev)
			}
			if n.disks[i].boot {
				return nil, fmt.Errorf("reset user disk failed: device %s is the system disk", dev)
			}
		}
	}
	var labels []string
	if len(in.SystemPartitionsToWipe) > 0 && in.Mode == machine.ResetRequest_USER_DISKS {
		return nil, errors.New("reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter")
	}
	for _, p := range in.SystemPartitionsToWipe {
		if !slices.Contains([]string{"STATE", "EPHEMERAL", "META"}, p.Label) {
			return nil, fmt.Errorf("failed to get volume status with label %q: resource doesn't exist", p.Label)
		}
		if p.Wipe {
			labels = append(labels, p.Label)
		}
	}
	if in.Mode != machine.ResetRequest_USER_DISKS && len(in.SystemPartitionsToWipe) == 0 {
		labels = []string{""}
	}
	return labels, nil
}

func (n *node) resetSequence(actor string, in *machine.ResetRequest, labels []string) {
	if !n.claim("reset", actor) {
		return
	}
	n.setStage(runtime.MachineStageResetting)
	if in.Graceful && n.isControlPlane() {
		if err := n.etcd.leave(n.ctx); err != nil {
			n.console.printf("reset failed: %v", err)
			n.log.Warn("reset failed, the node reboots", "err", err)
			n.events.publish(&machine.SequenceEvent{
				Sequence: "reset", Action: machine.SequenceEvent_STOP,
				Error: &common.Error{Code: common.Code_FATAL, Message: err.Error()},
			}, actor)
			n.end(errRebooting) // a failed sequence reboots the node
			return
		}
	}
	n.stopServices(actor)
	n.etcd.halt()
	for _, label := range labels {
		d := n.disks.system()
		if label == "EPHEMERAL" {
			d = n.disks.ephemeral()
		}
		if d == nil {
			continue
		}
		if err := d.wipe(label); err != nil {
			n.log.Error("wiping", "partition", label, "err", err)
		}
	}
	for _, dev := range in.UserDisksToWipe {
		for _, d := range n.disks {
			if d.dev == dev {
				_ = d.wipe("")
			}
		}
	}
	n.task("resetSystemDiskPartitions", actor)
	if in.Reboot {
		n.end(errRebooting)
	} else {
		n.end(errHalting)
	}
}

// Rollback boots the other boot entry.
func (a *talosAPI) Rollback(context.Context, *machine.RollbackRequest) (*machine.RollbackResponse, error) {
	d := a.node.disks.system()
	if d.Previous == nil {
		return nil, status.Error(codes.Unknown, "failed to revert bootloader: previous BootEntry not found")
	}
	d.Boot, d.Previous = d.Previous, d.Boot
	if err := d.save(); err != nil {
		return nil, err
	}
	a.node.spawn(func() { a.node.rebootSequence("") })
	return &machine.RollbackResponse{Messages: []*machine.Rollback{{}}}, nil
}
