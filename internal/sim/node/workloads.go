package node

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"strconv"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// keepDaemonSets keeps one pod of each DaemonSet on every node that it fits.
func (m *controllers) keepDaemonSets(ctx context.Context) error {
	sets := m.daemonSets.All()
	nodes := m.nodes.All()
	var failed []error
	for _, ds := range sets {
		if ds.DeletionTimestamp == nil {
			failed = append(failed, m.daemonSet(ctx, ds, nodes))
		}
	}
	return errors.Join(failed...)
}

func (m *controllers) daemonSet(ctx context.Context, ds *apps.DaemonSet, nodes []*core.Node) error {
	mine := m.podsOf(ds.Namespace, ds.UID)
	tolerations := append(slices.Clone(ds.Spec.Template.Spec.Tolerations), daemonTolerations(ds.Spec.Template.Spec.HostNetwork)...)
	var wanted, ready int32
	var failed []error
	for _, o := range nodes {
		if !fits(o, ds.Spec.Template.Spec.NodeSelector, tolerations) {
			continue
		}
		wanted++
		i := slices.IndexFunc(mine, func(p *core.Pod) bool { return p.Spec.NodeName == o.Name && p.DeletionTimestamp == nil })
		if i >= 0 {
			if podReady(mine[i]) {
				ready++
			}
			continue
		}
		p := podFrom(ds.Spec.Template, ds.Namespace, ds.Name+"-", metav1.NewControllerRef(ds, apps.SchemeGroupVersion.WithKind("DaemonSet")))
		p.Spec.NodeName, p.Spec.Tolerations = o.Name, tolerations
		_, err := m.c.Pods(ds.Namespace).Create(ctx, p)
		failed = append(failed, ignore(err, apierrors.IsForbidden))
	}
	s := ds.Status
	s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.UpdatedNumberScheduled = wanted, wanted, wanted
	s.NumberReady, s.NumberAvailable, s.NumberUnavailable, s.ObservedGeneration = ready, ready, wanted-ready, ds.Generation
	if s.NumberReady != ds.Status.NumberReady || s.DesiredNumberScheduled != ds.Status.DesiredNumberScheduled || s.ObservedGeneration != ds.Status.ObservedGeneration {
		ds = ds.DeepCopy()
		ds.Status = s
		_, err := m.c.DaemonSets(ds.Namespace).UpdateStatus(ctx, ds)
		failed = append(failed, ignore(err, apierrors.IsConflict, isNotFound))
	}
	return errors.Join(failed...)
}

// keepDeployments keeps one ReplicaSet per template of each Deployment, and scales
// those of former templates to nothing.
func (m *controllers) keepDeployments(ctx context.Context) error {
	all := m.deployments.All()
	var failed []error
	for _, d := range all {
		if d.DeletionTimestamp == nil {
			failed = append(failed, m.deployment(ctx, d.DeepCopy()))
		}
	}
	return errors.Join(failed...)
}

func (m *controllers) deployment(ctx context.Context, d *apps.Deployment) error {
	sets := m.replicaSets.In(d.Namespace)
	hash := templateHash(d.Spec.Template)
	name := d.Name + "-" + hash
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	var current *apps.ReplicaSet
	var failed []error
	for _, rs := range sets {
		if !metav1.IsControlledBy(rs, d) {
			continue
		}
		replicas := int32(0)
		if rs.Name == name {
			current, replicas = rs, want
		}
		if rs.Spec.Replicas == nil || *rs.Spec.Replicas != replicas {
			rs = rs.DeepCopy()
			rs.Spec.Replicas = &replicas
			_, err := m.c.ReplicaSets(d.Namespace).Update(ctx, rs)
			failed = append(failed, ignore(err, apierrors.IsConflict, isNotFound))
		}
	}
	if current == nil {
		rs := &apps.ReplicaSet{ObjectMeta: metaOf(d.Namespace, name), Spec: apps.ReplicaSetSpec{Replicas: &want, Selector: d.Spec.Selector.DeepCopy(), Template: *d.Spec.Template.DeepCopy()}}
		rs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, apps.SchemeGroupVersion.WithKind("Deployment"))}
		rs.Spec.Template.Labels = with(rs.Spec.Template.Labels, apps.DefaultDeploymentUniqueLabelKey, hash)
		rs.Spec.Selector.MatchLabels = with(rs.Spec.Selector.MatchLabels, apps.DefaultDeploymentUniqueLabelKey, hash)
		rs.Labels = rs.Spec.Template.Labels
		_, err := m.c.ReplicaSets(d.Namespace).Create(ctx, rs)
		return errors.Join(append(failed, ignore(err, apierrors.IsAlreadyExists))...)
	}
	s := &d.Status
	if s.ReadyReplicas != current.Status.ReadyReplicas || s.Replicas != current.Status.Replicas || s.ObservedGeneration != d.Generation {
		s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = current.Status.Replicas, current.Status.Replicas, current.Status.ReadyReplicas, current.Status.ReadyReplicas
		s.UnavailableReplicas, s.ObservedGeneration = want-current.Status.ReadyReplicas, d.Generation
		available := core.ConditionFalse
		if current.Status.ReadyReplicas >= want {
			available = core.ConditionTrue
		}
		now := metav1.Now()
		s.Conditions = []apps.DeploymentCondition{
			{Type: apps.DeploymentAvailable, Status: available, Reason: "MinimumReplicasAvailable", LastUpdateTime: now, LastTransitionTime: now},
			{Type: apps.DeploymentProgressing, Status: core.ConditionTrue, Reason: "NewReplicaSetAvailable", LastUpdateTime: now, LastTransitionTime: now},
		}
		_, err := m.c.Deployments(d.Namespace).UpdateStatus(ctx, d)
		failed = append(failed, ignore(err, apierrors.IsConflict, isNotFound))
	}
	return errors.Join(failed...)
}

// keepReplicaSets creates and removes pods until the counts are right.
func (m *controllers) keepReplicaSets(ctx context.Context) error {
	all := m.replicaSets.All()
	var failed []error
	for _, rs := range all {
		if rs.DeletionTimestamp == nil && rs.Spec.Replicas != nil {
			failed = append(failed, m.replicaSet(ctx, rs.DeepCopy()))
		}
	}
	return errors.Join(failed...)
}

func (m *controllers) replicaSet(ctx context.Context, rs *apps.ReplicaSet) error {
	pods := slices.DeleteFunc(m.podsOf(rs.Namespace, rs.UID), func(p *core.Pod) bool { return p.DeletionTimestamp != nil })
	var failed []error
	for i := len(pods); i < int(*rs.Spec.Replicas); i++ {
		p := podFrom(rs.Spec.Template, rs.Namespace, rs.Name+"-", metav1.NewControllerRef(rs, apps.SchemeGroupVersion.WithKind("ReplicaSet")))
		_, err := m.c.Pods(rs.Namespace).Create(ctx, p)
		failed = append(failed, err)
	}
	for i := int(*rs.Spec.Replicas); i < len(pods); i++ {
		err := m.c.Pods(rs.Namespace).Delete(ctx, pods[i].Name)
		failed = append(failed, ignore(err, isNotFound))
	}
	var ready int32
	for _, p := range pods {
		if podReady(p) {
			ready++
		}
	}
	if rs.Status.ReadyReplicas != ready || rs.Status.Replicas != int32(len(pods)) || rs.Status.ObservedGeneration != rs.Generation {
		rs.Status.Replicas, rs.Status.FullyLabeledReplicas = int32(len(pods)), int32(len(pods))
		rs.Status.ReadyReplicas, rs.Status.AvailableReplicas, rs.Status.ObservedGeneration = ready, ready, rs.Generation
		_, err := m.c.ReplicaSets(rs.Namespace).UpdateStatus(ctx, rs)
		failed = append(failed, ignore(err, apierrors.IsConflict, isNotFound))
	}
	return errors.Join(failed...)
}

func (m *controllers) podsOf(namespace string, owner types.UID) []*core.Pod {
	return slices.DeleteFunc(m.pods.In(namespace), func(p *core.Pod) bool {
		ref := metav1.GetControllerOf(p)
		return ref == nil || ref.UID != owner
	})
}

// daemonTolerations are added to every pod of a DaemonSet.
func daemonTolerations(hostNetwork bool) []core.Toleration {
	keys := []string{core.TaintNodeNotReady, core.TaintNodeUnreachable, core.TaintNodeDiskPressure, core.TaintNodeMemoryPressure, core.TaintNodePIDPressure, core.TaintNodeUnschedulable}
	if hostNetwork {
		keys = append(keys, core.TaintNodeNetworkUnavailable)
	}
	var all []core.Toleration
	for _, k := range keys {
		all = append(all, core.Toleration{Key: k, Operator: core.TolerationOpExists})
	}
	return all
}

func podFrom(t core.PodTemplateSpec, namespace, prefix string, owner *metav1.OwnerReference) *core.Pod {
	p := &core.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	p.Name, p.GenerateName, p.Namespace, p.OwnerReferences = "", prefix, namespace, []metav1.OwnerReference{*owner}
	return p
}

func podReady(p *core.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c core.PodCondition) bool { return c.Type == core.PodReady && c.Status == core.ConditionTrue })
}

func templateHash(t core.PodTemplateSpec) string {
	raw, _ := t.Marshal()
	h := fnv.New32a()
	_, _ = h.Write(raw)
	return strconv.FormatUint(uint64(h.Sum32()), 36)
}

func with(m map[string]string, k, v string) map[string]string {
	out := map[string]string{k: v}
	for key, value := range m {
		if key != k {
			out[key] = value
		}
	}
	return out
}
