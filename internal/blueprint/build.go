package blueprint

import (
	"net/netip"
	"sort"

	"bastide/internal/estate"
)

// BastionPort is where Scaleway's gateways listen for SSH by default.
const BastionPort = 61000

// APIPort is the Kubernetes API's port on nodes and load balancer.
const APIPort = 6443

// Build makes the graph of an estate. booked holds the addresses that are
// already booked at Scaleway, by address step ID: they are kept, so that a
// change of counts never moves a live node. sshKeys are the public keys, read
// from wherever the file points to.
func Build(e *estate.Estate, booked map[string]netip.Addr, sshKeys []string) (*Graph, error) {
	addresses, err := Assign(e, booked)
	if err != nil {
		return nil, err
	}
	b := &builder{e: e, g: &Graph{Estate: e.Name}, addresses: addresses, booked: booked, zone: e.Scaleway.Zones[0]}
	b.network()
	b.keys(sshKeys)
	b.gateway()
	b.groups()
	b.loadBalancer()
	b.image()
	b.services()
	for _, n := range e.Nodes() {
		b.node(n)
	}
	b.cluster()
	return b.g, nil
}

type builder struct {
	e         *estate.Estate
	g         *Graph
	addresses map[string]netip.Addr
	booked    map[string]netip.Addr
	zone      string

	network_, gatewayNetwork, securityGroup, frontend, snapshot string
	keyIDs                                                      []string
	placement                                                   map[string]string // pool -> step
	addressIDs                                                  []string
	powers, machines, controlMachines                           []string
}

func (b *builder) name(suffix string) string { return b.e.Name + "-" + suffix }

// madeBy is the description of what has one.
func (b *builder) madeBy() string { return "made by bastide for the estate " + b.e.Name }

func (b *builder) network() {
	vpc := b.g.add(Step{Kind: KindVPC, Name: b.e.Name, Spec: VPC{Name: b.e.Name}})
	b.network_ = b.g.add(Step{Kind: KindPrivateNetwork, Name: b.e.Name, Needs: []string{vpc},
		Spec: PrivateNetwork{Name: b.e.Name, VPC: vpc, CIDR: b.e.Network.CIDR.Prefix}})
}

// address books one address; the step is named after what will use it.
func (b *builder) address(name, node string) string {
	id := addressID(name)
	return b.g.add(Step{Kind: KindAddress, Name: name, Node: node, Needs: []string{b.network_},
		Spec: Address{Network: b.network_, Address: b.addresses[id]}})
}

func (b *builder) keys(keys []string) {
	sorted := append([]string(nil), keys...)
	sort.Strings(sorted)
	for _, k := range sorted {
		b.keyIDs = append(b.keyIDs, b.g.add(Step{Kind: KindSSHKey, Name: keyName(b.e.Name, k), Spec: SSHKey{PublicKey: k}}))
	}
}

func (b *builder) gateway() {
	ip := b.g.add(Step{Kind: KindGatewayIP, Name: GatewayName(b.e.Name), Spec: GatewayIP{Zone: b.zone}})
	// The bastion reads the project's keys when the gateway is made, so they come first.
	gw := b.g.add(Step{Kind: KindGateway, Name: GatewayName(b.e.Name), Needs: append([]string{ip}, b.keyIDs...), Spec: Gateway{
		Name: GatewayName(b.e.Name), Zone: b.zone, Type: b.e.Network.Gateway.Type, IP: ip, BastionPort: BastionPort, BastionAllowed: prefixes(b.e.Admin.CIDRs),
	}})
	address := b.address(GatewayName(b.e.Name), "")
	b.gatewayNetwork = b.g.add(Step{Kind: KindGatewayNetwork, Name: GatewayName(b.e.Name), Needs: []string{gw, b.network_, address},
		Spec: GatewayNetwork{Gateway: gw, Network: b.network_, Address: address, NAT: true, DefaultRoute: true}})
}

func (b *builder) groups() {
	b.securityGroup = b.g.add(Step{Kind: KindSecurityGroup, Name: b.name("nodes"), Spec: SecurityGroup{
		Name: b.name("nodes"), Description: b.madeBy(), Zone: b.zone, Stateful: true, InboundDefault: "drop", OutboundDefault: "accept", BlocksMail: true,
	}})
	b.placement = map[string]string{}
	pools := []string{estate.ControlPlanePool}
	for _, p := range b.e.Pools {
		pools = append(pools, p.Name)
	}
	for _, p := range pools {
		b.placement[p] = b.g.add(Step{Kind: KindPlacementGroup, Name: b.name(p), Spec: PlacementGroup{
			Name: b.name(p), Zone: b.zone, Policy: "max_availability", Mode: "optional",
		}})
	}
}

func (b *builder) loadBalancer() {
	var servers []netip.Addr
	var needs []string
	lbAddress := b.address(b.name("api"), "")
	for _, n := range b.e.Nodes() {
		if n.Role == estate.RoleControlPlane {
			id := b.address(n.Name, n.Name)
			b.addressIDs = append(b.addressIDs, id)
			servers = append(servers, b.addresses[id])
			needs = append(needs, id)
		}
	}
	lb := b.g.add(Step{Kind: KindLoadBalancer, Name: b.name("api"),
		Spec: LoadBalancer{Name: b.name("api"), Description: b.madeBy(), Zone: b.zone, Type: b.e.API.LoadBalancer, Private: true, TLS: OldestTLS}})
	attach := b.g.add(Step{Kind: KindLBAttachment, Name: b.name("api"), Needs: []string{lb, b.network_, lbAddress},
		Spec: LBAttachment{LoadBalancer: lb, Network: b.network_, Address: lbAddress}})
	backend := b.g.add(Step{Kind: KindLBBackend, Name: b.name("api"), Needs: append([]string{lb, attach}, needs...),
		Spec: LBBackend{LoadBalancer: lb, Name: b.name("api"), Port: APIPort, Servers: servers,
			Forwarding: ForwardingText(Protocol, Algorithm, Stickiness, ProxyProtocol, OnMarkedDown), Timeouts: TimeoutsText(IdleTimeout, DialTimeout, IdleTimeout),
			Check: CheckText(Protocol, APIPort, CheckDelay, CheckTimeout, CheckRetries)}})
	b.frontend = b.g.add(Step{Kind: KindLBFrontend, Name: b.name("api"), Needs: []string{backend},
		Spec: LBFrontend{LoadBalancer: lb, Backend: backend, Name: b.name("api"), Port: APIPort, Idle: IdleTimeout}})
}

func (b *builder) node(n estate.Node) {
	address := addressID(n.Name)
	if _, ok := b.g.Step(address); !ok {
		b.address(n.Name, n.Name)
	}
	volumes := []string{b.g.add(b.rootVolume(n))}
	if n.Ephemeral != nil {
		volumes = append(volumes, b.g.add(Step{Kind: KindVolume, Name: n.Name + "-ephemeral", Node: n.Name,
			Spec: Volume{Name: n.Name + "-ephemeral", Zone: n.Zone, Size: n.Ephemeral.Size, IOPS: n.Ephemeral.IOPS}}))
	}
	placement := b.placement[n.Pool]
	server := b.g.add(Step{Kind: KindServer, Name: n.Name, Node: n.Name,
		Needs: append([]string{b.securityGroup, placement}, volumes...),
		Spec:  Server{Name: n.Name, Zone: n.Zone, Type: n.Type, Volumes: volumes, SecurityGroup: b.securityGroup, PlacementGroup: placement}})
	nic := b.g.add(Step{Kind: KindPrivateNIC, Name: n.Name, Node: n.Name, Needs: []string{server, b.network_, address},
		Spec: PrivateNIC{Server: server, Network: b.network_, Address: address}})
	// A node that boots before its default route exists has no time, no DNS and
	// no images until the DHCP lease is renewed, which takes about a day.
	power := b.g.add(Step{Kind: KindPower, Name: n.Name, Node: n.Name, Needs: []string{nic, b.gatewayNetwork},
		Spec: Power{Server: server, State: "running"}})
	machine := b.g.add(Step{Kind: KindMachine, Name: n.Name, Node: n.Name, Needs: []string{power},
		Spec: Machine{Node: n.Name, Role: n.Role, Pending: "it holds the gateway's public address, which Scaleway assigns"}})
	b.machines = append(b.machines, machine)
	if n.Role == estate.RoleControlPlane {
		b.controlMachines = append(b.controlMachines, machine)
	}
}

func (b *builder) cluster() {
	var voters, all []string
	for _, n := range b.e.Nodes() {
		all = append(all, n.Name)
		if n.Role == estate.RoleControlPlane {
			voters = append(voters, n.Name)
		}
	}
	sort.Strings(voters)
	sort.Strings(all)
	// With discovery off the other control plane nodes find etcd through the
	// Kubernetes API at the load balancer, so its frontend must be there first.
	bootstrap := b.g.add(Step{Kind: KindEtcdBootstrap, Name: b.e.Name,
		Needs: append([]string{b.frontend}, b.controlMachines...), Spec: EtcdBootstrap{Done: true}})
	members := b.g.add(Step{Kind: KindEtcdMembers, Name: b.e.Name, Needs: []string{bootstrap}, Spec: EtcdMembers{Voters: voters}})
	b.g.add(Step{Kind: KindKubernetesNodes, Name: b.e.Name, Needs: append([]string{members}, b.machines...),
		Spec: KubernetesNodes{Ready: all}})
}

func prefixes(ps []estate.Prefix) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(ps))
	for _, p := range ps {
		out = append(out, p.Prefix)
	}
	return out
}
