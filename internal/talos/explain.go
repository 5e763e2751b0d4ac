package talos

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"go.yaml.in/yaml/v4"

	"bastide/internal/outcome"
)

// since114 are the documents that Talos 1.14 brought; a 1.13 node rejects a
// configuration that holds one.
var since114 = strings.Fields(`UnattendedInstallConfig KubeClusterConfig KubeNodeConfig KubeletConfig KubeNetworkConfig
	KubeFlannelCNIConfig KubeProxyConfig KubeCoreDNSConfig KubeAPIServerConfig KubeAPIServerCAConfig KubeAggregatorCAConfig
	KubeAdmissionControlConfig KubeAuditPolicyConfig KubeAuthenticationConfig KubeAuthorizerConfig KubeControllerManagerConfig
	KubeSchedulerConfig KubeServiceAccountConfig KubeEtcdEncryptionConfig KubePrismConfig KubeTalosAPIAccessConfig KubeStaticPodConfig
	KubeInlineManifestConfig KubeExternalManifestConfig KubeCredentialProviderConfig DiscoveryServiceConfig DiscoveryIdentityConfig
	SecurityProfileConfig FilesystemTrimConfig FilesystemScrubConfig SysctlConfig SysfsConfig KernelModuleConfig UdevRulesConfig
	EtcdFileConfig EtcFileConfig CRICustomizationConfig CRIBaseRuntimeSpecConfig ImageCacheConfig HTTPProbeConfig BGPInstanceConfig
	VethConfig RAIDArrayConfig ContainerConfig`)

// explain turns the loader's error about a patch file into a refusal that
// names file, line and key path.
func (r *Renderer) explain(path string, text []byte, err error) error {
	docs := documentsOf(text)
	for _, doc := range docs {
		kind, node := scalar(doc, "kind")
		switch {
		case kind == "":
		case slices.Contains(since114, kind) || strings.HasPrefix(kind, "LVM"):
			return outcome.Refuse(fmt.Sprintf("%s: kind %s is not for Talos %s", at(path, node.Line), kind, r.estate.Talos.Version),
				"Talos 1.14 brought it, and an earlier node rejects a configuration that holds it", "write the same setting in the v1alpha1 document (machine: or cluster:)")
		case strings.Contains(err.Error(), fmt.Sprintf("%q", kind)) && strings.Contains(err.Error(), "not registered"):
			return outcome.Refuse(fmt.Sprintf("%s: there is no configuration document of kind %s", at(path, node.Line), kind),
				"Talos "+r.estate.Talos.Version+" would reject it", "correct the kind or its apiVersion")
		}
	}
	if strings.Contains(err.Error(), "unknown keys found") {
		for _, doc := range docs {
			if keys, line := unknownKey(doc); len(keys) > 0 {
				return outcome.Refuse(fmt.Sprintf("%s: %s is not a key that Talos %s knows", at(path, line), strings.Join(keys, "."), r.estate.Talos.Version),
					"a setting under a wrong key would silently have no effect", "correct the key or its place")
			}
		}
	}
	if jsonPatch(docs) {
		return outcome.Refuse(path+" is a JSON patch", "configurations have several documents, to which JSON patches cannot be applied", "write it as a strategic merge patch: the keys to change, in place")
	}
	return outcome.Refuse(at(path, innermostLine(err.Error()))+" is not a patch for a machine configuration", "", "correct the file").Because(flat(err))
}

// errorLine finds lines in a decoder's message; the innermost is last, and
// followed by a colon where the message goes on to name other lines.
var errorLine = regexp.MustCompile(`line (\d+)(:?)`)

func innermostLine(message string) int {
	line, sure := 0, false
	for _, m := range errorLine.FindAllStringSubmatch(message, -1) {
		if m[2] == ":" || !sure {
			line, _ = strconv.Atoi(m[1])
			sure = m[2] == ":"
		}
	}
	return line
}

func jsonPatch(docs []*yaml.Node) bool {
	for _, doc := range docs {
		if doc.Kind == yaml.SequenceNode {
			return true
		}
	}
	return false
}

func documentsOf(text []byte) []*yaml.Node {
	var out []*yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if err := decoder.Decode(&doc); err != nil {
			return out // at the end, or the loader has said what is wrong
		}
		if len(doc.Content) > 0 {
			out = append(out, doc.Content[0])
		}
	}
}

func scalar(doc *yaml.Node, key string) (string, *yaml.Node) {
	if doc.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(doc.Content); i += 2 {
			if doc.Content[i].Value == key {
				return doc.Content[i+1].Value, doc.Content[i]
			}
		}
	}
	return "", nil
}

// unknownKey finds the first key of a document that its type does not have.
// The loader says that there is one but shows it buried in what is around it;
// so each key is tried alone, outermost first, with nothing under it.
func unknownKey(doc *yaml.Node) (path []string, line int) {
	if doc.Kind != yaml.MappingNode {
		return nil, 0
	}
	try := func(steps []step) bool {
		probe, err := yaml.Marshal(wrap(doc, steps))
		if err != nil {
			return false
		}
		_, err = configloader.NewFromBytes(probe)
		return err != nil && strings.Contains(err.Error(), "unknown keys found")
	}
	return search(doc, nil, try)
}

// step is one level of a path: a key, or an item of a list.
type step struct {
	key   string
	index int // for items; the key is then empty
}

func search(node *yaml.Node, prefix []step, unknown func([]step) bool) ([]string, int) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			here := append(slices.Clone(prefix), step{key: node.Content[i].Value})
			if unknown(here) {
				return names(here), node.Content[i].Line
			}
			if found, line := search(node.Content[i+1], here, unknown); len(found) > 0 {
				return found, line
			}
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			if found, line := search(item, append(slices.Clone(prefix), step{index: i}), unknown); len(found) > 0 {
				return found, line
			}
		}
	}
	return nil, 0
}

// wrap builds a document that holds only the path, and what says its type.
func wrap(doc *yaml.Node, steps []step) any {
	var inner any
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].key == "" {
			inner = []any{inner}
		} else {
			inner = map[string]any{steps[i].key: inner}
		}
	}
	out, ok := inner.(map[string]any)
	if !ok {
		return inner
	}
	kind, _ := scalar(doc, "kind")
	version, _ := scalar(doc, "apiVersion")
	if kind == "" {
		for _, key := range []string{"machine", "cluster"} {
			if _, there := out[key]; !there {
				out[key] = nil
			}
		}
		return out
	}
	out["kind"], out["apiVersion"] = kind, version
	return out
}

func names(steps []step) []string {
	var out []string
	for _, s := range steps {
		if s.key != "" {
			out = append(out, s.key)
		} else if len(out) > 0 {
			out[len(out)-1] += fmt.Sprintf("[%d]", s.index)
		}
	}
	return out
}

// lineOf finds the line of a key path in a patch file, as near as it goes.
func lineOf(text []byte, path string) int {
	best, depth := 0, 0
	for _, doc := range documentsOf(text) {
		node, kindPath := doc, strings.Split(path, ".")
		if kind, _ := scalar(doc, "kind"); kind != "" {
			if kindPath[0] != kind {
				continue
			}
			kindPath = kindPath[1:]
			if best == 0 {
				best = doc.Line
			}
		}
		for i, key := range kindPath {
			value := child(node, key)
			if value == nil {
				break
			}
			if i+1 > depth {
				best, depth = value.key.Line, i+1
			}
			node = value.value
		}
	}
	return best
}

type entry struct{ key, value *yaml.Node }

func child(node *yaml.Node, key string) *entry {
	if node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return &entry{node.Content[i], node.Content[i+1]}
		}
	}
	return nil
}
