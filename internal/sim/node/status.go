package node

import (
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

type stage = runtime.MachineStage

const (
	stageBooting     = runtime.MachineStageBooting
	stageMaintenance = runtime.MachineStageMaintenance
	stageRunning     = runtime.MachineStageRunning
)

// setSequence tells the event stream that one sequence ends and another begins;
// an empty name begins none.
func (n *node) setSequence(name string) {
	n.mu.Lock()
	old := n.sequence
	n.sequence = name
	n.mu.Unlock()
	if old != "" {
		n.events.publish(&machine.SequenceEvent{Sequence: old, Action: machine.SequenceEvent_STOP}, "")
	}
	if name != "" {
		n.events.publish(&machine.SequenceEvent{Sequence: name, Action: machine.SequenceEvent_START}, "")
	}
}

func (n *node) setStage(s stage) {
	n.mu.Lock()
	n.stage = s
	n.mu.Unlock()
	n.refreshStatus()
}

// refreshStatus computes readiness and tells resource watchers and the event stream.
func (n *node) refreshStatus() {
	n.mu.Lock()
	s := n.stage
	n.mu.Unlock()
	var unmet []runtime.UnmetCondition
	if s == stageBooting || s == stageRunning {
		unmet = n.unmet()
	}
	r := runtime.NewMachineStatus()
	r.TypedSpec().Stage = s
	r.TypedSpec().Status = runtime.MachineStatusStatus{Ready: len(unmet) == 0, UnmetConditions: unmet}
	if old, err := n.resources.Get(n.ctx, r.Metadata()); err == nil {
		if was, ok := old.(*runtime.MachineStatus); ok && was.TypedSpec().Stage == s && slices.Equal(was.TypedSpec().Status.UnmetConditions, unmet) {
			return
		}
	}
	n.put(r)
	status := &machine.MachineStatusEvent_MachineStatus{Ready: len(unmet) == 0}
	for _, u := range unmet {
		status.UnmetConditions = append(status.UnmetConditions, &machine.MachineStatusEvent_MachineStatus_UnmetCondition{Name: u.Name, Reason: u.Reason})
	}
	n.events.publish(&machine.MachineStatusEvent{
		Stage: machine.MachineStatusEvent_MachineStage(s), Status: status,
	}, "")
}

// unmet lists what keeps a node from being ready, as Talos phrases it.
func (n *node) unmet() []runtime.UnmetCondition {
	var all []runtime.UnmetCondition
	add := func(name, reason string) {
		all = append(all, runtime.UnmetCondition{Name: name, Reason: reason})
	}
	n.mu.Lock()
	synced, ready := n.timeSynced, n.nodeReady
	n.mu.Unlock()
	if !synced {
		add("time", "time is not synced")
	}
	if !n.defaultRoute() {
		add("network", "waiting on: connectivity")
	}
	need := []string{"apid", "machined", "kubelet"}
	if n.isControlPlane() {
		need = append(need, "etcd", "trustd")
	}
	var problems []string
	running := map[string]bool{}
	for _, s := range n.services.list() {
		switch {
		case s.State != stateRunning:
			problems = append(problems, s.Id+" not running")
		case !s.Health.Unknown && !s.Health.Healthy:
			running[s.Id] = true
			problems = append(problems, s.Id+" not healthy")
		default:
			running[s.Id] = true
		}
	}
	for _, id := range need {
		if !running[id] && !slices.Contains(problems, id+" not running") {
			problems = append(problems, id+" not running")
		}
	}
	if len(problems) > 0 {
		add("services", strings.Join(problems, ", "))
	}
	if reason := n.staticPodProblem(); reason != "" {
		add("staticPods", reason)
	}
	if !ready {
		add("nodeReady", "node "+quoted(n.hostname())+" status is not available yet")
	}
	return all
}

func quoted(s string) string { return `"` + s + `"` }
