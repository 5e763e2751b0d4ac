package api

import (
	"crypto/sha1"
	"fmt"
	"slices"
)

// permissionSet is a bundle of rights under the name that IAM gives it.
type permissionSet struct {
	name    string
	scope   string // projects, organization
	product string // empty for all that belongs to projects
	actions []string
	only    string // the kind of resource, when it is not all of the product
}

var (
	reading   = []string{"read", "list"}
	writing   = []string{"write", "create"}
	deleting  = []string{"delete"}
	restoring = []string{"restore"}
	whole     = []string{"read", "list", "write", "access", "create", "delete", "restore"}
)

// permissionSets are those for what an estate is made of, and some more.
var permissionSets = []permissionSet{
	{"AllProductsFullAccess", "projects", "", whole, ""}, {"AllProductsReadOnly", "projects", "", reading, ""},
	{"InstancesFullAccess", "projects", "instance", whole, ""}, {"InstancesReadOnly", "projects", "instance", reading, ""},
	{"BlockStorageFullAccess", "projects", "block", whole, ""}, {"BlockStorageReadOnly", "projects", "block", reading, ""},
	{"VPCFullAccess", "projects", "vpc", whole, ""}, {"VPCReadOnly", "projects", "vpc", reading, ""},
	{"PrivateNetworksFullAccess", "projects", "vpc", whole, "private_network"}, {"PrivateNetworksReadOnly", "projects", "vpc", reading, "private_network"},
	{"IPAMFullAccess", "projects", "ipam", whole, ""}, {"IPAMReadOnly", "projects", "ipam", reading, ""},
	{"VPCGatewayFullAccess", "projects", "vpc-gw", whole, ""}, {"VPCGatewayReadOnly", "projects", "vpc-gw", reading, ""},
	{"LoadBalancersFullAccess", "projects", "lb", whole, ""}, {"LoadBalancersReadOnly", "projects", "lb", reading, ""},
	{"RelationalDatabasesFullAccess", "projects", "rdb", whole, ""}, {"RelationalDatabasesReadOnly", "projects", "rdb", reading, ""},
	{"ObjectStorageFullAccess", "projects", "object", whole, ""}, {"ObjectStorageReadOnly", "projects", "object", reading, ""},
	{"ObjectStorageObjectsRead", "projects", "object", reading, "object"}, {"ObjectStorageBucketsRead", "projects", "object", reading, "bucket"},
	{"ObjectStorageObjectsWrite", "projects", "object", writing, "object"}, {"ObjectStorageBucketsWrite", "projects", "object", writing, "bucket"},
	{"ObjectStorageObjectsDelete", "projects", "object", deleting, "object"}, {"ObjectStorageBucketsDelete", "projects", "object", deleting, "bucket"},
	{"ObjectStorageBucketPolicyFullAccess", "projects", "object", whole, "policy"},
	{"ContainerRegistryFullAccess", "projects", "registry", whole, ""}, {"ContainerRegistryReadOnly", "projects", "registry", reading, ""},
	{"SecretManagerFullAccess", "projects", "secret-manager", whole, ""}, {"SecretManagerReadOnly", "projects", "secret-manager", reading, ""},
	{"SecretManagerSecretAccess", "projects", "secret-manager", []string{"access"}, ""},
	{"SecretManagerSecretCreate", "projects", "secret-manager", []string{"create"}, ""},
	{"SecretManagerSecretWrite", "projects", "secret-manager", []string{"write"}, ""},
	{"SecretManagerSecretDelete", "projects", "secret-manager", deleting, ""}, {"SecretManagerSecretRestore", "projects", "secret-manager", restoring, ""},
	{"DomainsDNSFullAccess", "projects", "domain", whole, ""}, {"DomainsDNSReadOnly", "projects", "domain", reading, ""},
	{"ElasticMetalFullAccess", "projects", "baremetal", whole, ""}, {"ElasticMetalReadOnly", "projects", "baremetal", reading, ""},
	{"SSHKeysFullAccess", "projects", "iam", whole, "ssh_key"}, {"SSHKeysReadOnly", "projects", "iam", reading, "ssh_key"},
	{"IAMManager", "organization", "iam", whole, ""}, {"IAMReadOnly", "organization", "iam", reading, ""},
	{"ProjectManager", "organization", "account", whole, ""}, {"ProjectReadOnly", "organization", "account", reading, ""},
	// Of products that are not here; policies may name them.
	{"OrganizationReadOnly", "organization", "organization", reading, ""}, {"BillingManager", "organization", "billing", whole, ""},
	{"BillingReadOnly", "organization", "billing", reading, ""}, {"SupportTicketReadOnly", "organization", "support", reading, ""},
	{"ContainersFullAccess", "projects", "containers", whole, ""}, {"ContainersReadOnly", "projects", "containers", reading, ""},
	{"FunctionsFullAccess", "projects", "functions", whole, ""}, {"FunctionsReadOnly", "projects", "functions", reading, ""},
	{"KubernetesFullAccess", "projects", "k8s", whole, ""}, {"KubernetesReadOnly", "projects", "k8s", reading, ""},
	{"ObservabilityFullAccess", "projects", "cockpit", whole, ""}, {"ObservabilityReadOnly", "projects", "cockpit", reading, ""},
}

func (s permissionSet) id() string {
	sum := sha1.Sum([]byte("permission set " + s.name))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func permissionSetNamed(name string) (permissionSet, bool) {
	for _, s := range permissionSets {
		if s.name == name {
			return s, true
		}
	}
	return permissionSet{}, false
}

// gives says whether a permission set has a right. SSH keys are not among the
// products, and not for who manages people and keys of the API.
func gives(name string, r right) bool {
	s, ok := permissionSetNamed(name)
	switch {
	case !ok || !slices.Contains(s.actions, r.action):
		return false
	case s.product == "":
		return r.product != "iam" && r.product != "account"
	case s.only == "" && apart(s, r):
		return false
	}
	return s.product == r.product && (s.only == "" || s.only == r.kind)
}

// apart says whether a kind of resource has permission sets of its own, which
// that of its whole product does not include. Policies of buckets are in the
// documented table of ObjectStorageReadOnly and not in that of
// ObjectStorageFullAccess, strange as it is.
func apart(s permissionSet, r right) bool {
	policy := r.product == "object" && r.kind == "policy"
	return r.kind == "ssh_key" || r.kind == "private_network" || policy && s.name != "ObjectStorageReadOnly"
}
