package node

import (
	"context"
	"errors"
	"slices"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
)

// schedule binds pods to the node with the fewest that they fit, and deletes
// pods of nodes that are no more.
func (m *controllers) schedule(ctx context.Context) error {
	nodes := m.nodes.All()
	pods := m.pods.All()
	load := map[string]int{}
	for _, p := range pods {
		load[p.Spec.NodeName]++
	}
	var failed []error
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			if !slices.ContainsFunc(nodes, func(o *core.Node) bool { return o.Name == p.Spec.NodeName }) {
				failed = append(failed, ignore(m.c.Pods(p.Namespace).DeleteNow(ctx, p.Name), isNotFound))
			}
			continue
		}
		var best *core.Node
		for _, o := range nodes {
			if fits(o, p.Spec.NodeSelector, p.Spec.Tolerations) && (best == nil || load[o.Name] < load[best.Name]) {
				best = o
			}
		}
		if best == nil || p.DeletionTimestamp != nil {
			continue
		}
		load[best.Name]++
		err := m.c.Bind(ctx, p, best.Name)
		failed = append(failed, ignore(err, apierrors.IsConflict, isNotFound))
	}
	return errors.Join(failed...)
}

// fits tells whether a node has the labels and no taint in the way.
func fits(o *core.Node, selector map[string]string, tolerations []core.Toleration) bool {
	if !labels.SelectorFromSet(selector).Matches(labels.Set(o.Labels)) {
		return false
	}
	for _, t := range o.Spec.Taints {
		if t.Effect == core.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(x core.Toleration) bool { return tolerates(x, t) }) {
			return false
		}
	}
	return true
}

func tolerates(x core.Toleration, t core.Taint) bool {
	if x.Effect != "" && x.Effect != t.Effect {
		return false
	}
	if x.Operator == core.TolerationOpExists {
		return x.Key == "" || x.Key == t.Key
	}
	return x.Key == t.Key && x.Value == t.Value
}
