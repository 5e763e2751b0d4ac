package scaleway

import (
	"context"
	"slices"
	"sort"

	"bastide/internal/blueprint"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
)

// Inventory reads everything of the estate, one listing per kind of resource
// and all at the same time. Any listing that cannot be read to its end makes
// the whole an error with exit code 4, because unknown is not absent.
func (c *Cloud) Inventory(ctx context.Context) (*Inventory, error) {
	f, err := c.findAll(ctx)
	if err != nil {
		return nil, err
	}
	return c.interpret(f), nil
}

// findAll reads the listings, and then what they point at and do not show.
func (c *Cloud) findAll(ctx context.Context) (*found, error) {
	f, err := c.find(ctx)
	if err != nil {
		return nil, err
	}
	second := []func(context.Context, *found) error{c.findOrphans, c.findGuests}
	if err := together(ctx, len(second), func(ctx context.Context, i int) error { return second[i](ctx, f) }); err != nil {
		return nil, err
	}
	return f, c.findGone(ctx, f)
}

func (c *Cloud) find(ctx context.Context) (*found, error) {
	f := &found{}
	mark := []string{blueprint.TagEstate + c.estate.Name}
	readings := []func(context.Context) error{
		into(&f.vpcs, func(ctx context.Context) ([]*vpc.VPC, error) { return c.listVPCs(ctx, mark) }),
		// Networks, addresses, gateways and keys of others are read too: they can be in the way.
		into(&f.networks, func(ctx context.Context) ([]*vpc.PrivateNetwork, error) { return c.listNetworks(ctx, nil) }),
		into(&f.addresses, func(ctx context.Context) ([]*ipam.IP, error) { return c.listAddresses(ctx, nil, nil) }),
		func(ctx context.Context) (err error) {
			f.keys, err = c.listKeys(ctx)
			if forbidden(err) {
				f.noKeys, err = true, nil
			}
			return err
		},
		into(&f.gatewayIPs, func(ctx context.Context) ([]*vpcgw.IP, error) { return c.listGatewayIPs(ctx, nil) }),
		func(ctx context.Context) (err error) { return c.findGateways(ctx, f) },
		func(ctx context.Context) (err error) { return c.findGroups(ctx, f, mark) },
		into(&f.placements, func(ctx context.Context) ([]*instance.PlacementGroup, error) { return c.listPlacementGroups(ctx, mark) }),
		into(&f.volumes, func(ctx context.Context) ([]*block.Volume, error) { return c.listVolumes(ctx, mark) }),
		func(ctx context.Context) (err error) {
			switch name := c.estate.Talos.Snapshot; {
			case name == "":
				f.images, err = c.listImages(ctx, mark)
			case !uuid.MatchString(name):
				f.snapshots, err = c.snapshotsNamed(ctx, name)
			}
			return err
		},
		into(&f.servers, func(ctx context.Context) ([]*instance.Server, error) { return c.listServers(ctx, mark) }),
		func(ctx context.Context) (err error) { return c.findBalancers(ctx, f, mark) },
		f.optional("the project's managed databases", c.estate.Services.Postgres != nil, func(ctx context.Context) error { return c.findPostgres(ctx, f, mark) }),
	}
	readings = append(readings, c.findServices(f)...)
	err := together(ctx, len(readings), func(ctx context.Context, i int) error { return readings[i](ctx) })
	return f, err
}

func into[T any](place *T, read func(context.Context) (T, error)) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		*place, err = read(ctx)
		return err
	}
}

// findGateways reads all of the project's: one that has lost the mark is in the way.
func (c *Cloud) findGateways(ctx context.Context, f *found) error {
	all, err := c.listGateways(ctx, nil)
	var ids []string
	f.allGateways = all
	for _, g := range all {
		g.GatewayNetworks = slices.DeleteFunc(g.GatewayNetworks, func(n *vpcgw.GatewayNetwork) bool { return n == nil })
		if c.marked(g.Tags) {
			f.gateways = append(f.gateways, g)
			ids = append(ids, g.ID)
		}
	}
	if err != nil || len(ids) == 0 {
		return err
	}
	f.attached, err = c.listGatewayNetworks(ctx, ids)
	return err
}

func (c *Cloud) findGroups(ctx context.Context, f *found, mark []string) error {
	all, err := c.listSecurityGroups(ctx, mark)
	if err != nil {
		return err
	}
	for _, g := range all {
		if c.marked(g.Tags) {
			f.groups = append(f.groups, g)
		}
	}
	sort.SliceStable(f.groups, func(i, j int) bool { return moment(f.groups[i].CreationDate).Before(moment(f.groups[j].CreationDate)) })
	rules := make([][]*instance.SecurityGroupRule, len(f.groups))
	err = together(ctx, len(f.groups), func(ctx context.Context, i int) (err error) {
		rules[i], err = c.listRules(ctx, f.groups[i].ID)
		return err
	})
	f.rules = map[string][]*instance.SecurityGroupRule{}
	for i, g := range f.groups {
		f.rules[g.ID] = rules[i]
	}
	return err
}

func (c *Cloud) findBalancers(ctx context.Context, f *found, mark []string) error {
	all, err := c.listBalancers(ctx, mark)
	if err != nil {
		return err
	}
	for _, b := range all {
		if c.marked(b.Tags) {
			f.balancers = append(f.balancers, b)
		}
	}
	n := len(f.balancers)
	attachments, backends, frontends := make([][]*lb.PrivateNetwork, n), make([][]*lb.Backend, n), make([][]*lb.Frontend, n)
	err = together(ctx, 3*n, func(ctx context.Context, i int) (err error) {
		id := f.balancers[i/3].ID
		switch i % 3 {
		case 0:
			attachments[i/3], err = c.listAttachments(ctx, id)
		case 1:
			backends[i/3], err = c.listBackends(ctx, id)
		case 2:
			frontends[i/3], err = c.listFrontends(ctx, id)
		}
		if notFound(err) {
			err = nil // the load balancer was being deleted and is gone now
		}
		return err
	})
	f.attachments, f.backends, f.frontends = map[string][]*lb.PrivateNetwork{}, map[string][]*lb.Backend{}, map[string][]*lb.Frontend{}
	for i, b := range f.balancers {
		f.attachments[b.ID], f.backends[b.ID], f.frontends[b.ID] = attachments[i], backends[i], frontends[i]
	}
	return err
}
