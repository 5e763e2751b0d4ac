package scaleway

import (
	"fmt"
	"net/netip"
	"sort"
	"strings"

	"bastide/internal/blueprint"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
)

// reader turns listings into items. Things are claimed kind by kind, so that a
// reference always points to something that was claimed before.
type reader struct {
	*Cloud
	f    *found
	inv  *Inventory
	refs refs
}

func (c *Cloud) interpret(f *found) *Inventory {
	inv := &Inventory{project: c.project, estate: c.estate.Name, keys: f.keys, keysUnreadable: f.noKeys, snapshots: f.snapshots,
		parents: map[string]string{}, holders: map[netip.Addr]string{}, gone: f.gone}
	if f.noKeys {
		inv.Warnings = append(inv.Warnings, "the API key may not read the project's SSH keys; the keys of admin.sshKeys are taken to be there")
		inv.Unread = append(inv.Unread, "the project's SSH keys")
	}
	r := &reader{c, f, inv, refs{}}
	r.networks()
	r.keys()
	r.gateways()
	r.addresses()
	r.groups()
	r.images()
	r.volumes()
	r.servers()
	r.balancers()
	r.services()
	r.postgres()
	r.leftovers()
	r.resolve()
	r.strangers()
	return inv
}

// add claims a thing that carries the estate's mark.
func (r *reader) add(it Item) {
	if it.Status == "" {
		it.Status = present
	}
	if it.Step != "" {
		r.refs[it.CloudID] = it.Step
	}
	r.inv.Items = append(r.inv.Items, it)
}

// stepOf reads the step that tags claim.
func stepOf(tags []string) string {
	for _, t := range tags {
		if step, ok := strings.CutPrefix(t, blueprint.TagStep); ok {
			return step
		}
	}
	return ""
}

func (r *reader) networks() {
	for _, v := range r.f.vpcs {
		if r.marked(v.Tags) {
			r.add(Item{Kind: blueprint.KindVPC, Step: stepOf(v.Tags), Name: v.Name, CloudID: v.ID, Settled: true, Created: moment(v.CreatedAt), Spec: blueprint.VPC{Name: v.Name}})
		}
	}
	for _, v := range r.f.networks {
		if r.marked(v.Tags) {
			r.add(Item{Kind: blueprint.KindPrivateNetwork, Step: stepOf(v.Tags), Name: v.Name, CloudID: v.ID, Settled: true, Created: moment(v.CreatedAt), Spec: r.refs.networkSpec(v)})
		}
	}
}

func (r *reader) gateways() {
	for _, v := range r.f.gatewayIPs {
		if r.marked(v.Tags) {
			addr, _ := netip.AddrFromSlice(v.Address)
			r.add(Item{Kind: blueprint.KindGatewayIP, Step: stepOf(v.Tags), Name: addr.Unmap().String(), CloudID: v.ID, Zone: string(v.Zone), Settled: true,
				Created: moment(v.CreatedAt), Spec: blueprint.GatewayIP{Zone: string(v.Zone), Address: addr.Unmap()}})
		}
	}
	r.lostGateway()
	for _, g := range r.f.gateways {
		it := Item{Kind: blueprint.KindGateway, Step: stepOf(g.Tags), Name: g.Name, CloudID: g.ID, Zone: string(g.Zone), Status: string(g.Status),
			Settled: g.Status == vpcgw.GatewayStatusRunning, Created: moment(g.CreatedAt), Spec: r.refs.gatewaySpec(g)}
		switch g.Status {
		case vpcgw.GatewayStatusFailed, vpcgw.GatewayStatusLocked, vpcgw.GatewayStatusStopped:
			it.Broken = fmt.Sprintf("Scaleway says that it is %s", g.Status)
		}
		r.add(it)
	}
}

// addresses come before what uses them, gateway networks after them.
func (r *reader) addresses() {
	for _, ip := range r.f.addresses {
		if r.marked(ip.Tags) {
			r.add(Item{Kind: blueprint.KindAddress, Step: stepOf(ip.Tags), Name: addressOf(ip).String(), CloudID: ip.ID, Settled: true,
				Created: moment(ip.CreatedAt), Spec: blueprint.Address{Network: r.refs.step(r.f.networkOf(ip)), Address: addressOf(ip)}})
		}
	}
	for _, n := range r.f.attached {
		gateway := r.refs[n.GatewayID]
		_, name, _ := strings.Cut(gateway, "/")
		it := Item{Kind: blueprint.KindGatewayNetwork, Name: name, CloudID: n.ID, Zone: string(n.Zone), Status: string(n.Status), on: n.GatewayID,
			Settled: n.Status == vpcgw.GatewayNetworkStatusReady, Created: moment(n.CreatedAt),
			Spec: blueprint.GatewayNetwork{Gateway: r.refs.step(n.GatewayID), Network: r.refs.step(n.PrivateNetworkID), Address: r.refs.step(n.IpamIPID),
				NAT: n.MasqueradeEnabled, DefaultRoute: n.PushDefaultRoute}}
		if _, ours := r.refs[n.PrivateNetworkID]; !ours || name == "" {
			r.stranger(fmt.Sprintf("the private network %s", n.PrivateNetworkID), fmt.Sprintf("it is attached to the estate's gateway %s", orText(name, n.GatewayID)))
			continue
		}
		it.Step = string(blueprint.KindGatewayNetwork) + "/" + name
		r.add(it)
	}
}

// networkOf is the ID of the network that a booking lies in. IPAM names the
// network's subnet.
func (f *found) networkOf(ip *ipam.IP) string {
	if ip.Source == nil {
		return ""
	}
	if ip.Source.PrivateNetworkID != nil {
		return *ip.Source.PrivateNetworkID
	}
	if ip.Source.SubnetID == nil {
		return ""
	}
	for _, n := range f.networks {
		for _, s := range n.Subnets {
			if s != nil && s.ID == *ip.Source.SubnetID {
				return n.ID
			}
		}
	}
	return *ip.Source.SubnetID
}

func (r *reader) volumes() {
	for _, v := range r.f.volumes {
		if !r.marked(v.Tags) || byDriver(v.Name, v.Tags, claimName) || v.Status == block.VolumeStatusDeleting || v.Status == block.VolumeStatusDeleted {
			continue
		}
		j := volumeVerdict(v)
		it := Item{Kind: blueprint.KindVolume, Step: stepOf(v.Tags), Name: v.Name, CloudID: v.ID, Zone: string(v.Zone), Status: string(v.Status),
			Settled: j.done, Broken: j.failed, Created: moment(v.CreatedAt), Spec: r.refs.volumeSpec(v)}
		if v.ParentSnapshotID != nil {
			r.inv.parents[v.ID] = *v.ParentSnapshotID
		}
		it.on = serverOf(v)
		r.add(it)
	}
}

// servers brings each server with its power and its interface.
func (r *reader) servers() {
	for _, s := range r.f.servers {
		if !r.marked(s.Tags) {
			continue
		}
		step := stepOf(s.Tags)
		_, name, _ := strings.Cut(step, "/")
		it := Item{Kind: blueprint.KindServer, Step: step, Name: s.Name, CloudID: s.ID, Zone: string(s.Zone), Status: string(s.State), Settled: true,
			Created: moment(s.CreationDate), Spec: r.refs.serverSpec(s)}
		r.add(it)
		for _, n := range s.PrivateNics {
			r.nic(n, s, name)
		}
		power := Item{Kind: blueprint.KindPower, Name: s.Name, CloudID: s.ID, Zone: string(s.Zone), Status: string(s.State), Created: it.Created, on: s.ID}
		if name != "" {
			power.Step = string(blueprint.KindPower) + "/" + name
		}
		var spec blueprint.Power
		spec, power.Settled, power.Broken = r.refs.powerSpec(s)
		power.Spec = spec
		r.inv.Items = append(r.inv.Items, power) // not add: the ID is the server's
	}
	for _, n := range r.f.orphans {
		r.add(Item{Kind: blueprint.KindPrivateNIC, Step: "", Name: n.MacAddress, CloudID: n.ID, Zone: string(n.Zone), Status: string(n.Status),
			Settled: true, Created: moment(n.CreatedAt), Spec: blueprint.PrivateNIC{Server: r.refs.step(n.ServerID), Network: r.refs.step(n.PrivateNetworkID)}})
	}
}

func (r *reader) nic(n *instance.PrivateNIC, s *instance.Server, name string) {
	v := nicVerdict(n)
	it := Item{Kind: blueprint.KindPrivateNIC, Name: s.Name, CloudID: n.ID, Zone: string(n.Zone), Status: string(n.State), Settled: v.done, Broken: v.failed,
		Created: moment(n.CreationDate), Spec: r.refs.nicSpec(n, s.ID), on: s.ID}
	if it.Zone == "" {
		it.Zone = string(s.Zone)
	}
	if _, ours := r.refs[n.PrivateNetworkID]; ours && name != "" {
		it.Step = string(blueprint.KindPrivateNIC) + "/" + name
	}
	r.add(it)
}

func (r *reader) balancers() {
	for _, b := range r.f.balancers {
		if has(b.Tags, tagCloudController) {
			continue // the cluster's, whatever mark its controller was told to add
		}
		v := balancerVerdict(b)
		step := stepOf(b.Tags)
		_, name, _ := strings.Cut(step, "/")
		r.add(Item{Kind: blueprint.KindLoadBalancer, Step: step, Name: b.Name, CloudID: b.ID, Zone: string(b.Zone), Status: string(b.Status),
			Settled: v.done, Broken: v.failed, Created: moment(b.CreatedAt), Spec: r.balancerSpec(b)})
		if name == "" || b.Status == lb.LBStatusToDelete || b.Status == lb.LBStatusDeleting {
			continue
		}
		r.balancing(b, name)
	}
}

// balancing brings what lies under a load balancer. What is there beside ours is
// shown as a stray: the estate's load balancer answers for it.
func (r *reader) balancing(b *lb.LB, name string) {
	for _, a := range r.f.attachments[b.ID] {
		if _, ours := r.refs[a.PrivateNetworkID]; !ours {
			r.stranger(fmt.Sprintf("the private network %s", a.PrivateNetworkID), fmt.Sprintf("it is attached to the estate's load balancer %s", b.Name))
			continue
		}
		v := attachmentVerdict(a)
		r.add(Item{Kind: blueprint.KindLBAttachment, Step: string(blueprint.KindLBAttachment) + "/" + name, Name: name, CloudID: attachmentID(b.ID, a.PrivateNetworkID),
			Zone: string(b.Zone), Status: string(a.Status), Settled: v.done, Broken: v.failed, Created: moment(a.CreatedAt), Spec: r.refs.attachmentSpec(a, b.ID), on: b.ID})
	}
	backends, frontends := r.f.backends[b.ID], r.f.frontends[b.ID]
	ours, _ := named(backends, name, backendName)
	for _, x := range backends {
		spec := backendSpec(x)
		spec.LoadBalancer = r.refs.step(b.ID)
		it := Item{Kind: blueprint.KindLBBackend, Name: x.Name, CloudID: x.ID, Zone: string(b.Zone), Settled: true, Created: moment(x.CreatedAt), Spec: spec, on: b.ID}
		if x == ours {
			it.Step = string(blueprint.KindLBBackend) + "/" + name
		}
		r.add(it)
	}
	first, _ := named(frontends, name, frontendName)
	for _, x := range frontends {
		spec := blueprint.LBFrontend{LoadBalancer: r.refs.step(b.ID), Name: x.Name, Port: int(x.InboundPort), Idle: length(x.TimeoutClient)}
		if x.Backend != nil {
			spec.Backend = r.refs.step(x.Backend.ID)
		}
		it := Item{Kind: blueprint.KindLBFrontend, Name: x.Name, CloudID: x.ID, Zone: string(b.Zone), Settled: true, Created: moment(x.CreatedAt), Spec: spec, on: b.ID}
		if x == first {
			it.Step = string(blueprint.KindLBFrontend) + "/" + name
		}
		r.add(it)
	}
}

// resolve lets the oldest of those that claim a step have it.
func (r *reader) resolve() {
	oldest := map[string]int{}
	for i, it := range r.inv.Items {
		if it.Step == "" {
			continue
		}
		j, taken := oldest[it.Step]
		if !taken || before(it, r.inv.Items[j]) {
			oldest[it.Step] = i
		}
	}
	for i := range r.inv.Items {
		it := &r.inv.Items[i]
		it.Second = it.Step != "" && oldest[it.Step] != i
	}
	rank := map[blueprint.Kind]int{}
	for i, k := range order {
		rank[k] = i
	}
	sort.SliceStable(r.inv.Items, func(i, j int) bool { return rank[r.inv.Items[i].Kind] < rank[r.inv.Items[j].Kind] })
}

// order is the order in which kinds are made.
var order = []blueprint.Kind{
	blueprint.KindVPC, blueprint.KindPrivateNetwork, blueprint.KindSSHKey, blueprint.KindGatewayIP, blueprint.KindGateway, blueprint.KindAddress,
	blueprint.KindGatewayNetwork, blueprint.KindSecurityGroup, blueprint.KindPlacementGroup, blueprint.KindSnapshot, blueprint.KindVolume, blueprint.KindServer,
	blueprint.KindPrivateNIC, blueprint.KindPower, blueprint.KindLoadBalancer, blueprint.KindLBAttachment, blueprint.KindLBBackend, blueprint.KindLBFrontend,
	blueprint.KindPostgres, blueprint.KindPostgresDatabase, blueprint.KindPostgresSecret, blueprint.KindPostgresUser, blueprint.KindBucket, blueprint.KindRegistry, blueprint.KindSecret,
	blueprint.KindEdgeIP, blueprint.KindDNSRecord, blueprint.KindStore,
	blueprint.KindClusterBalancer, blueprint.KindClusterVolume, blueprint.KindClusterSnapshot,
}
