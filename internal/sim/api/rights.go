package api

import (
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
	// and an action ("lb:write", "block:read"; of object storage write is all
	// that changes something and read all else), or all that an IAM permission set
	// gives ("SecretManagerSecretAccess").
	Deny []string `json:"deny,omitempty"`
	// PermissionSets are the only ones that the key has, by IAM's names; nil
	// means all.
	PermissionSets []string `json:"permission_sets,omitempty"`

	rules []policyRule // of an application's key, which has nothing else
	bound bool         // rules are all that the key has
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

// may says whether a key has a right, in the project that it is about.
func (k Credential) may(r right) bool {
	switch {
	case denied(k.Deny, r):
		return false
	case k.bound:
		return slices.ContainsFunc(k.rules, func(rule policyRule) bool { return rule.covers(r.project) && givesOne(rule.Sets, r) })
	}
	return k.PermissionSets == nil || givesOne(k.PermissionSets, r)
}

func givesOne(sets []string, r right) bool {
	return slices.ContainsFunc(sets, func(name string) bool { return gives(name, r) })
}

// covers says whether a rule is about a project; one that names none is about
// all of its organization.
func (r policyRule) covers(project string) bool {
	return project == "" || len(r.Projects) == 0 || slices.Contains(r.Projects, project)
}

// denied says whether a list of products, actions and permission sets holds a right.
func denied(names []string, r right) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return n == r.product || n == r.product+":"+r.action || n == r.product+":write" && r.changes() ||
			n == r.product+":read" && r.action == "list" || gives(n, r)
	})
}

// changes says whether a right is to change something.
func (r right) changes() bool {
	return r.action != "read" && r.action != "access" && r.action != "list"
}

// right is what a call needs. The actions of most products are read and write;
// those of secrets are finer, since who may list them need not see them, and
// those of object storage are as its own table has them.
type right struct {
	product string // as in the URL
	action  string // read, write; of secrets also access, create, delete, restore; of objects list, create, delete
	kind    string // the resource that a refusal names
	project string // that it is about, as far as the call says; else empty
}

var (
	products = []string{"instance", "block", "vpc", "ipam", "vpc-gw", "lb", "rdb", "object", "registry", "secret-manager", "domain", "iam", "account",
		"baremetal", "flexible-ip", "marketplace", "product-catalog"}
	actions = []string{"read", "list", "write", "access", "create", "delete", "restore"}
)

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
	case method == http.MethodPost && (last == "secrets" || last == "versions"):
		return "create" // of a secret and of its versions, as the set's description has it
	case method == http.MethodPost && last == "restore":
		return "restore"
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
		limits := Credential{bound: true}
		for _, p := range c.Policies.where(func(p *policy) bool { return p.Application == k.Application }) {
			limits.rules = append(limits.rules, p.Rules...)
		}
		return limits, nil
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
	if public {
		k.PermissionSets, k.bound = nil, false // what anybody may read needs no set
	}
	c.granted = k
	r := c.right()
	if k.bound {
		r.project = c.projectAskedFor()
	}
	return c.needs(r)
}

// needs refuses a call whose key lacks a right.
func (c *call) needs(r right) error {
	if !c.granted.may(r) {
		return r.refused()
	}
	if rule, hit := c.region.faults.Permission(func(names []string) bool { return denied(names, r) }); hit {
		c.fault = ruled(rule)
		return r.refused()
	}
	return nil
}

// sees refuses to put something into a private network that the call's key may
// not even read. What the real API asks for there is not known: no less, surely.
func (c *call) sees(p *privateNetwork) error {
	return c.needs(right{product: "vpc", action: "read", kind: "private_network", project: p.Project})
}
