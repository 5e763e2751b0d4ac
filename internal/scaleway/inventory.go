package scaleway

import (
	"context"
	"net/netip"
	"sort"
	"time"

	"bastide/internal/blueprint"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	instancev2 "github.com/scaleway/scaleway-sdk-go/api/instance/v2alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
)

// present is the status of things that have none of their own.
const present = "present"

// foreign marks a reference to something that is not the estate's.
const foreign = "foreign:"

// Item is one thing at Scaleway that carries the estate's mark.
type Item struct {
	Kind    blueprint.Kind
	Step    string // the step that it claims; empty when its mark names none
	Name    string
	CloudID string
	Zone    string // empty for what is regional
	Status  string // the provider's word
	Settled bool
	Broken  string // why it can never become what is wanted
	Created time.Time
	Spec    blueprint.Spec // in the blueprint's terms
	Second  bool           // an older thing claims the same step

	password     passwordState // of a database user
	at           netip.Addr    // a database instance's in the private network
	on           string        // the server of a volume or interface, the load balancer of a backend
	tags         []string      // of what the cluster made
	unmarked     bool          // it is the estate's by its node alone
	keepsAddress bool          // of a load balancer: its address was reserved by somebody
}

// Foreign is something without the estate's mark that stands in the way of the
// estate: it would block a deletion, or holds an address.
type Foreign struct {
	What string // what it is, with its name or ID
	Why  string // how it is in the way
}

// Inventory is everything of the estate that was found at Scaleway, read
// completely at one time. Its methods interpret it and make no call.
type Inventory struct {
	Items      []Item // in the order in which things are made
	Foreign    []Foreign
	Lookalikes []Lookalike // only in a WholeInventory
	Warnings   []string
	// Unread names what this key may not read and the estate can live without, such
	// as "the project's SSH keys": what the estate has there is not known.
	Unread []string

	project, estate string
	keys            []*iam.SSHKey
	keysUnreadable  bool
	snapshots       []*block.Snapshot // those that the file's snapshot name means
	parents         map[string]string // volume -> snapshot that it was made from
	holders         map[netip.Addr]string
	gone            map[string]bool   // what other things still point at and is deleted
	squatters       map[string]string // step -> what without the mark has its place
	closed          string            // status in which the database instance does not show what is on it
}

// refs resolve what the API calls by ID to the steps that claim it.
type refs map[string]string

func (r refs) step(id string) string {
	if step, ok := r[id]; ok {
		return step
	}
	if id == "" {
		return ""
	}
	return foreign + id
}

// booked is the step of the booked address among those that something has, or
// else what stands for the first.
func (r refs) booked(ids []string) string {
	for _, id := range ids {
		if step, ok := r[id]; ok {
			return step
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return r.step(ids[0])
}

// found is what the listings gave.
type found struct {
	vpcs        []*vpc.VPC
	networks    []*vpc.PrivateNetwork
	keys        []*iam.SSHKey
	noKeys      bool
	gatewayIPs  []*vpcgw.IP
	gateways    []*vpcgw.Gateway
	attached    []*vpcgw.GatewayNetwork
	addresses   []*ipam.IP
	groups      []*instance.SecurityGroup
	rules       map[string][]*instance.SecurityGroupRule
	placements  []*instance.PlacementGroup
	volumes     []*block.Volume
	snapshots   []*block.Snapshot
	servers     []*instance.Server
	guests      map[string]bool // servers of others that use something of the estate
	gone        map[string]bool // what other things still point at and is deleted
	orphans     []*instancev2.PrivateNetworkInterfaceSummary
	balancers   []*lb.LB
	attachments map[string][]*lb.PrivateNetwork
	backends    map[string][]*lb.Backend
	frontends   map[string][]*lb.Frontend
	databases   []*postgresFound
	passwords   map[string][]passwordVersion // secret -> versions
	foundServices
	remains *remains // only for a WholeInventory
}

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
		// Networks, addresses and keys of others are read too: they can be in the way.
		into(&f.networks, func(ctx context.Context) ([]*vpc.PrivateNetwork, error) { return c.listNetworks(ctx, nil) }),
		into(&f.addresses, func(ctx context.Context) ([]*ipam.IP, error) { return c.listAddresses(ctx, nil, nil) }),
		func(ctx context.Context) (err error) {
			f.keys, err = c.listKeys(ctx)
			if forbidden(err) {
				f.noKeys, err = true, nil
			}
			return err
		},
		into(&f.gatewayIPs, func(ctx context.Context) ([]*vpcgw.IP, error) { return c.listGatewayIPs(ctx, mark) }),
		func(ctx context.Context) (err error) { return c.findGateways(ctx, f, mark) },
		func(ctx context.Context) (err error) { return c.findGroups(ctx, f, mark) },
		into(&f.placements, func(ctx context.Context) ([]*instance.PlacementGroup, error) { return c.listPlacementGroups(ctx, mark) }),
		into(&f.volumes, func(ctx context.Context) ([]*block.Volume, error) { return c.listVolumes(ctx, mark) }),
		func(ctx context.Context) (err error) {
			if name := c.estate.Talos.Snapshot; name != "" && !uuid.MatchString(name) {
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

func (c *Cloud) findGateways(ctx context.Context, f *found, mark []string) error {
	all, err := c.listGateways(ctx, mark)
	var ids []string
	for _, g := range all {
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

// Booked are the addresses that are booked for the estate, by the step that they
// are booked for: what blueprint.Build needs to leave live nodes where they are,
// and to tell what DNS records point to.
func (inv *Inventory) Booked() map[string]netip.Addr {
	out := map[string]netip.Addr{}
	for _, it := range inv.Items {
		if it.at.IsValid() { // an address without a booking of its own: nobody else can have it
			out[string(blueprint.KindAddress)+"/"+it.CloudID] = it.at
		}
		if it.Step == "" || it.Second {
			continue
		}
		switch spec := it.Spec.(type) {
		case blueprint.Address:
			out[it.Step] = spec.Address
		case blueprint.EdgeIP:
			out[it.Step] = spec.Address
		}
	}
	return out
}

// Gateway is the estate's public gateway: its ID, zone and public address. The
// address is invalid when there is none yet.
func (inv *Inventory) Gateway() (id, zone string, address netip.Addr) {
	for _, it := range inv.Items {
		switch spec := it.Spec.(type) {
		case blueprint.GatewayIP:
			if !it.Second {
				address = spec.Address
			}
		case blueprint.Gateway:
			if !it.Second {
				id, zone = it.CloudID, it.Zone
			}
		}
	}
	return id, zone, address
}

// GatewayIP is the gateway's public address; invalid when there is none yet.
func (inv *Inventory) GatewayIP() netip.Addr {
	_, _, address := inv.Gateway()
	return address
}

// HasServers says whether any node of the estate exists, running or not.
func (inv *Inventory) HasServers() bool {
	for _, it := range inv.Items {
		if it.Kind == blueprint.KindServer {
			return true
		}
	}
	return false
}

// Empty says whether nothing of the estate is left at Scaleway.
func (inv *Inventory) Empty() bool { return len(inv.Items) == 0 }

func moment(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
