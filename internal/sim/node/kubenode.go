package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8sres "github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"bastide/internal/sim/kube"
)

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }

const (
	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
	uninitialized     = "node.cloudprovider.kubernetes.io/uninitialized"
)

// report registers the node if it is not, and says how it is.
func (k *kubelet) report(ctx context.Context) error {
	n := k.node
	c, err := k.client()
	if err != nil {
		return err
	}
	if !n.nodeIP().IsValid() {
		return errors.New("no address of the node is in kubelet.nodeIP.validSubnets")
	}
	obj, err := c.Nodes().Get(ctx, n.hostname())
	if isNotFound(err) {
		obj, err = c.Nodes().Create(ctx, k.object())
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.podCIDR = obj.Spec.PodCIDR
	ready := k.cni
	k.mu.Unlock()
	before := obj.Status.DeepCopy()
	if k.fillStatus(&obj.Status, ready); k.hasNews(before, &obj.Status) {
		if _, err := c.Nodes().UpdateStatus(ctx, obj); err != nil {
			return err
		}
		k.told = time.Now()
	}
	if err := k.renewLease(ctx, c); err != nil {
		return err
	}
	k.publish(obj, ready)
	failed := k.applyNodeConfig(ctx, c, obj)
	if n.isControlPlane() {
		failed = errors.Join(failed, k.mirrorStaticPods(ctx, c, obj))
	}
	return failed
}

// hasNews says whether a status has to be told: when anything but its heartbeats
// changed, or when it was last told long ago. That the node lives, its lease says.
func (k *kubelet) hasNews(before, now *core.NodeStatus) bool {
	if time.Since(k.told) > k.node.farm.opt.Clock.Scale(statusPeriod) {
		return true
	}
	told, tell := before.DeepCopy(), now.DeepCopy()
	for _, s := range []*core.NodeStatus{told, tell} {
		for i := range s.Conditions {
			s.Conditions[i].LastHeartbeatTime = metav1.Time{}
		}
	}
	return !equality.Semantic.DeepEqual(told, tell)
}

// object is the Node as the kubelet first creates it.
func (k *kubelet) object() *core.Node {
	n := k.node
	cfg := n.config()
	o := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: n.hostname(), Labels: map[string]string{
		"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
		"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": n.hostname(),
	}}}
	args := cfg.Machine().Kubelet().ExtraArgs()
	if id := last(args["provider-id"]); id != "" {
		o.Spec.ProviderID = id
	}
	if cfg.Cluster().ExternalCloudProvider().Enabled() || last(args["cloud-provider"]) == "external" {
		o.Spec.Taints = append(o.Spec.Taints, core.Taint{Key: uninitialized, Value: "true", Effect: core.TaintEffectNoSchedule})
	}
	if cfg.Machine().Type().IsControlPlane() && !cfg.Cluster().ScheduleOnControlPlanes() {
		o.Spec.Taints = append(o.Spec.Taints, core.Taint{Key: controlPlaneLabel, Effect: core.TaintEffectNoSchedule})
	}
	for key, v := range cfg.Machine().NodeTaints() {
		value, effect, found := strings.Cut(v, ":")
		if !found {
			value, effect = "", v
		}
		o.Spec.Taints = append(o.Spec.Taints, core.Taint{Key: key, Value: value, Effect: core.TaintEffect(effect)})
	}
	o.Spec.Taints = append(o.Spec.Taints, core.Taint{Key: core.TaintNodeNotReady, Effect: core.TaintEffectNoSchedule})
	k.fillStatus(&o.Status, false)
	return o
}

func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// fillStatus writes addresses, capacity, versions and conditions.
func (k *kubelet) fillStatus(s *core.NodeStatus, ready bool) {
	n := k.node
	s.Addresses = []core.NodeAddress{
		{Type: core.NodeInternalIP, Address: n.nodeIP().String()}, {Type: core.NodeHostName, Address: n.hostname()},
	}
	disk := resource.NewQuantity(n.ephemeralSize(), resource.BinarySI)
	s.Capacity = core.ResourceList{
		core.ResourceCPU: *resource.NewQuantity(int64(n.hw.CPUs), resource.DecimalSI), core.ResourceMemory: *resource.NewQuantity(n.hw.RAMBytes, resource.BinarySI),
		core.ResourcePods: resource.MustParse("110"), core.ResourceEphemeralStorage: *disk,
	}
	s.Allocatable = s.Capacity.DeepCopy()
	s.Allocatable[core.ResourceMemory] = *resource.NewQuantity(max(0, n.hw.RAMBytes-300*mib), resource.BinarySI)
	tag := imageTag(n.config().Machine().Kubelet().Image())
	s.NodeInfo = core.NodeSystemInfo{
		MachineID: n.hw.ServerID, SystemUUID: n.hw.ServerID, BootID: n.bootID, KernelVersion: "6.18.32-talos",
		OSImage: fmt.Sprintf("Talos (%s)", n.version()), ContainerRuntimeVersion: "containerd://2.2.3", KubeletVersion: tag,
		KubeProxyVersion: "", OperatingSystem: "linux", Architecture: "amd64",
	}
	s.DaemonEndpoints.KubeletEndpoint.Port = 10250
	setCondition(s, core.NodeMemoryPressure, core.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
	setCondition(s, core.NodeDiskPressure, core.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
	setCondition(s, core.NodePIDPressure, core.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available")
	if ready {
		setCondition(s, core.NodeReady, core.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	} else {
		setCondition(s, core.NodeReady, core.ConditionFalse, "KubeletNotReady",
			"container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized")
	}
}

func setCondition(s *core.NodeStatus, t core.NodeConditionType, v core.ConditionStatus, reason, message string) {
	now := metav1.Now()
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.Type == t {
			if c.Status != v {
				c.LastTransitionTime = now
			}
			c.Status, c.Reason, c.Message, c.LastHeartbeatTime = v, reason, message, now
			return
		}
	}
	s.Conditions = append(s.Conditions, core.NodeCondition{Type: t, Status: v, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now})
}

// applyNodeConfig keeps the labels and annotations of the configuration on the
// Node. A control plane node does so as an administrator, a worker as itself.
func (k *kubelet) applyNodeConfig(ctx context.Context, c *kube.Client, obj *core.Node) error {
	n := k.node
	m := n.config().Machine()
	labels, notes := map[string]string{}, map[string]string{}
	maps.Copy(labels, m.NodeLabels())
	if m.Type().IsControlPlane() {
		labels[controlPlaneLabel] = ""
	}
	maps.Copy(notes, m.NodeAnnotations())
	for _, e := range n.disks.system().Boot.Extensions {
		name := e[strings.LastIndexByte(e, '/')+1:]
		labels["extensions.talos.dev/"+name] = n.version()
		notes["extensions.talos.dev/"+name] = n.version()
	}
	if id := n.disks.system().Boot.Schematic; id != "" {
		notes["extensions.talos.dev/schematic"] = id
	}
	same := true
	for key, v := range labels {
		if old, ok := obj.Labels[key]; !ok || old != v {
			same = false
		}
	}
	for key, v := range notes {
		if old, ok := obj.Annotations[key]; !ok || old != v {
			same = false
		}
	}
	if same {
		return nil
	}
	if n.isControlPlane() {
		admin, err := n.adminClient(n.ownDial)
		if err != nil {
			return err
		}
		c = admin
	}
	fresh, err := c.Nodes().Get(ctx, obj.Name)
	if err != nil {
		return err
	}
	if fresh.Labels == nil {
		fresh.Labels = map[string]string{}
	}
	if fresh.Annotations == nil {
		fresh.Annotations = map[string]string{}
	}
	maps.Copy(fresh.Labels, labels)
	maps.Copy(fresh.Annotations, notes)
	_, err = c.Nodes().Update(ctx, fresh)
	return err
}

// publish tells Talos's own resources how the Node is.
func (k *kubelet) publish(obj *core.Node, ready bool) {
	n := k.node
	r := k8sres.NewNodeStatus(k8sres.NamespaceName, n.hostname())
	s := r.TypedSpec()
	s.Nodename, s.NodeReady, s.Unschedulable, s.Labels, s.Annotations = obj.Name, ready, obj.Spec.Unschedulable, obj.Labels, obj.Annotations
	n.put(r)
	n.mu.Lock()
	was := n.nodeReady
	n.nodeReady = ready
	n.mu.Unlock()
	if was != ready {
		n.refreshStatus()
	}
}

// imageTag is the tag of an image reference, such as v1.36.3.
func imageTag(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	i := strings.LastIndexByte(ref, ':')
	if i < 0 || strings.ContainsRune(ref[i:], '/') {
		return "latest"
	}
	return ref[i+1:]
}
