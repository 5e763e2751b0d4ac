package scaleway

import (
	"net/netip"
	"time"

	"bastide/internal/blueprint"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	instancev2 "github.com/scaleway/scaleway-sdk-go/api/instance/v2alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
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
	Second  bool           // another thing has the step that it claims: an older one, or of snapshots the one with the right content
	Doubt   string         // why nothing is made of a snapshot: its content is another one, or not known; empty when it is not doubted

	password     passwordState // of a database user
	kept         []int         // of a database user: versions of its password that can be read back
	at           netip.Addr    // a database instance's in the private network
	on           string        // the server of a volume or interface, the load balancer of a backend
	tags         []string      // of what the cluster made
	useless      bool          // a snapshot whose import failed: it stands for no step
	unmarked     bool          // it is the estate's by its node alone
	keepsAddress bool          // of a load balancer: its address was reserved by somebody
	left         leftover      // of what is on a database instance and the file does not name
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
	gone            map[string]bool     // what other things still point at and is deleted
	squatters       map[string]string   // step -> what without the mark has its place
	lost            map[string]lostMark // step -> what has it by all but the mark
	proven          map[string]string   // step of an image's file -> digest that its proof says
	closed          string              // status in which the database instance does not show what is on it
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
	allGateways []*vpcgw.Gateway // with those that do not carry the estate's mark
	attached    []*vpcgw.GatewayNetwork
	addresses   []*ipam.IP
	groups      []*instance.SecurityGroup
	rules       map[string][]*instance.SecurityGroupRule
	placements  []*instance.PlacementGroup
	volumes     []*block.Volume
	snapshots   []*block.Snapshot
	images      []*block.Snapshot // those with the estate's mark
	servers     []*instance.Server
	guests      map[string]bool // servers of others that use something of the estate
	gone        map[string]bool // what other things still point at and is deleted
	orphans     []*instancev2.PrivateNetworkInterfaceSummary
	balancers   []*lb.LB
	attachments map[string][]*lb.PrivateNetwork
	backends    map[string][]*lb.Backend
	frontends   map[string][]*lb.Frontend
	databases   []*postgresFound
	namesakes   []*rdb.Instance              // databases without the mark, with the name of the estate's instance
	passwords   map[string][]passwordVersion // secret -> versions
	foundServices
	remains *remains // only for a WholeInventory
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

func before(a, b Item) bool {
	if a.Created.Equal(b.Created) {
		return a.CloudID < b.CloudID
	}
	return a.Created.Before(b.Created)
}
