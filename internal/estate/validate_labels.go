package estate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

var taintEffects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

// validateLabels applies Kubernetes' own syntax, and refuses the labels that a
// node could not set on itself, or that say what the cluster knows better.
func (s *source) validateLabels(path string, labels map[string]string, worker bool) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		here := keyed(path, key)
		if faults := validation.IsQualifiedName(key); len(faults) > 0 {
			s.refuse(here, fmt.Sprintf("%q cannot be a label's key", brief(key)), "Kubernetes would refuse it", "write name or domain/name, in letters, digits, dashes, dots and underscores")
			continue
		}
		if faults := validation.IsValidLabelValue(labels[key]); len(faults) > 0 {
			s.refuse(here, fmt.Sprintf("%q cannot be a label's value", brief(labels[key])), "Kubernetes would refuse it", "write at most 63 letters, digits, dashes, dots and underscores, with a letter or digit at both ends")
			continue
		}
		if why := reservedLabel(key, worker); why != "" {
			s.refuse(here, "is a reserved label", why, "use a key without a domain, or with a domain of your own")
		}
	}
}

// reservedLabel says why a label must not be set, or "". The API server's
// NodeRestriction plug-in lets a worker set, of Kubernetes' own domains, only
// those below kubelet.kubernetes.io and node.kubernetes.io.
func reservedLabel(key string, worker bool) string {
	domain, name, found := strings.Cut(key, "/")
	if !found {
		return ""
	}
	switch {
	case key == "kubernetes.io/hostname", key == "kubernetes.io/arch", key == "kubernetes.io/os",
		domain == "topology.kubernetes.io", key == "node.kubernetes.io/instance-type":
		return "the kubelet and the cloud controller set " + name + " to what is true of the node"
	case domain == "node-role.kubernetes.io" && name == "control-plane":
		return "bastide sets it on control plane nodes, and only there"
	case !worker, within(domain, "kubelet.kubernetes.io"), within(domain, "node.kubernetes.io"):
		return ""
	case within(domain, "kubernetes.io"), within(domain, "k8s.io"):
		return "the API server does not let a worker set labels of the domain " + domain + " on itself"
	}
	return ""
}

func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

func (s *source) validateTaints(path string, taints []Taint) {
	first := map[string]int{}
	for i, t := range taints {
		here := indexed(path, i)
		if t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0 {
			s.refuse(here+".key", fmt.Sprintf("%q cannot be a taint's key", brief(t.Key)), "Kubernetes would refuse it", "write name or domain/name, in letters, digits, dashes, dots and underscores")
		}
		if len(validation.IsValidLabelValue(t.Value)) > 0 {
			s.refuse(here+".value", fmt.Sprintf("%q cannot be a taint's value", brief(t.Value)), "Kubernetes would refuse it", "write at most 63 letters, digits, dashes, dots and underscores")
		}
		s.oneOf(here+".effect", t.Effect, taintEffects, "Kubernetes has three effects: "+strings.Join(taintEffects, ", "))
		identity := t.Key + ":" + t.Effect
		if at, twice := first[identity]; twice {
			s.refuse(here, "has the key and effect of "+indexed(path, at), "a node has one taint for each key and effect", "remove one of the two")
			continue
		}
		first[identity] = i
	}
}
