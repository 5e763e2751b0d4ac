// Package estate is the environment file: its types, how it is decoded, its
// defaults, its validation and its schema. It holds values only; it opens no
// connection and reads nothing but the file that it is given.
package estate

import "net/netip"

// APIVersion and Kind are the only ones that this build reads.
const (
	APIVersion = "bastide/v1"
	Kind       = "Estate"
	FileName   = "estate.yaml"
)

// Estate is one environment: the whole of what bastide raises, runs and takes
// down. Every command names the file that it comes from.
type Estate struct {
	APIVersion   string       `yaml:"apiVersion" estate:"required,example=bastide/v1"` // version of this file's form
	Kind         string       `yaml:"kind" estate:"required,example=Estate"`           // what the file describes
	Name         string       `yaml:"name" estate:"required,example=staging"`          // at most 32 characters; nodes, load balancer and network are named after it
	Scaleway     Scaleway     `yaml:"scaleway"`
	Secrets      Secrets      `yaml:"secrets"`
	Store        Store        `yaml:"store"`
	Talos        Talos        `yaml:"talos"`
	Kubernetes   Kubernetes   `yaml:"kubernetes"`
	Network      Network      `yaml:"network"`
	Admin        Admin        `yaml:"admin"`
	API          API          `yaml:"api"`
	ControlPlane ControlPlane `yaml:"controlPlane"`
	Pools        []Pool       `yaml:"pools"` // groups of worker nodes
	Services     Services     `yaml:"services"`
	DNS          *DNS         `yaml:"dns"` // records in a zone that exists at Scaleway

	// Dir is the directory of the file; relative paths in it start there.
	Dir string `yaml:"-"`
	// File is the path that it was read from.
	File string `yaml:"-"`
}

// Scaleway says where the estate is built. These values always win over the
// SCW_* environment and the scw configuration file.
type Scaleway struct {
	Project string   `yaml:"project" estate:"required,example=11111111-1111-4111-8111-111111111111"` // project UUID
	Region  string   `yaml:"region" estate:"required,example=fr-par"`                                // such as fr-par
	Zones   []string `yaml:"zones" estate:"required,example=[fr-par-1]"`                             // such as fr-par-1; one, in this version
}

// Secrets names who can decrypt the machine secrets bundle.
type Secrets struct {
	Recipients []string `yaml:"recipients" estate:"required,example=[age1...]"` // age public keys (age1...)
}

// Store is the estate's own bucket in object storage, the home of its lock,
// journals, images and backups. See Estate.BucketName.
type Store struct {
	Bucket  string   `yaml:"bucket"`  // name of the bucket; one is derived from project and name where none is given
	Replica *Replica `yaml:"replica"` // a second, off-site store for copies of the secrets bundle
}

// Replica is an S3 store in another failure domain than the estate's own. What
// is kept there is encrypted before it leaves.
type Replica struct {
	Endpoint string `yaml:"endpoint" estate:"required,example=https://s3.example.net"` // https address of the store, without a bucket, a path or a key
	Region   string `yaml:"region" estate:"required,example=eu-west-1"`                // the store's own name for its region, which signatures name
	Bucket   string `yaml:"bucket" estate:"required,example=staging-replica"`          // a private bucket that exists there; bastide makes none
}

// Talos is the operating system of the nodes.
type Talos struct {
	Version    string   `yaml:"version" estate:"required,example=v1.13.5"` // such as v1.13.5
	Extensions []string `yaml:"extensions"`                                // official system extensions; their order is part of the schematic id
	KernelArgs []string `yaml:"kernelArgs"`                                // further kernel arguments, baked into the image in this order; part of the schematic id
	Snapshot   string   `yaml:"snapshot"`                                  // name or UUID of a block snapshot that holds the Talos disk; left out, bastide makes the image
	Image      Image    `yaml:"image"`
	Patches    Patches  `yaml:"patches"`
}

// Image is how the image of the nodes' disks is made, where no snapshot is named.
type Image struct {
	Source string `yaml:"source" estate:"default=raw.zst"` // what is fetched from the Image Factory: raw.zst, raw.xz or qcow2
}

// Patches are files of strategic merge patches, relative to the estate file,
// applied in this order: all, then controlPlane or workers, then the pool's,
// then the node's.
type Patches struct {
	All          []string            `yaml:"all"`          // for every node
	ControlPlane []string            `yaml:"controlPlane"` // for control plane nodes
	Workers      []string            `yaml:"workers"`      // for the nodes of all pools
	Pools        map[string][]string `yaml:"pools"`        // by pool name
	Nodes        map[string][]string `yaml:"nodes"`        // by node name, such as staging-system-2
}

// Kubernetes is the cluster that runs on the nodes.
type Kubernetes struct {
	Version   string            `yaml:"version" estate:"required,example=1.36.3"` // such as 1.36.3, without v
	APIServer APIServer         `yaml:"apiServer"`
	Etcd      Etcd              `yaml:"etcd"`
	Kubelet   Kubelet           `yaml:"kubelet"`
	Admission []AdmissionPlugin `yaml:"admission"` // configuration of admission plug-ins
}

// APIServer holds kube-apiserver settings that are the user's.
type APIServer struct {
	ExtraArgs   map[string]string `yaml:"extraArgs"`   // kube-apiserver flags, without dashes; those that Talos or bastide decide are refused
	AuditPolicy string            `yaml:"auditPolicy"` // file with an audit.k8s.io/v1 Policy; empty keeps the default of Talos
}

// AdmissionPlugin is one admission plug-in and the file with its configuration.
type AdmissionPlugin struct {
	Name          string `yaml:"name" estate:"required,example=PodSecurity"`                // such as PodSecurity
	Configuration string `yaml:"configuration" estate:"required,example=pod-security.yaml"` // file with its configuration, relative to the estate file
}

// Etcd holds etcd settings that are the user's.
type Etcd struct {
	Quota     Size              `yaml:"quota"`     // size limit of the database (quota-backend-bytes)
	ExtraArgs map[string]string `yaml:"extraArgs"` // etcd flags, without dashes
}

// Kubelet holds kubelet settings that are the user's.
type Kubelet struct {
	ExtraArgs map[string]string `yaml:"extraArgs"` // kubelet flags, without dashes
	// ExtraConfig is merged into the KubeletConfiguration document.
	ExtraConfig map[string]any `yaml:"extraConfig"`
}

// Network is the private network and the cluster's own ranges.
type Network struct {
	Mode     string  `yaml:"mode" estate:"default=private"`                // private: no node has a public address
	CIDR     Prefix  `yaml:"cidr" estate:"required,example=172.16.0.0/22"` // of the Private Network: private IPv4, /20 to /28; it cannot be changed later
	Pods     Prefix  `yaml:"pods" estate:"default=10.244.0.0/16"`          // each node takes a /24 of it
	Services Prefix  `yaml:"services" estate:"default=10.96.0.0/12"`       // at most a /12
	Gateway  Gateway `yaml:"gateway"`
	// EdgeAddress reserves a public IPv4 address of the load balancers' own
	// family, for the load balancer that the cluster's ingress will ask for.
	EdgeAddress string `yaml:"edgeAddress" estate:"default=none"` // none or reserved
}

// Gateway is the public gateway: NAT for the nodes and the SSH bastion.
type Gateway struct {
	Type string `yaml:"type" estate:"default=VPC-GW-S"` // such as VPC-GW-S
}

// Admin says who may come in, and how.
type Admin struct {
	CIDRs   []Prefix `yaml:"cidrs" estate:"required,example=[198.51.100.7/32]"`         // public IPv4 ranges that may reach the bastion; never open to the world
	Door    string   `yaml:"door" estate:"default=bastion"`                             // bastion
	SSHKeys []string `yaml:"sshKeys" estate:"required,example=[~/.ssh/id_ed25519.pub]"` // public keys: a file (~ allowed) or the key itself

	// PublicKeys are the SSH keys as one line each, type and key without
	// comment, gathered by Load from SSHKeys.
	PublicKeys []string `yaml:"-"`
}

// API is the Kubernetes API's load balancer and names.
type API struct {
	LoadBalancer string   `yaml:"loadBalancer" estate:"default=LB-S"` // such as LB-S
	Names        []string `yaml:"names"`                              // further DNS names in the API server's certificate
}

// ControlPlane is the control plane nodes; an odd number of them.
type ControlPlane struct {
	Count     int               `yaml:"count" estate:"default=3"`                  // 1, 3, 5 or 7
	Type      string            `yaml:"type" estate:"required,example=PLAY2-NANO"` // Instance type, such as PLAY2-NANO
	Disk      Disk              `yaml:"disk"`
	Ephemeral *Disk             `yaml:"ephemeral"` // a second volume for EPHEMERAL, where wanted
	Labels    map[string]string `yaml:"labels"`    // node labels
}

// Pool is a group of worker nodes that are alike.
type Pool struct {
	Name      string            `yaml:"name" estate:"required,example=system"`      // its nodes are called ESTATE-POOL-1 and on
	Count     int               `yaml:"count" estate:"required,example=2"`          // number of nodes; 0 is allowed
	Type      string            `yaml:"type" estate:"required,example=PLAY2-MICRO"` // Instance type, such as PLAY2-MICRO
	Disk      Disk              `yaml:"disk"`
	Ephemeral *Disk             `yaml:"ephemeral"` // a second volume for EPHEMERAL, where wanted
	Labels    map[string]string `yaml:"labels"`    // node labels; workers cannot set those of kubernetes.io on themselves
	Taints    []Taint           `yaml:"taints"`    // node taints
}

// Disk is a block storage volume.
type Disk struct {
	Size Size `yaml:"size" estate:"default=20GB"` // whole decimal GB, up to 10TB; at least 7GB for a root volume that holds everything
	IOPS int  `yaml:"iops" estate:"default=5000"` // 5000 or 15000
}

// Taint is a Kubernetes node taint.
type Taint struct {
	Key    string `yaml:"key" estate:"required,example=dedicated"`     // such as dedicated, or a domain and a name
	Value  string `yaml:"value"`                                       // may be left out
	Effect string `yaml:"effect" estate:"required,example=NoSchedule"` // NoSchedule, PreferNoSchedule, NoExecute
}

// Size is a number of bytes, written as 20GB (decimal) or 20GiB.
type Size int64

// Prefix is an address range in CIDR notation; its zero value means "not given".
type Prefix struct{ netip.Prefix }
