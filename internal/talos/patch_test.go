package talos

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"

	"bastide/internal/estate"
	"bastide/internal/outcome"
)

func TestPatchesThatAreRefused(t *testing.T) {
	cases := []struct {
		name, node, patch string
		want              []string
	}{
		{"report 12: key nested one level too deep", "staging-cp-1", "cluster:\n  apiServer:\n    apiServer:\n      certSANs: [a.example.org]\n",
			[]string{"p.yaml:3: cluster.apiServer.apiServer is not a key that Talos v1.13.5 knows"}},
		{"report 12: misspelt key", "staging-cp-1", "machine:\n  sysctl: {a: b}\n", []string{"p.yaml:2: machine.sysctl is not a key"}},
		{"report 12: unknown kind", "staging-cp-1", "---\napiVersion: v1alpha1\nkind: HostnameConfg\nhostname: a\n", []string{"p.yaml:3: there is no configuration document of kind HostnameConfg"}},
		{"unknown key in a second document", "staging-cp-1", "machine: {sysctls: {a: b}}\n---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning:\n  size: 3GB\n",
			[]string{"p.yaml:7: provisioning.size is not a key"}},
		{"unknown key in a list", "staging-cp-1", "machine:\n  files:\n    - path: /var/a\n      permissions: 0o600\n      contents: x\n", []string{"p.yaml:5: machine.files[0].contents is not a key"}},
		{"wrong type", "staging-cp-1", "machine:\n  certSANs:\n    a: b\n", []string{"p.yaml:3 is not a patch"}},
		{"duplicate key", "staging-cp-1", "machine:\n  sysctls: {a: b}\n  sysctls: {c: d}\n", []string{"p.yaml:3 cannot be read", "a key is written twice, the first time on line 2"}},
		{"JSON patch", "staging-cp-1", `[{"op": "add", "path": "/machine/sysctls", "value": {}}]`, []string{"is a JSON patch"}},
		{"not YAML", "staging-cp-1", "machine: [", []string{"p.yaml:2 cannot be read", "it is not valid YAML"}},
		{"too deep", "staging-cp-1", "machine: " + strings.Repeat("{a: ", 20000), []string{"p.yaml:1 cannot be read"}},
		{"too many keys", "staging-cp-1", "machine:\n  sysctls:\n" + manyKeys(50000), []string{"p.yaml:3 cannot be read", "a mapping has more than"}},
		{"a bomb", "staging-cp-1", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n", []string{"p.yaml"}},
		{"row B8: document of 1.14", "staging-cp-1", "apiVersion: v1alpha1\nkind: SysctlConfig\nsysctls: {a: b}\n", []string{"p.yaml:2: kind SysctlConfig is not for Talos v1.13.5", "1.14"}},
		{"row B8: LVM document of 1.14", "staging-cp-1", "apiVersion: v1alpha1\nkind: LVMVolumeGroupConfig\n", []string{"is not for Talos"}},
		{"discovery on", "staging-cp-1", "cluster:\n  discovery:\n    enabled: true\n", []string{"p.yaml:3: cluster.discovery.enabled is on"}},
		{"report 18: discovery through Kubernetes", "staging-cp-1", "cluster:\n  discovery:\n    registries:\n      kubernetes:\n        disabled: false\n", []string{"p.yaml:4: cluster.discovery.registries.kubernetes is on", "1.32"}},
		{"discovery service", "staging-system-1", "cluster: {discovery: {registries: {service: {disabled: false}}}}\n", []string{"cluster.discovery.registries.service is on"}},
		{"report 14: wider kubelet subnets", "staging-system-1", "machine:\n  kubelet:\n    nodeIP:\n      validSubnets: [0.0.0.0/0]\n", []string{"p.yaml:4: machine.kubelet.nodeIP.validSubnets holds 0.0.0.0/0, which is not within network.cidr"}},
		{"report 14: another family", "staging-system-1", "machine: {kubelet: {nodeIP: {validSubnets: ['fd00::/8']}}}\n", []string{"validSubnets holds fd00::/8"}},
		{"report 14: node excluded", "staging-system-1", "machine: {kubelet: {nodeIP: {validSubnets: ['!172.16.0.0/24']}}}\n", []string{"excludes the node's own address"}},
		{"report 14: emptied", "staging-system-1", "machine: {kubelet: {nodeIP: {$patch: delete}}}\n", []string{"selects no address of the node"}},
		{"report 15: advertised subnet without a node", "staging-cp-1", "cluster:\n  etcd:\n    advertisedSubnets:\n      - 10.9.0.0/24\n", []string{"p.yaml:3: cluster.etcd.advertisedSubnets holds 10.9.0.0/24", "no node address is to be in it"}},
		{"report 15: listening elsewhere", "staging-cp-1", "cluster: {etcd: {listenSubnets: [10.9.0.0/24]}}\n", []string{"cluster.etcd.listenSubnets holds 10.9.0.0/24"}},
		{"report 11: name", "staging-cp-1", "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: other\n", []string{"p.yaml:3: HostnameConfig.hostname is not the node's name"}},
		{"report 11: automatic name", "staging-cp-1", "apiVersion: v1alpha1\nkind: HostnameConfig\n$patch: delete\n", []string{"HostnameConfig.hostname is not the node's name"}},
		{"report 11: legacy name", "staging-cp-1", "machine: {network: {hostname: other}}\n", []string{"machine.network.hostname is other"}},
		{"foreign schematic", "staging-cp-1", "machine: {install: {image: 'ghcr.io/siderolabs/installer:v1.13.5'}}\n", []string{"machine.install.image is ghcr.io", "extensions"}},
		{"unknown etcd flag", "staging-cp-1", "cluster:\n  etcd:\n    extraArgs:\n      quota-backend-byte: '1'\n", []string{"p.yaml:4: cluster.etcd.extraArgs.quota-backend-byte is not a flag of etcd"}},
		{"etcd flag that Talos sets", "staging-cp-1", "cluster: {etcd: {extraArgs: {data-dir: /x}}}\n", []string{"cluster.etcd.extraArgs.data-dir is set"}},
		{"report 12: advertise address of the guide", "staging-cp-1", "cluster: {apiServer: {extraArgs: {advertise-address: 0.0.0.0}}}\n", []string{"advertise-address is 0.0.0.0"}},
		{"certificate name taken away", "staging-cp-1", "machine: {certSANs: {$patch: delete}}\n", []string{"machine.certSANs lacks"}},
		{"role", "staging-system-1", "machine: {type: controlplane}\n", []string{"machine.type is controlplane"}},
		{"endpoint", "staging-cp-1", "cluster: {controlPlane: {endpoint: 'https://1.2.3.4:6443'}}\n", []string{"cluster.controlPlane.endpoint is not https://"}},
		{"cluster name", "staging-cp-1", "cluster: {clusterName: other}\n", []string{"cluster.clusterName is other"}},
		{"token", "staging-system-1", "machine: {token: abcdef.0123456789abcdef}\n", []string{"has another token"}},
		{"secretbox key", "staging-cp-1", "cluster: {secretboxEncryptionSecret: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}\n", []string{"cluster has another secretbox key"}},
		{"etcd without authority", "staging-cp-1", "cluster: {etcd: {$patch: delete}}\n", []string{"cluster lacks a part"}},
		{"pods", "staging-cp-1", "cluster: {network: {podSubnets: [10.1.0.0/16]}}\n", []string{"cluster.network has other pod or service ranges"}},
		{"control plane part on a worker", "staging-system-1", "cluster:\n  apiServer:\n    extraArgs: {v: '2'}\n", []string{"p.yaml:2: cluster.apiServer is set", "talos.patches.controlPlane"}},
		{"inline manifest on a worker", "staging-system-1", "cluster: {inlineManifests: [{name: a, contents: b}]}\n", []string{"cluster.inlineManifests is set"}},
		{"report 17: volume that cannot be", "staging-cp-1", "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning: {maxSize: 2GB}\n", []string{"maxSize is below the least size of EPHEMERAL"}},
		{"row A11: EPHEMERAL by device path", "staging-cp-1", "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning:\n  diskSelector: {match: \"disk.dev_path == '/dev/vdb'\"}\n", []string{"p.yaml:5: VolumeConfig.provisioning.diskSelector names a device path"}},
		{"row A11: EPHEMERAL back on the system disk", "staging-system-1", "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning: {minSize: 10GB}\n", []string{"does not select the second volume"}},
		{"link without DHCP", "staging-cp-1", "apiVersion: v1alpha1\nkind: LinkConfig\nname: eth1\nmtu: 1400\n", []string{"p.yaml:1: LinkConfig stands without a DHCPv4Config"}},
		{"report 37: firewall that accepts", "staging-cp-1", "apiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: accept\n", []string{"p.yaml:3: NetworkDefaultActionConfig.ingress is accept", "security groups see public traffic alone", "another name"}},
		{"report 37: firewall that is not said", "staging-cp-1", "apiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\n", []string{"p.yaml:1: NetworkDefaultActionConfig.ingress is accept"}},
		{"report 37: firewall deleted", "staging-system-1", "apiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\n$patch: delete\n", []string{"NetworkDefaultActionConfig.ingress is not block"}},
		{"report 37: rule for the world", "staging-system-1", "apiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: nodeports\nportSelector: {ports: [30000-32767], protocol: tcp}\ningress:\n  - subnet: 0.0.0.0/0\n", []string{"p.yaml:5: NetworkRuleConfig.ingress of nodeports holds 0.0.0.0/0", "wider than any private network"}},
		{"report 37: rule for half the world", "staging-system-1", "apiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: a\nportSelector: {ports: [80], protocol: tcp}\ningress: [{subnet: 0.0.0.0/1}, {subnet: 128.0.0.0/1}]\n", []string{"holds 0.0.0.0/1"}},
		{"report 37: rule for the world of IPv6", "staging-system-1", "apiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: a\nportSelector: {ports: [80], protocol: udp}\ningress: [{subnet: '::/0'}]\n", []string{"holds ::/0"}},
		{"report 37: rule for nobody said", "staging-system-1", "apiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: a\nportSelector: {ports: [80], protocol: tcp}\n", []string{"of a names no range"}},
		{"report 37: own rule widened", "staging-cp-1", "apiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: bastide-etcd\ningress: [{subnet: 172.16.0.0/22}]\n", []string{"p.yaml:3: NetworkRuleConfig.name bastide-etcd is not as bastide has it"}},
		{"report 37: own rule with an exception", "staging-cp-1", "apiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: bastide-apid\ningress: [{subnet: 172.16.0.0/22, except: 172.16.0.2/32}]\n", []string{"bastide-apid is not as bastide has it"}},
		{"report 37: own rule deleted", "staging-cp-1", "apiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: bastide-apid\n$patch: delete\n", []string{"bastide-apid is not as bastide has it"}},
		{"machine deleted", "staging-cp-1", "machine: {$patch: delete}\n", []string{"machine is deleted"}},
		{"kubespan", "staging-cp-1", "apiVersion: v1alpha1\nkind: KubeSpanConfig\nenabled: true\n", []string{"KubeSpanConfig.enabled is on", "discovery"}},
		{"deletes what is not there", "staging-cp-1", "machine:\n  network:\n    interfaces:\n      - interface: eth1\n        $patch: delete\n", []string{"deletes something that the configuration does not have"}},
		{"deletes a document that is not there", "staging-cp-1", "apiVersion: v1alpha1\nkind: VolumeConfig\nname: SWAP\n$patch: delete\n", []string{"p.yaml does not apply", "deletes something that the configuration does not have"}},
		{"deletes a document of no kind", "staging-cp-1", "apiVersion: v1alpha1\nkind: Nothing\n$patch: delete\n", []string{"deletes something that the configuration does not have"}},
		{"value that is not valid", "staging-cp-1", "machine: {nodeLabels: {'-x': 'y'}}\n", []string{"is not valid", "-x"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := testEstate(t)
			e.Pools[0].Ephemeral = &estate.Disk{Size: 60e9}
			e.Talos.Patches.Nodes = map[string][]string{c.node: {write(t, e, "p.yaml", c.patch)}}
			_, err := render(t, e, c.node)
			if outcome.CodeOf(err) != outcome.Refused {
				t.Fatalf("got %v, want a refusal", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("refusal\n  %s\nlacks\n  %s", err, want)
				}
			}
			for _, s := range bundle(t).Secrets() {
				if strings.Contains(err.Error(), s.Reveal()) {
					t.Error("the refusal shows a secret")
				}
			}
		})
	}
}

func TestPatchesThatAreTaken(t *testing.T) {
	cases := []struct {
		name, node, patch string
		warning           string
		check             func(Config) bool
	}{
		{"sysctl", "staging-system-1", "machine: {sysctls: {vm.max_map_count: '262144'}}\n", "",
			func(c Config) bool { return c.provider.Machine().Sysctls()["vm.max_map_count"] == "262144" }},
		{"another name in the certificate", "staging-cp-1", "cluster: {apiServer: {certSANs: [a.example.org]}}\n", "",
			func(c Config) bool {
				return slices.Contains(c.provider.RawV1Alpha1().ClusterConfig.APIServerConfig.CertSANs, "a.example.org")
			}},
		{"report 14: a VIP excluded", "staging-cp-1", "machine: {kubelet: {nodeIP: {validSubnets: ['!172.16.0.9/32']}}}\ncluster: {etcd: {advertisedSubnets: ['!172.16.0.9']}}\n", "",
			func(c Config) bool {
				return slices.Contains(c.provider.Machine().Kubelet().NodeIP().ValidSubnets(), "!172.16.0.9/32")
			}},
		{"delete a key", "staging-cp-1", "cluster: {apiServer: {auditPolicy: {$patch: delete}}}\n", "",
			func(c Config) bool {
				return len(c.provider.RawV1Alpha1().ClusterConfig.APIServerConfig.AuditPolicyConfig.Object) == 0
			}},
		{"report 16: KubePrism off", "staging-system-1", "machine: {features: {kubePrism: {enabled: false}}}\n", "kubePrism is off", nil},
		{"report 16: KubePrism elsewhere", "staging-system-1", "machine: {features: {kubePrism: {port: 7446}}}\n", "kubePrism.port is 7446", nil},
		{"kubelet of another version", "staging-system-1", "machine: {kubelet: {image: 'ghcr.io/siderolabs/kubelet:v1.36.0'}}\n", "not of kubernetes.version", nil},
		{"link with DHCP", "staging-cp-1", "apiVersion: v1alpha1\nkind: LinkConfig\nname: eth1\nmtu: 1400\n---\napiVersion: v1alpha1\nkind: DHCPv4Config\nname: eth1\n", "", nil},
		{"report 37: a port opened", "staging-system-1", "apiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: nodeports\nportSelector: {ports: [30000-32767], protocol: tcp}\ningress: [{subnet: 172.16.0.0/22}, {subnet: 10.0.0.0/8}]\n", "",
			func(c Config) bool { return len(c.provider.NetworkRules().Rules()) == 4 }},
		{"report 37: block said again", "staging-system-1", "apiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: block\n", "", nil},
		{"report 37: another network of pods", "staging-cp-1", "cluster: {network: {cni: {name: none}}}\n", "flannel's port open alone", nil},
		{"nothing but comments", "staging-cp-1", "# later\n", "", nil},
		{"etcd flag", "staging-cp-1", "cluster: {etcd: {extraArgs: {max-request-bytes: '2097152'}}}\n", "", nil},
		{"scheduling on control planes", "staging-cp-1", "cluster: {allowSchedulingOnControlPlanes: true}\n", "",
			func(c Config) bool { return c.provider.Cluster().ScheduleOnControlPlanes() }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := testEstate(t)
			e.Talos.Patches.Nodes = map[string][]string{c.node: {write(t, e, "p.yaml", c.patch)}}
			got, err := render(t, e, c.node)
			if err != nil {
				t.Fatal(err)
			}
			if c.warning == "" && len(got.Warnings) > 0 || !strings.Contains(strings.Join(got.Warnings, "\n"), c.warning) {
				t.Errorf("warnings %q, want %q", got.Warnings, c.warning)
			}
			if c.check != nil && !c.check(got) {
				t.Error("the patch had no effect")
			}
		})
	}
}

func TestPatchOrderIsAllRolePoolNode(t *testing.T) {
	e := testEstate(t)
	file := func(name string) []string {
		return []string{write(t, e, name+".yaml", fmt.Sprintf("machine: {sysctls: {last: %s, %s: here}}\n", name, name))}
	}
	e.Talos.Patches = estate.Patches{
		All: file("all"), ControlPlane: file("cp"), Workers: file("workers"),
		Pools: map[string][]string{"system": file("pool")}, Nodes: map[string][]string{"staging-system-2": file("node")},
	}
	want := map[string]string{"staging-cp-1": "cp", "staging-system-1": "pool", "staging-system-2": "node"}
	for node, last := range want {
		c, err := render(t, e, node)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.provider.Machine().Sysctls()["last"]; got != last {
			t.Errorf("%s: last patch was %s, want %s", node, got, last)
		}
	}
	c, err := render(t, e, "staging-cp-1")
	if err != nil {
		t.Fatal(err)
	}
	if c.provider.Machine().Sysctls()["workers"] != "" {
		t.Error("a control plane node took a worker's patch")
	}
}

// Field report 16: a client that is told localhost needs KubePrism there.
func TestFieldReport16KubePrismMismatch(t *testing.T) {
	cases := []struct {
		patch string
		port  int
		want  string
	}{
		{"", KubePrismPort, ""},
		{"machine: {features: {kubePrism: {enabled: false}}}\n", KubePrismPort, "kubePrism.enabled is false"},
		{"machine: {features: {kubePrism: {port: 7446}}}\n", KubePrismPort, "k8sServicePort is 7445 and machine.features.kubePrism.port is 7446"},
	}
	for _, c := range cases {
		e := testEstate(t)
		e.Talos.Patches.All = []string{write(t, e, "p.yaml", c.patch)}
		got, err := render(t, e, "staging-system-1")
		if err != nil {
			t.Fatal(err)
		}
		err = CheckKubePrism(got, "localhost", c.port)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("patch %q: %v, want %q", c.patch, err, c.want)
		}
		if err := CheckKubePrism(got, "172.16.0.3", 6443); err != nil {
			t.Errorf("another host: %v", err)
		}
	}
}

// The table of flags holds every flag of the etcd that the simulator runs.
func TestEtcdFlagsAreKnown(t *testing.T) {
	set := flag.NewFlagSet("etcd", flag.ContinueOnError)
	embed.NewConfig().AddFlags(set)
	set.VisitAll(func(f *flag.Flag) {
		if !slices.Contains(etcdFlags, f.Name) {
			t.Errorf("etcd's flag %s is not in the table", f.Name)
		}
	})
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "    k%d: v\n", i)
	}
	return b.String()
}
