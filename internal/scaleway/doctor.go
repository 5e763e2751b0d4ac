package scaleway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	instancev2 "github.com/scaleway/scaleway-sdk-go/api/instance/v2alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// Check is one named question about a project, and its answer.
type Check struct {
	Name     string    // such as unused-volumes; names are never changed
	Findings []Finding // none: all is well
	Unread   string    // why it could not be answered; empty when it could
}

// Finding is one thing that a check found.
type Finding struct {
	What string // the thing, with its name, ID and zone
	Why  string // what is wrong with it
	Fix  string // the command or the act that puts it right
}

// Premises are a project as it was read for doctor: the estate, its neighbours
// and what nobody uses, in the estate's region and zone. Nothing in it is filtered by
// the estate's mark. What could not be read is noted, and no check draws a conclusion
// from it.
type Premises struct {
	Inventory *Inventory // nil when it could not be read

	cloud       *Cloud
	servers     []*instance.Server
	instanceIPs []*instance.IP
	groups      []*instance.SecurityGroup
	interfaces  []*instancev2.PrivateNetworkInterfaceSummary
	volumes     []*block.Volume
	snapshots   []*block.Snapshot
	vpcs        []*vpc.VPC
	networks    []*vpc.PrivateNetwork
	addresses   []*ipam.IP
	gateways    []*vpcgw.Gateway
	gatewayIPs  []*vpcgw.IP
	ports       []*vpcgw.PatRule
	balancers   []*lb.LB
	balancerIPs []*lb.IP
	unread      map[reading]string
}

// reading is one listing that checks lean on.
type reading string

const (
	readEstate      reading = "the estate"
	readServers     reading = "servers"
	readInstanceIPs reading = "flexible addresses"
	readGroups      reading = "security groups"
	readInterfaces  reading = "private interfaces"
	readVolumes     reading = "volumes"
	readSnapshots   reading = "snapshots"
	readVPCs        reading = "VPCs"
	readNetworks    reading = "private networks"
	readAddresses   reading = "private addresses"
	readGateways    reading = "gateways"
	readGatewayIPs  reading = "addresses of gateways"
	readPorts       reading = "port mappings of gateways"
	readBalancers   reading = "load balancers"
	readBalancerIPs reading = "addresses of load balancers"
)

// Examine reads the project. A listing that cannot be read does not end it: what
// the others show is worth knowing.
func (c *Cloud) Examine(ctx context.Context) (*Premises, error) {
	p := &Premises{cloud: c, unread: map[reading]string{}}
	var mu sync.Mutex
	readings := []struct {
		of   reading
		read func(context.Context) error
	}{
		{readEstate, into(&p.Inventory, c.WholeInventory)},
		{readServers, into(&p.servers, func(ctx context.Context) ([]*instance.Server, error) { return c.listServers(ctx, nil) })},
		{readInstanceIPs, into(&p.instanceIPs, c.listInstanceIPs)},
		{readGroups, into(&p.groups, func(ctx context.Context) ([]*instance.SecurityGroup, error) { return c.listSecurityGroups(ctx, nil) })},
		{readInterfaces, into(&p.interfaces, func(ctx context.Context) ([]*instancev2.PrivateNetworkInterfaceSummary, error) {
			return c.listInterfaces(ctx, nil)
		})},
		{readVolumes, into(&p.volumes, func(ctx context.Context) ([]*block.Volume, error) { return c.listVolumes(ctx, nil) })},
		{readSnapshots, into(&p.snapshots, func(ctx context.Context) ([]*block.Snapshot, error) { return c.listSnapshots(ctx, "") })},
		{readVPCs, into(&p.vpcs, func(ctx context.Context) ([]*vpc.VPC, error) { return c.listVPCs(ctx, nil) })},
		{readNetworks, into(&p.networks, func(ctx context.Context) ([]*vpc.PrivateNetwork, error) { return c.listNetworks(ctx, nil) })},
		{readAddresses, into(&p.addresses, func(ctx context.Context) ([]*ipam.IP, error) { return c.listAddresses(ctx, nil, nil) })},
		{readGateways, into(&p.gateways, func(ctx context.Context) ([]*vpcgw.Gateway, error) { return c.listGateways(ctx, nil) })},
		{readGatewayIPs, into(&p.gatewayIPs, func(ctx context.Context) ([]*vpcgw.IP, error) { return c.listGatewayIPs(ctx, nil) })},
		{readPorts, into(&p.ports, c.listPorts)},
		{readBalancers, into(&p.balancers, func(ctx context.Context) ([]*lb.LB, error) { return inZones(ctx, c, c.allBalancersIn) })},
		{readBalancerIPs, into(&p.balancerIPs, func(ctx context.Context) ([]*lb.IP, error) { return inZones(ctx, c, c.listBalancerIPsIn) })},
	}
	err := together(ctx, len(readings), func(ctx context.Context, i int) error {
		err := readings[i].read(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		p.unread[readings[i].of] = reasonOf(err)
		return nil
	})
	p.forgetLeaving()
	return p, err
}

// forgetLeaving leaves out what is on its way out: a deletion that takes a while
// is nothing to advise on, least of all to delete it.
func (p *Premises) forgetLeaving() {
	p.interfaces = slices.DeleteFunc(p.interfaces, func(v *instancev2.PrivateNetworkInterfaceSummary) bool { return isLeaving(string(v.Status)) })
	p.volumes = slices.DeleteFunc(p.volumes, func(v *block.Volume) bool { return isLeaving(string(v.Status)) })
	p.snapshots = slices.DeleteFunc(p.snapshots, func(v *block.Snapshot) bool { return isLeaving(string(v.Status)) })
	p.gateways = slices.DeleteFunc(p.gateways, func(v *vpcgw.Gateway) bool { return isLeaving(string(v.Status)) })
	p.balancers = slices.DeleteFunc(p.balancers, func(v *lb.LB) bool { return isLeaving(string(v.Status)) })
}

// reasonOf is an error in one sentence: what could not be read, and why.
func reasonOf(err error) string {
	var o *outcome.Error
	if errors.As(err, &o) {
		return o.What + ": " + o.Why
	}
	return err.Error()
}

// inZones reads a listing in every zone of the estate's region that has load
// balancers.
func inZones[T any](ctx context.Context, c *Cloud, read func(context.Context, scw.Zone) ([]T, error)) ([]T, error) {
	zones := c.balancerZones()
	all := make([][]T, len(zones))
	err := together(ctx, len(zones), func(ctx context.Context, i int) (err error) {
		all[i], err = read(ctx, zones[i])
		return err
	})
	return slices.Concat(all...), err
}

func (c *Cloud) balancerZones() []scw.Zone {
	var out []scw.Zone
	for _, z := range c.balancers.Zones() {
		if region, err := z.Region(); err == nil && region == c.region {
			out = append(out, z)
		}
	}
	if !slices.Contains(out, c.zone) {
		out = append(out, c.zone)
	}
	return out
}

func (c *Cloud) allBalancersIn(ctx context.Context, zone scw.Zone) ([]*lb.LB, error) {
	return c.listBalancersIn(ctx, zone, nil)
}

func (c *Cloud) listBalancerIPsIn(ctx context.Context, zone scw.Zone) ([]*lb.IP, error) {
	return list(ctx, c, "addresses of load balancers in "+string(zone), func(v *lb.IP) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*lb.IP, uint64, error) {
		r, err := c.balancers.ListIPs(&lb.ZonedAPIListIPsRequest{Zone: zone, ProjectID: &c.project, Page: n, PageSize: size}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.IPs, uint64(r.TotalCount), nil
	})
}

func (c *Cloud) listInstanceIPs(ctx context.Context) ([]*instance.IP, error) {
	return list(ctx, c, "flexible addresses in "+string(c.zone), func(v *instance.IP) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*instance.IP, uint64, error) {
		r, err := c.instances.ListIPs(&instance.ListIPsRequest{Zone: c.zone, Project: &c.project, Page: n, PerPage: size}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.IPs, uint64(r.TotalCount), nil
	})
}

func (c *Cloud) listPorts(ctx context.Context) ([]*vpcgw.PatRule, error) {
	return list(ctx, c, "port mappings of gateways in "+string(c.zone), func(v *vpcgw.PatRule) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*vpcgw.PatRule, uint64, error) {
		r, err := c.gateways.ListPatRules(&vpcgw.ListPatRulesRequest{Zone: c.zone, Page: n, PageSize: size}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.PatRules, r.TotalCount, nil
	})
}

// question is a check: what it leans on, and how it is answered from that.
type question struct {
	name  string
	needs []reading
	find  func(p *Premises, g *blueprint.Graph) []Finding
}

// Checks answers every question from what was read. g is what the file asks for.
// It makes no call.
func (p *Premises) Checks(g *blueprint.Graph) []Check {
	var out []Check
	for _, q := range slices.Concat(ownership, unused, traps) {
		c := Check{Name: q.name}
		for _, need := range q.needs {
			if c.Unread == "" {
				c.Unread = p.unread[need]
			}
		}
		if c.Unread == "" {
			c.Findings = q.find(p, g)
		}
		out = append(out, c)
	}
	return append(out, p.closed())
}

// closed is the check that everything could be read in which the estate can have
// something.
func (p *Premises) closed() Check {
	c := Check{Name: "closed-products", Unread: p.unread[readEstate]}
	if c.Unread == "" && len(p.Inventory.Unread) > 0 {
		c.Unread = "the API key may not read " + strings.Join(p.Inventory.Unread, ", ")
	}
	return c
}
