package estate

import "slices"

// mutation is a change of the full example: at this path, this value. refused are
// the paths that are named then, the path itself when it is empty, none when it
// is "-".
type mutation struct{ at, value, refused string }

var mutations = slices.Concat(formMutations, cloudMutations, talosMutations, kubernetesMutations, networkMutations, nodeMutations, postgresMutations, servicesMutations)

// formMutations are rows of the table for the form of the file, its words and keys,
// and the estate's name.
var formMutations = []mutation{
	// form of the file
	{"apiVersion", "bastide/v2", ""},
	{"apiVersion", "v1", ""},
	{"apiVersion", "1", ""},
	{"apiVersion", "[bastide/v1]", ""},
	{"apiVersion", "(removed)", ""},
	{"kind", "estate", ""},
	{"kind", "EstateList", ""},
	{"kind", "(removed)", ""},
	// name
	{"name", "Staging", ""},
	{"name", "sta_ging", ""},
	{"name", "stag.ing", ""},
	{"name", "-staging", ""},
	{"name", "staging-", ""},
	{"name", "1staging", ""},
	{"name", "été", ""},
	{"name", "st aging", ""},
	{"name", `" staging"`, ""},
	{"name", `"staging\n"`, ""},
	{"name", `"sta\tging"`, ""},
	{"name", `"../staging"`, ""},
	{"name", `"$(id)"`, ""},
	{"name", "abcdefghijklmnopqrstuvwxyz-abcdef", ""},
	{"name", `""`, ""},
	{"name", "null", ""},
	{"name", "~", ""},
	{"name", "true", ""},
	{"name", "12", ""},
	// words that YAML 1.1 takes for true and false
	{"name", "yes", ""},
	{"name", "on", ""},
	{"name", "y", ""},
	{"pools[0].name", "off", ""},
	{"pools[0].labels.example", "No", ""},
	{"pools[0].labels.example", "nO", "-"},
	{"pools[0].labels.example", "'No'", "-"},
	{"pools[0].labels", "{on: x}", "pools[0].labels"},
	{"pools[0].labels", "{'on': x}", "-"},
	{"pools[0].taints", "[{key: a, value: off, effect: NoExecute}]", "pools[0].taints[0].value"},
	{"kubernetes.apiServer.extraArgs.profiling", "off", ""},
	{"kubernetes.kubelet.extraConfig.serializeImagePulls", "no", ""},
	{"api.names[0]", "no", ""},
	{"name", "2026-11-30", ""},
	{"name", "[staging]", ""},
	{"name", "{a: b}", ""},
	{"name", "(removed)", ""},
	// unknown keys
	{"nam", "staging", ""},
	{"addons", "{}", ""},
	{"gitops", "{}", ""},
	{"backup", "{}", ""},
	{"dir", "/", ""},
	{"scaleway.zone", "fr-par-1", ""},
	{"scaleway.organization", "x", ""},
	{"secrets.identity", "x", ""},
	{"talos.schematic", "x", ""},
	{"talos.patches.control-plane", "[]", ""},
	{"kubernetes.apiserver", "{}", ""},
	{"kubernetes.apiServer.certSANs", "[]", ""},
	{"kubernetes.apiServer.apiServer.certSANs", "[a]", "kubernetes.apiServer.apiServer"},
	{"kubernetes.admission[0].config", "x", ""},
	{"network.vpc", "x", ""},
	{"network.gateway.size", "S", ""},
	{"admin.cidr", "198.51.100.7/32", ""},
	{"api.name", "x", ""},
	{"controlPlane.replicas", "3", ""},
	{"controlPlane.disk.type", "sbs", ""},
	{"controlPlane.ephemeral.mount", "/var", ""},
	{"controlPlane.taints", "[]", ""},
	{"pools[0].replicas", "2", ""},
	{"pools[0].metal", "EM-A116X-SSD", ""},
	{"pools[1].taints[0].operator", "Exists", ""},
}
