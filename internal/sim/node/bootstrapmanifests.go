package node

import (
	"encoding/json"
	"fmt"
	"strings"
)

// inClusterServer is where pods of the host's network reach the API server.
func (n *node) inClusterServer() string {
	cfg := n.config()
	if p := cfg.Machine().Features().KubePrism(); p.Enabled() {
		return fmt.Sprintf("https://127.0.0.1:%d", p.Port())
	}
	return cfg.Cluster().Endpoint().String()
}

// bootstrapManifests renders what a Talos control plane creates by itself, as
// YAML documents of one line each. Pod templates are cut down to what shows: no
// container of them ever runs.
func (n *node) bootstrapManifests() string {
	cfg := n.config()
	cl := cfg.Cluster()
	objs := []object{
		{"apiVersion": "v1", "kind": "Secret", "metadata": system("bootstrap-token-" + cl.Token().ID()), "type": "bootstrap.kubernetes.io/token", "stringData": object{
			"token-id": cl.Token().ID(), "token-secret": cl.Token().Secret(), "usage-bootstrap-authentication": "true", "auth-extra-groups": "system:bootstrappers:nodes",
		}},
		binding("system-bootstrap-node-bootstrapper", "system:node-bootstrapper", group("system:bootstrappers:nodes"), group("system:nodes")),
		binding("system-bootstrap-approve-node-client-csr", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", group("system:bootstrappers:nodes")),
		binding("system-bootstrap-node-renewal", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", group("system:nodes")),
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": system("kubeconfig-in-cluster"), "data": object{"kubeconfig": n.inClusterKubeconfig()}},
		binding("system:talos-nodes", "system:talos-nodes", group("system:nodes")),
		clusterRole("system:talos-nodes", reads("discovery.k8s.io", "endpointslices")),
	}
	if cl.CoreDNS().Enabled() {
		objs = append(objs, n.coreDNS()...)
	}
	if cl.Network().CNI().Name() == "flannel" {
		objs = append(objs, n.flannel()...)
	}
	if cl.Proxy().Enabled() {
		objs = append(objs,
			daemonSet("kube-proxy", cl.Proxy().Image(), "kube-proxy", []any{hostVolume("lib-modules", "/usr/lib/modules"), configVolume("kubeconfig", "kubeconfig-in-cluster")}),
			account("kube-proxy"), binding("kube-proxy", "system:node-proxier", serviceAccount("kube-proxy")))
	}
	if cfg.Machine().Features().KubernetesTalosAPIAccess().Enabled() {
		objs = append(objs, serviceAccountCRD())
	}
	var out []string
	for _, o := range objs {
		raw, _ := json.Marshal(o)
		out = append(out, string(raw))
	}
	return strings.Join(out, "\n---\n")
}

func (n *node) inClusterKubeconfig() string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: %s
    certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
users:
- name: service-account
  user:
    tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
contexts:
- name: local
  context:
    cluster: local
    user: service-account
current-context: local
`, n.inClusterServer())
}

func (n *node) coreDNS() []object {
	cl := n.config().Cluster()
	dns := ""
	if ips, err := cl.Network().DNSServiceIPs(); err == nil && len(ips) > 0 {
		dns = ips[0].String()
	}
	labels := object{"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}
	service := system("kube-dns")
	service["labels"] = object{"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"}
	deployment := system("coredns")
	deployment["labels"] = labels
	port := func(name string, number int, protocol string) object {
		return object{"name": name, "port": number, "targetPort": number, "protocol": protocol}
	}
	return []object{
		account("coredns"),
		clusterRole("system:coredns", reads("", "endpoints", "services", "pods", "namespaces"), reads("discovery.k8s.io", "endpointslices")),
		binding("system:coredns", "system:coredns", serviceAccount("coredns")),
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": system("coredns"), "data": object{
			"Corefile": ".:53 {\n    errors\n    ready\n    kubernetes " + cl.Network().DNSDomain() + " in-addr.arpa ip6.arpa\n    forward . /etc/resolv.conf\n    cache 30\n}\n",
		}},
		{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": deployment, "spec": object{
			"replicas": 2, "selector": object{"matchLabels": object{"k8s-app": "kube-dns"}},
			"template": object{"metadata": object{"labels": object{"k8s-app": "kube-dns"}}, "spec": object{
				"serviceAccountName": "coredns", "priorityClassName": "system-cluster-critical", "dnsPolicy": "Default",
				"nodeSelector": object{"kubernetes.io/os": "linux"},
				"tolerations": []any{
					object{"key": controlPlaneLabel, "operator": "Exists", "effect": "NoSchedule"},
					object{"key": uninitialized, "operator": "Exists", "effect": "NoSchedule"},
				},
				"containers": []any{object{"name": "coredns", "image": cl.CoreDNS().Image(), "args": []any{"-conf", "/etc/coredns/Corefile"}}},
			}},
		}},
		{"apiVersion": "v1", "kind": "Service", "metadata": service, "spec": object{
			"clusterIP": dns, "selector": object{"k8s-app": "kube-dns"},
			"ports": []any{port("dns", 53, "UDP"), port("dns-tcp", 53, "TCP"), port("metrics", 9153, "TCP")},
		}},
	}
}

func (n *node) flannel() []object {
	cl := n.config().Cluster()
	net, _ := json.Marshal(object{"Network": strings.Join(cl.Network().PodCIDRs(), ","), "Backend": object{"Type": "vxlan", "Port": 4789}})
	return []object{
		clusterRole("flannel", reads("", "pods", "nodes"), object{"apiGroups": []any{""}, "resources": []any{"nodes/status"}, "verbs": []any{"patch"}}),
		binding("flannel", "flannel", serviceAccount("flannel")), account("flannel"),
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": system("kube-flannel-cfg"), "data": object{"net-conf.json": string(net)}},
		daemonSet("kube-flannel", "ghcr.io/siderolabs/flannel:v0.28.1", "flannel", []any{
			hostVolume("run", "/run/flannel"), hostVolume("cni", "/etc/cni/net.d"), configVolume("flannel-cfg", "kube-flannel-cfg"),
		}),
	}
}

func system(name string) object { return object{"name": name, "namespace": "kube-system"} }

func account(name string) object {
	return object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": system(name)}
}

func group(name string) object {
	return object{"kind": "Group", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
}

func serviceAccount(name string) object {
	return object{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}
}

func binding(name, ref string, subjects ...object) object {
	return object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": name}, "subjects": subjects,
		"roleRef": object{"kind": "ClusterRole", "name": ref, "apiGroup": "rbac.authorization.k8s.io"},
	}
}

func clusterRole(name string, rules ...object) object {
	return object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": object{"name": name}, "rules": rules}
}

func reads(group string, resources ...string) object {
	return object{"apiGroups": []any{group}, "resources": resources, "verbs": []any{"get", "list", "watch"}}
}

func hostVolume(name, path string) object {
	return object{"name": name, "hostPath": object{"path": path}}
}

func configVolume(name, configMap string) object {
	return object{"name": name, "configMap": object{"name": configMap}}
}

// daemonSet is one of the host's network that runs on every node.
func daemonSet(name, image, app string, volumes []any) object {
	labels := object{"tier": "node", "k8s-app": app}
	md := system(name)
	md["labels"] = labels
	return object{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": md, "spec": object{
		"selector": object{"matchLabels": labels},
		"template": object{"metadata": object{"labels": labels}, "spec": object{
			"hostNetwork": true, "serviceAccountName": app, "volumes": volumes, "priorityClassName": "system-node-critical",
			"tolerations": []any{object{"operator": "Exists", "effect": "NoSchedule"}, object{"operator": "Exists", "effect": "NoExecute"}},
			"containers":  []any{object{"name": name, "image": image}},
		}},
	}}
}

func serviceAccountCRD() object {
	return object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "serviceaccounts.talos.dev"}, "spec": object{
		"group": "talos.dev", "scope": "Namespaced",
		"names": object{"kind": "ServiceAccount", "listKind": "ServiceAccountList", "plural": "serviceaccounts", "singular": "serviceaccount", "shortNames": []any{"tsa"}},
		"versions": []any{object{"name": "v1alpha1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{
			"type": "object", "properties": object{
				"spec":   object{"type": "object", "properties": object{"roles": object{"type": "array", "items": object{"type": "string"}}}},
				"status": object{"type": "object", "properties": object{"failureReason": object{"type": "string"}}},
			},
		}}}},
	}}
}
