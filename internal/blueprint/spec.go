package blueprint

import (
	"net/netip"
	"time"

	"bastide/internal/estate"
)

// Spec is what a step wants to be true, or what an observer found to be true:
// the same type serves for both, so that a plan is a comparison of values.
// References to other steps are step IDs on both sides.
type Spec interface {
	Kind() Kind
	// Attributes lists what is compared and printed, in a fixed order.
	Attributes() []Attribute
}

// VPC is the routing domain of the estate's private network.
type VPC struct{ Name string }

// PrivateNetwork is the layer 2 network that all nodes share.
type PrivateNetwork struct {
	Name string
	VPC  string
	CIDR netip.Prefix
}

// SSHKey is a public key of the project; the gateway's bastion accepts it.
type SSHKey struct {
	PublicKey string // type and blob; Scaleway strips the comment
	Disabled  bool   // nobody gets in with it; never wanted
}

// GatewayIP is the public gateway's own flexible address.
type GatewayIP struct {
	Zone string
	// Address is assigned by Scaleway; invalid in a desired spec.
	Address netip.Addr
}

// Gateway is the public gateway with its SSH bastion.
type Gateway struct {
	Name           string
	Zone           string
	Type           string
	IP             string // step
	BastionPort    int
	BastionAllowed []netip.Prefix
}

// Address is an IPAM booking in the private network. It is made before
// anything attaches, so that every address is known to certificates and rules.
type Address struct {
	Network string // step
	Address netip.Addr
}

// GatewayNetwork attaches the gateway to the private network.
type GatewayNetwork struct {
	Gateway, Network, Address string // steps
	NAT                       bool
	DefaultRoute              bool
}

// SecurityGroup filters the Instances' public interfaces. Nodes have none; the
// group is there so that one added by hand is born closed.
type SecurityGroup struct {
	Name            string
	Description     string
	Zone            string
	Stateful        bool
	InboundDefault  string // drop or accept
	OutboundDefault string
	BlocksMail      bool // Scaleway's own rules against outgoing mail are in force
	Rules           []Rule
}

// Rule is one security group rule.
type Rule struct {
	Action, Protocol, Direction string
	Range                       netip.Prefix
	PortFrom, PortTo            int // 0 for protocols without ports
}

// PlacementGroup spreads Instances over hypervisors.
type PlacementGroup struct {
	Name   string
	Zone   string
	Policy string // max_availability
	Mode   string // optional or enforced
}

// Volume is a block storage volume.
type Volume struct {
	Name     string
	Zone     string
	Size     estate.Size
	IOPS     int
	Snapshot string // name or UUID of the snapshot that it is made from; empty for a blank volume
	Image    string // step of the snapshot that bastide makes for it; once made, a volume does not depend on it
}

// Server is an Instance, created stopped and without any public address.
type Server struct {
	Name           string
	Zone           string
	Type           string
	Volumes        []string // steps; the first one boots
	SecurityGroup  string   // step
	PlacementGroup string   // step
	PublicIPs      int      // attached public addresses; none are wanted
	DynamicIP      bool     // it gets a public address whenever it starts; never wanted
}

// PrivateNIC is the Instance's only network interface.
type PrivateNIC struct {
	Server, Network, Address string // steps
}

// Power is whether an Instance runs.
type Power struct {
	Server string // step
	State  string // running, stopped
}

// LoadBalancer is the private load balancer of the Kubernetes API.
type LoadBalancer struct {
	Name        string
	Description string
	Zone        string
	Type        string
	Private     bool
	TLS         string // the oldest TLS that it would speak, in Scaleway's words
}

// LBAttachment is the load balancer's leg in the private network.
type LBAttachment struct{ LoadBalancer, Network, Address string }

// LBBackend is the set of API servers behind the load balancer.
type LBBackend struct {
	LoadBalancer string // step
	Name         string
	Port         int
	Servers      []netip.Addr
	Forwarding   string // see ForwardingText
	Timeouts     string // see TimeoutsText
	Check        string // see CheckText
}

// LBFrontend is the listening side of the load balancer.
type LBFrontend struct {
	LoadBalancer, Backend string // steps
	Name                  string
	Port                  int
	Idle                  time.Duration // after which a silent client is cut off
}

// Machine is a node's Talos machine configuration.
type Machine struct {
	Node string
	Role estate.Role
	// Digest stands for the configuration's canonical bytes, which are secret.
	// Empty while the configuration cannot be rendered; Pending then says why.
	Digest  string
	Pending string
}

// EtcdBootstrap is the one Bootstrap that a cluster ever gets.
type EtcdBootstrap struct{ Done bool }

// EtcdMembers is etcd's membership once every control plane node is a voter.
type EtcdMembers struct{ Voters []string } // node names, sorted

// KubernetesNodes are the nodes that Kubernetes knows and calls Ready.
type KubernetesNodes struct{ Ready []string } // node names, sorted

func (VPC) Kind() Kind             { return KindVPC }
func (PrivateNetwork) Kind() Kind  { return KindPrivateNetwork }
func (SSHKey) Kind() Kind          { return KindSSHKey }
func (GatewayIP) Kind() Kind       { return KindGatewayIP }
func (Gateway) Kind() Kind         { return KindGateway }
func (Address) Kind() Kind         { return KindAddress }
func (GatewayNetwork) Kind() Kind  { return KindGatewayNetwork }
func (SecurityGroup) Kind() Kind   { return KindSecurityGroup }
func (PlacementGroup) Kind() Kind  { return KindPlacementGroup }
func (Volume) Kind() Kind          { return KindVolume }
func (Server) Kind() Kind          { return KindServer }
func (PrivateNIC) Kind() Kind      { return KindPrivateNIC }
func (Power) Kind() Kind           { return KindPower }
func (LoadBalancer) Kind() Kind    { return KindLoadBalancer }
func (LBAttachment) Kind() Kind    { return KindLBAttachment }
func (LBBackend) Kind() Kind       { return KindLBBackend }
func (LBFrontend) Kind() Kind      { return KindLBFrontend }
func (Machine) Kind() Kind         { return KindMachine }
func (EtcdBootstrap) Kind() Kind   { return KindEtcdBootstrap }
func (EtcdMembers) Kind() Kind     { return KindEtcdMembers }
func (KubernetesNodes) Kind() Kind { return KindKubernetesNodes }
