package api

import (
	"crypto/sha1"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"bastide/internal/sim/fault"
)

// Credential is what a secret key may do. The zero value may do everything.
type Credential struct {
	// Deny takes rights away: a product as in its URL ("lb", "iam"), a product
	// and an action ("lb:write", "block:read"), or all that an IAM permission
	// set gives ("SecretManagerSecretAccess").
	Deny []string `json:"deny,omitempty"`
	// PermissionSets are the only ones that the key has, by IAM's names; nil
	// means all.
	PermissionSets []string `json:"permission_sets,omitempty"`
}

// Check names what in a credential does not exist.
func (k Credential) Check() error {
	for _, s := range k.PermissionSets {
		if _, ok := permissionSetNamed(s); !ok {
			return fmt.Errorf("there is no permission set %q", s)
		}
	}
	return checkDenied(k.Deny)
}

func checkDenied(names []string) error {
	for _, n := range names {
		product, action, _ := strings.Cut(n, ":")
		_, set := permissionSetNamed(n)
		if !set && (!slices.Contains(products, product) || action != "" && !slices.Contains(actions, action)) {
			return fmt.Errorf("%q is no product, no product:action and no permission set", n)
		}
	}
	return nil
}

// may says whether a key has a right.
func (k Credential) may(r right) bool {
	if denied(k.Deny, r) {
		return false
	}
	return k.PermissionSets == nil || slices.ContainsFunc(k.PermissionSets, func(name string) bool { return gives(name, r) })
}

// denied says whether a list of products, actions and permission sets holds a right.
func denied(names []string, r right) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return n == r.product || n == r.product+":"+r.action || n == r.product+":write" && r.action != "read" && r.action != "access" || gives(n, r)
	})
}

// right is what a call needs. The actions of most products are read and write;
// those of secrets are finer, since who may list them need not see them.
type right struct {
	product string // as in the URL
	action  string // read, write; of secrets also access, create, delete
	kind    string // the resource that a refusal names
}

var (
	products = []string{"instance", "block", "vpc", "ipam", "vpc-gw", "lb", "rdb", "object", "registry", "secret-manager", "domain", "iam", "account",
		"baremetal", "flexible-ip", "marketplace", "product-catalog"}
	actions = []string{"read", "write", "access", "create", "delete"}
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
	reading = []string{"read"}
	writing = []string{"write"}
	whole   = []string{"read", "write", "access", "create", "delete"}
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
	{"ObjectStorageObjectsRead", "projects", "object", reading, ""}, {"ObjectStorageBucketsRead", "projects", "object", reading, ""},
	{"ObjectStorageObjectsWrite", "projects", "object", writing, ""}, {"ObjectStorageBucketsWrite", "projects", "object", writing, ""},
	{"ObjectStorageObjectsDelete", "projects", "object", writing, ""}, {"ObjectStorageBucketsDelete", "projects", "object", writing, ""},
	{"ContainerRegistryFullAccess", "projects", "registry", whole, ""}, {"ContainerRegistryReadOnly", "projects", "registry", reading, ""},
	{"SecretManagerFullAccess", "projects", "secret-manager", whole, ""}, {"SecretManagerReadOnly", "projects", "secret-manager", reading, ""},
	{"SecretManagerSecretAccess", "projects", "secret-manager", []string{"access"}, ""},
	{"SecretManagerSecretCreate", "projects", "secret-manager", []string{"create"}, ""},
	{"SecretManagerSecretWrite", "projects", "secret-manager", []string{"write"}, ""},
	{"SecretManagerSecretDelete", "projects", "secret-manager", []string{"delete"}, ""},
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
	{"ObjectStorageBucketPolicyFullAccess", "projects", "object-policy", whole, ""},
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
	case s.only == "" && (r.kind == "ssh_key" || r.kind == "private_network"):
		return false // these have permission sets of their own
	}
	return s.product == r.product && (s.only == "" || s.only == r.kind)
}

// right is what the call in hand needs.
func (c *call) right() right {
	segments := strings.Split(c.req.URL.Path, "/")
	r := right{product: segments[1], action: "read"}
	if fault.Mutates(c.req.Method) {
		r.action = "write"
	}
	r.kind = resourceKind(r.product, segments)
	if r.product == "secret-manager" {
		r.action = secretAction(c.req.Method, segments)
	}
	return r
}

// secretAction is finer than read and write.
func secretAction(method string, segments []string) string {
	last := segments[len(segments)-1]
	switch {
	case last == "access":
		return "access"
	case method == http.MethodGet:
		return "read"
	case method == http.MethodDelete:
		return "delete"
	case method == http.MethodPost && last == "secrets":
		return "create"
	}
	return "write"
}

// resourceKind is the word that a refusal uses for what a path is about. Those
// of load balancers, registries, projects, snapshots and servers are known; the
// rest are made after them.
func resourceKind(product string, segments []string) string {
	switch product {
	case "lb":
		return "loadbalancer"
	case "account":
		return "project"
	}
	if len(segments) < 4 {
		return product
	}
	at := 3
	if segments[3] == "zones" || segments[3] == "regions" {
		at = 5
	}
	if len(segments) <= at {
		return product
	}
	kind := strings.ReplaceAll(segments[at], "-", "_")
	switch {
	case product == "instance":
		return "compute_" + kind
	case product == "secret-manager":
		return "secret"
	case strings.HasSuffix(kind, "ies"):
		kind = strings.TrimSuffix(kind, "ies") + "y"
	default:
		kind = strings.TrimSuffix(kind, "s")
	}
	if product == "registry" {
		kind = "api_" + kind
	}
	return kind
}

// refused is the answer to a call without the right for it. Refusals know but
// two actions.
func (r right) refused() error {
	action := "read"
	if r.action != "read" && r.action != "access" {
		action = "write"
	}
	return forbidden(r.kind, action)
}

// credential is what the key of a call may do.
func (c *call) credential(token string) (Credential, error) {
	if c.Revoked[token] {
		return Credential{}, unauthenticated("not_found")
	}
	for _, k := range c.APIKeys.all() {
		if k.Secret != token || token == "" {
			continue
		}
		if k.Expires != nil && k.Expires.Before(time.Now()) {
			return Credential{}, unauthenticated("expired")
		}
		if k.Application == "" {
			return c.Rights, nil
		}
		sets := []string{}
		for _, p := range c.Policies.where(func(p *policy) bool { return p.Application == k.Application }) {
			for _, r := range p.Rules {
				sets = append(sets, r.Sets...)
			}
		}
		return Credential{PermissionSets: sets}, nil
	}
	if limits, listed := c.region.opts.Credentials[token]; listed {
		return limits, nil
	}
	if c.region.opts.OnlyListed && token != "" {
		return Credential{}, unauthenticated("not_found")
	}
	return c.Rights, nil
}

// permitted checks a call against the rights of its key and the fault script.
func (c *call) permitted(token string, public bool) error {
	k, err := c.credential(token)
	if err != nil {
		return err
	}
	r := c.right()
	if public {
		k.PermissionSets = nil // what anybody may read needs no set
	}
	if !k.may(r) {
		return r.refused()
	}
	if rule, hit := c.region.faults.Permission(func(names []string) bool { return denied(names, r) }); hit {
		c.fault = strings.TrimSpace("permission " + rule)
		return r.refused()
	}
	return nil
}
