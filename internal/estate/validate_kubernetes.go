package estate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Bounds of etcd's database. etcd itself warns above 8 GiB: a member that has
// to fetch a larger database takes too long to catch up. Below half a GiB
// ordinary clusters run into the limit, and etcd then refuses all writes.
const (
	smallestQuota = GiB / 2
	largestQuota  = 8 * GiB
)

var (
	flagName      = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	pluginName    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	apiServerArgs = ownedArgs{
		"Talos": {
			"advertise-address", "bind-address", "secure-port", "etcd-servers", "etcd-cafile", "etcd-certfile", "etcd-keyfile",
			"client-ca-file", "requestheader-client-ca-file", "proxy-client-cert-file", "proxy-client-key-file", "encryption-provider-config",
			"kubelet-client-certificate", "kubelet-client-key", "kubelet-certificate-authority", "service-account-key-file", "service-account-signing-key-file",
			"service-account-issuer", "tls-cert-file", "tls-private-key-file", "admission-control-config-file", "audit-policy-file",
		},
		"network.services": {"service-cluster-ip-range"},
	}
	etcdArgs = ownedArgs{
		"Talos": {
			"name", "data-dir", "initial-cluster", "initial-cluster-state", "initial-cluster-token", "initial-advertise-peer-urls", "advertise-client-urls",
			"listen-peer-urls", "listen-client-urls", "cert-file", "key-file", "trusted-ca-file", "client-cert-auth",
			"peer-cert-file", "peer-key-file", "peer-trusted-ca-file", "peer-client-cert-auth", "auto-tls", "peer-auto-tls", "force-new-cluster",
		},
		"etcd.quota": {"quota-backend-bytes"},
	}
	kubeletArgs = ownedArgs{
		"Talos":      {"bootstrap-kubeconfig", "kubeconfig", "config", "cert-dir", "root-dir", "container-runtime-endpoint", "image-service-endpoint", "hostname-override"},
		"network":    {"node-ip", "cluster-dns", "cluster-domain", "cloud-provider"},
		"the labels": {"node-labels"},
		"the taints": {"register-with-taints"},
	}
	kubeletConfig = []string{"apiVersion", "kind", "authentication", "authorization", "clusterDNS", "clusterDomain", "staticPodPath", "tlsCertFile", "tlsPrivateKeyFile", "registerWithTaints", "port", "address"}
)

// ownedArgs lists flags that are not the user's, by what decides them.
type ownedArgs map[string][]string

func (o ownedArgs) owner(flag string) string {
	for owner, flags := range o {
		if slices.Contains(flags, flag) {
			return owner
		}
	}
	return ""
}

func (s *source) validateKubernetes(k *Kubernetes) {
	s.validateArgs("kubernetes.apiServer.extraArgs", k.APIServer.ExtraArgs, apiServerArgs)
	s.validateArgs("kubernetes.etcd.extraArgs", k.Etcd.ExtraArgs, etcdArgs)
	s.validateArgs("kubernetes.kubelet.extraArgs", k.Kubelet.ExtraArgs, kubeletArgs)
	for _, key := range slices.Sorted(maps.Keys(k.Kubelet.ExtraConfig)) {
		if slices.Contains(kubeletConfig, key) {
			s.refuse(keyed("kubernetes.kubelet.extraConfig", key), "is not yours to set", "Talos decides it and refuses another value", "remove it")
		}
	}
	first := map[string]int{}
	for i, a := range k.Admission {
		path := indexed("kubernetes.admission", i)
		if a.Name != "" && !pluginName.MatchString(a.Name) {
			s.refuse(path+".name", fmt.Sprintf("%q is not an admission plug-in", brief(a.Name)), "their names are words such as PodSecurity, and the API server does not start with an unknown one", "write the name as Kubernetes documents it")
		}
		if at, twice := first[a.Name]; twice && a.Name != "" {
			s.refuse(path+".name", fmt.Sprintf("%q is configured in %s too", a.Name, indexed("kubernetes.admission", at)), "a plug-in has one configuration", "merge the two")
			continue
		}
		first[a.Name] = i
	}
	if q := k.Etcd.Quota; q != 0 && (q < smallestQuota || q > largestQuota) {
		s.refuse("kubernetes.etcd.quota", q.String()+" is out of bounds",
			"below 512MiB etcd soon refuses writes, and above 8GiB a member takes too long to catch up", "write between 512MiB and 8GiB, or remove the line for etcd's own 2GiB")
	}
}

func (s *source) validateArgs(path string, args map[string]string, owned ownedArgs) {
	for _, flag := range slices.Sorted(maps.Keys(args)) {
		here := keyed(path, flag)
		if !flagName.MatchString(flag) {
			hint := "write it as the component's help does, in lower case with dashes"
			if bare := strings.TrimLeft(flag, "-"); flagName.MatchString(bare) {
				hint = "leave out the leading dashes: " + bare
			}
			s.refuse(here, fmt.Sprintf("%q is not a flag's name", brief(flag)), "the component would not start", hint)
		} else if owner := owned.owner(flag); owner != "" {
			s.refuse(here, "is not yours to set", owner+" decides it, and another value would break the cluster or be ignored", "remove it")
		}
	}
}

// validateQuotaFits keeps etcd's database within half of the volume that holds
// it: defragmentation and snapshots write a second copy beside it.
func (s *source) validateQuotaFits(e *Estate) {
	volume, path := e.ControlPlane.Disk.Size, "controlPlane.disk.size"
	if e.ControlPlane.Ephemeral != nil {
		volume, path = e.ControlPlane.Ephemeral.Size, "controlPlane.ephemeral.size"
	}
	if q := e.Kubernetes.Etcd.Quota; q > 0 && q > volume/2 && !s.silenced(path) {
		s.refuse("kubernetes.etcd.quota", fmt.Sprintf("%s does not fit twice into %s (%s)", q, path, volume),
			"defragmenting writes a second copy of the database beside the first", "lower the quota, or enlarge the volume")
	}
}
