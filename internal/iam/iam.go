// Package iam says which applications, policies and API keys an estate needs at
// Scaleway, each with no more rights than its work takes, and writes them as
// commands for a person to run. It is a pure function of the file: bastide itself
// never touches IAM and needs no right to.
//
// Names of permission sets are those of Scaleway's list of permission sets.
// That the sets are enough and none is superfluous is shown on the simulated
// region, for bastide and for a plan by running them and for the others by the
// calls that they make; what no test could show is said in Grant.Doubt.
package iam

import (
	"fmt"
	"slices"

	"bastide/internal/estate"
)

// Application is one user of the API that is no person, with its one policy and
// its one key.
type Application struct {
	Name    string  `json:"name"`
	For     string  `json:"for"`            // what it is for, as a sentence
	When    string  `json:"when,omitempty"` // when it is needed; empty for now
	Project string  `json:"project"`        // that its policy is limited to, and its key stands for
	Grants  []Grant `json:"grants"`
	Days    int     `json:"keyDays"` // after which its key ends
	Keep    string  `json:"keep"`    // where the key goes
}

// Grant is one permission set and why it is needed.
type Grant struct {
	Set   string `json:"permissionSet"`
	Why   string `json:"why"`
	Doubt string `json:"doubt,omitempty"` // what about it is not shown by a test
}

// Lives of keys, in days: one that sits in a CI system is the easiest to lose.
const (
	keyDays   = 365
	ciKeyDays = 90
)

// Needed are the applications that an estate needs, bastide's own first.
func Needed(e *estate.Estate) []Application {
	apps := []Application{bastide(e), plans(e), cloudController(e), storageDriver(e)}
	if len(e.Services.Buckets) > 0 {
		apps = append(apps, application(e))
	}
	if r := e.Services.Registry; r != nil && !r.Public {
		apps = append(apps, puller(e))
	}
	return append(apps, backups(e))
}

func named(e *estate.Estate, suffix string) Application {
	return Application{Name: e.Name + "-" + suffix, Project: e.Scaleway.Project, Days: keyDays}
}

// product is a part of Scaleway that the estate uses.
type product struct {
	full, read string // permission sets
	why        string
}

// products are what the file uses, in the order in which it is made.
func products(e *estate.Estate) []product {
	image, file := "", ""
	if e.Talos.MakesImage() {
		// An import reads the object with the rights of whoever asks for it.
		image, file = ", and the snapshot of their image, which is imported", " and the file of the image"
	}
	used := []product{
		{"VPCFullAccess", "VPCReadOnly", "the VPC"},
		{"PrivateNetworksFullAccess", "PrivateNetworksReadOnly", "the private network"},
		{"IPAMFullAccess", "IPAMReadOnly", "addresses in the private network"},
		{"VPCGatewayFullAccess", "VPCGatewayReadOnly", "the public gateway and its bastion"},
		{"LoadBalancersFullAccess", "LoadBalancersReadOnly", "the load balancer of the Kubernetes API"},
		{"BlockStorageFullAccess", "BlockStorageReadOnly", "the nodes' volumes" + image},
		{"InstancesFullAccess", "InstancesReadOnly", "the nodes, their security group and placement groups"},
		{"ObjectStorageFullAccess", "ObjectStorageReadOnly", "the estate's bucket with its lock" + file},
	}
	if e.Network.EdgeAddress == "reserved" {
		used[4].why += ", and the edge address"
	}
	if len(e.Services.Buckets) > 0 {
		used[7].why += ", and the application's buckets"
	}
	if e.Services.Postgres != nil {
		used = append(used, product{"RelationalDatabasesFullAccess", "RelationalDatabasesReadOnly", "the database"})
	}
	if e.Services.Registry != nil {
		used = append(used, product{"ContainerRegistryFullAccess", "ContainerRegistryReadOnly", "the registry's namespace"})
	}
	if e.DNS != nil {
		used = append(used, product{"DomainsDNSFullAccess", "DomainsDNSReadOnly", "records in the zone " + e.DNS.Zone})
	}
	return used
}

func bastide(e *estate.Estate) Application {
	a := named(e, "bastide")
	a.For = "bastide up, destroy and all else that it does"
	a.Keep = "SCW_ACCESS_KEY and SCW_SECRET_KEY of whoever runs bastide up"
	for _, p := range products(e) {
		a.Grants = append(a.Grants, Grant{Set: p.full, Why: p.why})
	}
	switch {
	case e.Services.Postgres != nil:
		a.Grants = append(a.Grants, Grant{Set: "SecretManagerFullAccess", Why: "the database's passwords, which bastide makes and keeps there"})
	case len(e.Services.Secrets) > 0:
		for _, g := range []struct{ set, why string }{
			{"SecretManagerReadOnly", "to see the secret containers, without what is in them"}, {"SecretManagerSecretCreate", "to make them"},
			{"SecretManagerSecretWrite", "to change their tags and protection"}, {"SecretManagerSecretDelete", "to delete them with destroy --delete-data secrets"},
			{"SecretManagerSecretRestore", "to bring one back within seven days of its deletion"},
		} {
			a.Grants = append(a.Grants, Grant{Set: g.set, Why: g.why, Doubt: "which of the five covers what was not tried on a real account"})
		}
	}
	a.Grants = append(a.Grants, Grant{Set: "ObjectStorageBucketPolicyFullAccess", Why: "to see and take back a policy that opens a bucket to everybody",
		Doubt: "of Scaleway's own lists one has it in ObjectStorageFullAccess and a newer one does not"})
	return with(a, "SSHKeysFullAccess", "to register admin.sshKeys; without it add them to the project by hand, and bastide says so and goes on")
}

// plans is for a check in CI: it sees everything and changes nothing.
func plans(e *estate.Estate) Application {
	a := named(e, "ci")
	a.For = "bastide plan, status and cost in CI: reads only"
	a.Keep, a.Days = "the CI system's secrets", ciKeyDays
	for _, p := range products(e) {
		a.Grants = append(a.Grants, Grant{Set: p.read, Why: p.why})
	}
	if e.Services.Postgres != nil || len(e.Services.Secrets) > 0 {
		a = with(a, "SecretManagerReadOnly", "to see secrets, without what is in them")
	}
	return with(a, "SSHKeysReadOnly", "to see whether admin.sshKeys are registered")
}

// tried is how far the rights of something that bastide does not install are shown.
const tried = "its calls were tried on the simulated region; it was not run"

// addOn is when what this version does not install is needed.
const addOn = "when you install it: this version of bastide does not"

func cloudController(e *estate.Estate) Application {
	a := named(e, "cloud-controller")
	a.For, a.When = "the cluster's cloud controller: addresses and zones of nodes, load balancers of Services", addOn
	a.Keep = "a Secret in the namespace kube-system"
	a.Grants = []Grant{
		{"InstancesReadOnly", "to find nodes by their names", tried}, {"LoadBalancersFullAccess", "to make load balancers for Services", tried},
		{"PrivateNetworksReadOnly", "to join them to the private network", "attaching may take PrivateNetworksFullAccess"},
		{"IPAMReadOnly", "to find the nodes' private addresses", tried},
	}
	return a
}

func storageDriver(e *estate.Estate) Application {
	a := named(e, "csi")
	a.For, a.When = "the cluster's storage driver: volumes of pods", addOn
	a.Keep = "a Secret in the namespace kube-system"
	a.Grants = []Grant{
		{"BlockStorageFullAccess", "to make volumes and snapshots", tried},
		{"InstancesFullAccess", "to attach them to nodes, which is a change of the Instance", "it covers more than attaching; no smaller set does"},
	}
	return a
}

func application(e *estate.Estate) Application {
	a := named(e, "objects")
	a.For, a.Keep = "the application: objects in its buckets", "a secret of the application"
	const whole = "IAM limits to the project, not to a bucket: it reaches the estate's bucket too; a bucket policy can narrow that"
	a.Grants = []Grant{{"ObjectStorageObjectsRead", "to read objects", whole}, {"ObjectStorageObjectsWrite", "to write them", whole}, {"ObjectStorageObjectsDelete", "to delete them", whole}}
	return a
}

func puller(e *estate.Estate) Application {
	a := named(e, "registry-pull")
	a.For, a.Keep = fmt.Sprintf("nodes: pulling images from rg.%s.scw.cloud/%s (user nologin, password the secret key)", e.Scaleway.Region, e.Services.Registry.Name), "an image pull secret, or a patch of the machine configuration"
	a.Grants = []Grant{{"ContainerRegistryReadOnly", "to pull images", "the registry's own protocol is not simulated"}}
	return a
}

func backups(e *estate.Estate) Application {
	a := named(e, "backup")
	a.For, a.When = "backups of etcd in the bucket "+e.BucketName(), "when a version of bastide makes them: this one does not"
	a.Keep = "a Secret in the cluster"
	const narrow = "IAM limits to the project, not to a bucket: a bucket policy can narrow that"
	a.Grants = []Grant{{"ObjectStorageObjectsRead", "to read a backup", narrow}, {"ObjectStorageObjectsWrite", "to write one", narrow}, {"ObjectStorageObjectsDelete", "to let old ones go", narrow}}
	return a
}

func with(a Application, set, why string) Application {
	a.Grants = append(a.Grants, Grant{Set: set, Why: why})
	return a
}

// Sets are the application's permission sets.
func (a Application) Sets() []string {
	var out []string
	for _, g := range a.Grants {
		out = append(out, g.Set)
	}
	slices.Sort(out)
	return out
}
