// Package blueprint turns an environment file into one graph of steps: the
// cloud resources and the cluster steps that together are the estate. It is a
// pure function of its inputs. The same graph is planned, applied, observed,
// destroyed and drawn.
package blueprint

// Kind says what a step is. It is the first half of a step's ID.
type Kind string

// The kinds, in the order in which they are usually made.
const (
	KindVPC            Kind = "vpc"
	KindPrivateNetwork Kind = "private-network"
	KindSSHKey         Kind = "ssh-key"
	KindGatewayIP      Kind = "gateway-ip"
	KindGateway        Kind = "gateway"
	KindAddress        Kind = "address"
	KindGatewayNetwork Kind = "gateway-network"
	KindSecurityGroup  Kind = "security-group"
	KindPlacementGroup Kind = "placement-group"
	KindImageObject    Kind = "image-object"
	KindSnapshot       Kind = "snapshot"
	KindVolume         Kind = "volume"
	KindServer         Kind = "server"
	KindPrivateNIC     Kind = "private-nic"
	KindPower          Kind = "power"
	KindLoadBalancer   Kind = "load-balancer"
	KindLBAttachment   Kind = "lb-attachment"
	KindLBBackend      Kind = "lb-backend"
	KindLBFrontend     Kind = "lb-frontend"

	KindPostgres         Kind = "postgres"
	KindPostgresDatabase Kind = "postgres-database"
	KindPostgresSecret   Kind = "postgres-secret"
	KindPostgresUser     Kind = "postgres-user"
	KindBucket           Kind = "bucket"
	KindRegistry         Kind = "registry"
	KindSecret           Kind = "secret"
	KindEdgeIP           Kind = "edge-ip"
	KindDNSRecord        Kind = "dns-record"

	// What an estate has without a step: its own bucket, and what the cluster's
	// cloud controller and storage driver made. They are only taken down.
	KindStore           Kind = "store"
	KindClusterBalancer Kind = "cluster-load-balancer"
	KindClusterVolume   Kind = "cluster-volume"
	KindClusterSnapshot Kind = "cluster-snapshot"

	KindMachine         Kind = "machine"
	KindEtcdBootstrap   Kind = "etcd-bootstrap"
	KindEtcdMembers     Kind = "etcd-members"
	KindKubernetesNodes Kind = "kubernetes-nodes"
)

// Cluster says whether a kind is a step of the cluster, not a cloud resource.
func (k Kind) Cluster() bool {
	switch k {
	case KindMachine, KindEtcdBootstrap, KindEtcdMembers, KindKubernetesNodes:
		return true
	}
	return false
}

// Step is one thing that must be true of the estate.
type Step struct {
	ID    string // kind/name, unique in the graph
	Kind  Kind
	Name  string // the name at Scaleway, or of the node
	Node  string // the node that it belongs to; empty for what the estate shares
	Needs []string
	Spec  Spec
}

// Mutability says what it takes to change an attribute of something live.
type Mutability int

// An attribute is fixed for life, changed in place, or may only grow.
const (
	Fixed Mutability = iota
	InPlace
	GrowOnly
)

// Attribute is one compared property, in a canonical text form.
type Attribute struct {
	Name    string
	Value   string
	Unknown string // why the value cannot be known before the run; empty when it can
	Mutable Mutability
	// Routine is bastide's own way and not the file's: a plan shows it only where
	// something live differs.
	Routine bool
}

// Graph is the whole estate. Steps are in an order in which each comes after
// all that it needs.
type Graph struct {
	Estate string
	Steps  []Step
	index  map[string]int
}

// Step finds a step by its ID.
func (g *Graph) Step(id string) (Step, bool) {
	i, ok := g.index[id]
	if !ok {
		return Step{}, false
	}
	return g.Steps[i], true
}

// Replace puts a step with the same ID in the old one's place.
func (g *Graph) Replace(s Step) { g.Steps[g.index[s.ID]] = s }

func (g *Graph) add(s Step) string {
	s.ID = string(s.Kind) + "/" + s.Name
	if g.index == nil {
		g.index = map[string]int{}
	}
	g.index[s.ID] = len(g.Steps)
	g.Steps = append(g.Steps, s)
	return s.ID
}

// Ownership marks. Every resource that can carry tags carries both; nothing
// that lacks the first is ever changed or deleted.
const (
	TagEstate = "bastide:estate="
	TagStep   = "bastide:step="
)

// TagMadeBy says who made something that bastide only marked, so that it is
// taken for no step: the cluster's storage driver.
const (
	TagMadeBy    = "bastide:made-by="
	MadeByDriver = "storage-driver"
)

// Tags are the ownership tags of a step's resource.
func Tags(estateName string, step Step) []string {
	return []string{TagEstate + estateName, TagStep + step.ID}
}
