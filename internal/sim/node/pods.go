package node

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bastide/internal/sim/kube"
)

// staticPods are what a control plane node runs from Talos's own hand.
var staticPods = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// runPods reports pods that are bound to the node as running: at first the
// network plug-in and other pods of the host's network, the rest once there is
// a network.
func (k *kubelet) runPods() {
	n := k.node
	for n.ctx.Err() == nil {
		c, err := k.client()
		if err != nil {
			return
		}
		if err := k.watchPods(n.ctx, c); err != nil && n.ctx.Err() == nil {
			n.logOf("kubelet").add("watching pods: " + err.Error())
		}
		if n.pause(n.ctx, kubeletPeriod/5) != nil {
			return
		}
	}
}

func (k *kubelet) watchPods(ctx context.Context, c *kube.Client) error {
	opts := metav1.ListOptions{FieldSelector: "spec.nodeName=" + k.node.hostname()}
	list, err := c.Pods("").List(ctx, opts)
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := k.runPod(ctx, c, &list.Items[i]); err != nil {
			return err
		}
	}
	opts.ResourceVersion = list.ResourceVersion
	seconds := int64(60) // pods that waited for the network are looked at again
	opts.TimeoutSeconds = &seconds
	w, err := c.Pods("").Watch(ctx, opts)
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			if p, ok := e.Object.(*core.Pod); ok && e.Type != "DELETED" {
				before := k.hasCNI()
				if err := k.runPod(ctx, c, p); err != nil {
					return err
				}
				if !before && k.hasCNI() {
					return nil // list again: others can start now
				}
			}
		}
	}
}

func (k *kubelet) hasCNI() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cni
}

// runPod moves one pod on: deleted ones go, others become ready.
func (k *kubelet) runPod(ctx context.Context, c *kube.Client, p *core.Pod) error {
	if p.DeletionTimestamp != nil {
		err := c.Pods(p.Namespace).DeleteNow(ctx, p.Name)
		if isNotFound(err) {
			return nil
		}
		return err
	}
	if _, mirror := p.Annotations[core.MirrorPodAnnotationKey]; mirror || p.Status.Phase != core.PodPending {
		if isNetworkPlugin(p) && p.Status.Phase == core.PodRunning {
			k.networkUp()
		}
		return nil
	}
	if !p.Spec.HostNetwork && !k.hasCNI() {
		return nil
	}
	if err := k.node.delay(ctx, imagePullTime); err != nil {
		return nil
	}
	p = p.DeepCopy()
	k.markRunning(p)
	if _, err := c.Pods(p.Namespace).UpdateStatus(ctx, p); err != nil && !isNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	if isNetworkPlugin(p) {
		k.networkUp()
	}
	return nil
}

func (k *kubelet) networkUp() {
	k.mu.Lock()
	was := k.cni
	k.cni = true
	k.mu.Unlock()
	if !was {
		k.poke()
	}
}

// isNetworkPlugin tells whether a pod installs the node's network: such pods
// mount the folder that the container runtime reads its network from.
func isNetworkPlugin(p *core.Pod) bool {
	for _, v := range p.Spec.Volumes {
		if v.HostPath != nil && strings.HasPrefix(v.HostPath.Path, "/etc/cni") {
			return true
		}
	}
	return false
}

func (k *kubelet) markRunning(p *core.Pod) {
	n := k.node
	now := metav1.Now()
	host := n.nodeIP().String()
	ip := host
	if !p.Spec.HostNetwork {
		k.mu.Lock()
		ip = podAddress(string(p.UID), k.podCIDR)
		k.mu.Unlock()
	}
	s := &p.Status
	s.Phase, s.HostIP, s.PodIP, s.StartTime = core.PodRunning, host, ip, &now
	s.HostIPs, s.PodIPs = []core.HostIP{{IP: host}}, []core.PodIP{{IP: ip}}
	s.Conditions = nil
	for _, t := range []core.PodConditionType{core.PodReadyToStartContainers, core.PodInitialized, core.PodReady, core.ContainersReady, core.PodScheduled} {
		s.Conditions = append(s.Conditions, core.PodCondition{Type: t, Status: core.ConditionTrue, LastTransitionTime: now})
	}
	s.ContainerStatuses = nil
	started := true
	for _, c := range p.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, core.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &started, ContainerID: "containerd://simulated",
			State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: now}},
		})
	}
}

// podAddress makes an address in the node's pod network that stays a pod's own.
func podAddress(uid, cidr string) string {
	p, err := netip.ParsePrefix(cidr)
	if err != nil || !p.Addr().Is4() {
		return ""
	}
	h := uint32(2166136261)
	for _, c := range []byte(uid) {
		h = (h ^ uint32(c)) * 16777619
	}
	b := p.Masked().Addr().As4()
	bits := 32 - p.Bits()
	h = h%(1<<bits-2) + 1
	for i := range 4 {
		b[3-i] |= byte(h >> (8 * i))
	}
	return netip.AddrFrom4(b).String()
}

// mirrorStaticPods shows the control plane's own pods in the API, as the
// kubelet does for pods that do not come from there.
func (k *kubelet) mirrorStaticPods(ctx context.Context, c *kube.Client, owner *core.Node) error {
	n := k.node
	if !n.apiserver.ready() {
		return nil
	}
	cl := n.config().Cluster()
	images := map[string]string{
		"kube-apiserver": cl.APIServer().Image(), "kube-controller-manager": cl.ControllerManager().Image(), "kube-scheduler": cl.Scheduler().Image(),
	}
	// A node may list its own pods, but not get one that is not there.
	list, err := c.Pods("kube-system").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.hostname()})
	if err != nil {
		return err
	}
	have := map[string]*core.Pod{}
	for i := range list.Items {
		have[list.Items[i].Name] = &list.Items[i]
	}
	controller := true
	for _, name := range staticPods {
		want := &core.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name + "-" + n.hostname(), Namespace: "kube-system",
				Labels: map[string]string{"tier": "control-plane", "k8s-app": name, "component": name},
				Annotations: map[string]string{
					core.MirrorPodAnnotationKey: n.bootID, "kubernetes.io/config.hash": n.bootID, "kubernetes.io/config.source": "http",
					"talos.dev/config-version": fmt.Sprint(1),
				},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: owner.Name, UID: owner.UID, Controller: &controller}},
			},
			Spec: core.PodSpec{
				NodeName: n.hostname(), HostNetwork: true, PriorityClassName: "system-cluster-critical",
				Containers:  []core.Container{{Name: name, Image: images[name]}},
				Tolerations: []core.Toleration{{Operator: core.TolerationOpExists, Effect: core.TaintEffectNoExecute}},
			},
		}
		pod, missing := have[want.Name], have[want.Name] == nil
		if !missing && (pod.Spec.Containers[0].Image != images[name] || pod.Annotations[core.MirrorPodAnnotationKey] != n.bootID) {
			if err := c.Pods("kube-system").DeleteNow(ctx, want.Name); err != nil && !isNotFound(err) {
				return err
			}
			missing = true
		}
		if missing {
			if pod, err = c.Pods("kube-system").Create(ctx, want); err != nil {
				return fmt.Errorf("failed creating a mirror pod %s: %w", want.Name, err)
			}
		}
		if pod.Status.Phase != core.PodRunning {
			k.markRunning(pod)
			if _, err := c.Pods("kube-system").UpdateStatus(ctx, pod); err != nil {
				return err
			}
		}
	}
	return nil
}
