package scaleway

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"bastide/internal/blueprint"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	instancev2 "github.com/scaleway/scaleway-sdk-go/api/instance/v2alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

func (r *reader) stranger(what, why string) {
	r.inv.Foreign = append(r.inv.Foreign, Foreign{what, why})
}

// strangers finds what is in the estate's way without carrying its mark.
func (r *reader) strangers() {
	for _, n := range r.f.networks {
		if _, ours := r.refs[n.VpcID]; ours && !r.marked(n.Tags) {
			r.stranger(fmt.Sprintf("the private network %s (%s)", n.Name, n.ID), "it lies in the estate's VPC")
		}
	}
	known := map[string]bool{} // everything that carries the mark
	for _, it := range r.inv.Items {
		known[it.CloudID] = true
	}
	for _, l := range r.inv.lost {
		known[l.id] = true // told for itself
	}
	for _, ip := range r.f.addresses {
		if _, ours := r.refs[r.f.networkOf(ip)]; !ours {
			continue
		}
		if r.holdsOurs(ip, known) || ip.Resource != nil && r.f.gone[ip.Resource.ID] {
			continue
		}
		r.inv.holders[addressOf(ip)] = holder(ip)
		r.stranger(holder(ip), fmt.Sprintf("it holds %s in the estate's private network", addressOf(ip)))
	}
	for _, g := range r.f.groups {
		for _, s := range g.Servers {
			if s != nil && r.f.guests[s.ID] {
				r.stranger(fmt.Sprintf("the server %s (%s)", s.Name, s.ID), fmt.Sprintf("it uses the estate's security group %s", g.Name))
			}
		}
	}
	for i := range r.inv.Items {
		it := &r.inv.Items[i]
		if it.Kind == blueprint.KindVolume && r.f.guests[it.on] {
			it.Broken = fmt.Sprintf("the server %s has it, which is not the estate's", it.on)
			r.stranger(fmt.Sprintf("the server %s", it.on), fmt.Sprintf("it uses the estate's volume %s", it.Name))
		}
	}
}

// findGuests looks for servers of others that use a volume or a group of the
// estate. A server that was just deleted stays in those references for some
// seconds, so each one that is not the estate's is asked for itself.
func (c *Cloud) findGuests(ctx context.Context, f *found) error {
	ours, unknown := map[string]bool{}, map[string]bool{}
	for _, s := range f.servers {
		ours[s.ID] = c.marked(s.Tags)
	}
	for _, v := range f.volumes {
		if id := serverOf(v); id != "" && !ours[id] && c.marked(v.Tags) {
			unknown[id] = true
		}
	}
	for _, g := range f.groups {
		for _, s := range g.Servers {
			if s != nil && !ours[s.ID] {
				unknown[s.ID] = true
			}
		}
	}
	var ids []string
	for id := range unknown {
		ids = append(ids, id)
	}
	exists, gone := make([]bool, len(ids)), make([]bool, len(ids))
	err := together(ctx, len(ids), func(ctx context.Context, i int) error {
		s, err := c.readServer(ids[i])(ctx)
		exists[i], gone[i] = err == nil && !c.marked(s.Tags), notFound(err)
		if err == nil || notFound(err) {
			return nil
		}
		return c.cannotTell(fmt.Sprintf("the server %s could not be read", ids[i]), err)
	})
	f.guests, f.gone = map[string]bool{}, map[string]bool{}
	for i, id := range ids {
		f.guests[id], f.gone[id] = exists[i], gone[i]
	}
	return err
}

// findGone asks for each load balancer and database that IPAM shows in one of the
// estate's networks and that no listing has: IPAM lags, and one that has just
// been deleted is in nobody's way.
func (c *Cloud) findGone(ctx context.Context, f *found) error {
	ours := map[string]bool{}
	for _, n := range f.networks {
		ours[n.ID] = c.marked(n.Tags)
	}
	var unknown []*ipam.IP
	for known, i := f.things(), 0; i < len(f.addresses); i++ {
		ip := f.addresses[i]
		if ip.Resource != nil && ip.Resource.ID != "" && !known[ip.Resource.ID] && ours[f.networkOf(ip)] && c.readHolder(ip) != nil {
			unknown = append(unknown, ip)
		}
	}
	gone := make([]bool, len(unknown))
	err := together(ctx, len(unknown), func(ctx context.Context, i int) error {
		err := c.readHolder(unknown[i])(ctx)
		gone[i] = notFound(err)
		if err == nil || gone[i] || forbidden(err) { // what may not be seen is taken to be there
			return nil
		}
		return c.cannotTell(fmt.Sprintf("%s could not be read", holder(unknown[i])), err)
	})
	for i, ip := range unknown {
		f.gone[ip.Resource.ID] = gone[i]
	}
	return err
}

// readHolder is how a holder of an address is asked for; nil for kinds that are
// looked for in another way, or not at all.
func (c *Cloud) readHolder(ip *ipam.IP) func(context.Context) error {
	switch ip.Resource.Type {
	case ipam.ResourceTypeLBServer:
		zone := c.zone
		if ip.Zone != nil && *ip.Zone != "" {
			zone = *ip.Zone
		}
		return func(ctx context.Context) error {
			_, err := c.balancers.GetLB(&lb.ZonedAPIGetLBRequest{Zone: zone, LBID: ip.Resource.ID}, scw.WithContext(ctx))
			return err
		}
	case ipam.ResourceTypeRdbInstance:
		return func(ctx context.Context) error { _, err := c.readPostgres(ip.Resource.ID)(ctx); return err }
	}
	return nil
}

// serverOf is the server that a volume is attached to.
func serverOf(v *block.Volume) string {
	for _, ref := range v.References {
		if ref != nil && ref.ProductResourceType == "instance_server" {
			return ref.ProductResourceID
		}
	}
	return ""
}

// holdsOurs says whether an address in the estate's network is held by the
// estate: booked by it and free, or attached to something of it.
func (r *reader) holdsOurs(ip *ipam.IP, known map[string]bool) bool {
	if ip.Resource == nil || ip.Resource.ID == "" {
		return r.marked(ip.Tags)
	}
	return known[ip.Resource.ID]
}

// findOrphans looks for interfaces whose server is gone. They are rare, keep the
// private network from being deleted and are in no server's listing: so they
// are asked for only when IPAM shows an interface that no server has.
func (c *Cloud) findOrphans(ctx context.Context, f *found) error {
	networks, err := c.unexplained(ctx, f)
	if err != nil || len(networks) == 0 {
		return err
	}
	all, err := c.listInterfaces(ctx, networks)
	if err != nil {
		return err
	}
	attached := f.things()
	for _, n := range all {
		if !attached[n.ID] && c.marked(n.Tags) {
			f.orphans = append(f.orphans, n)
		}
	}
	return nil
}

// unexplained lists the estate's networks in which IPAM shows an interface that
// no server of the estate has. IPAM lags behind the other products: while one of
// the estate's own bookings seems to be used by something unknown, it is read
// again until any lag is over.
func (c *Cloud) unexplained(ctx context.Context, f *found) ([]string, error) {
	ours := map[string]bool{}
	for _, n := range f.networks {
		ours[n.ID] = c.marked(n.Tags)
	}
	for begun := time.Now(); ; {
		known, lagging := f.things(), false
		var out []string
		for _, ip := range f.addresses {
			if ip.Resource == nil || ip.Resource.ID == "" || known[ip.Resource.ID] {
				continue
			}
			id := f.networkOf(ip)
			lagging = lagging || c.marked(ip.Tags)
			if ip.Resource.Type == ipam.ResourceTypeInstancePrivateNic && ours[id] && !has(out, id) {
				out = append(out, id)
			}
		}
		if !lagging || time.Since(begun) > c.pace.Settle {
			return out, nil
		}
		if err := sleep(ctx, max(c.pace.First, c.pace.Settle/5)); err != nil {
			return nil, err
		}
		addresses, err := c.listAddresses(ctx, nil, nil)
		if err != nil {
			return nil, err
		}
		f.addresses = addresses
	}
}

// things are the IDs of what can hold an address: interfaces of servers, load
// balancers, networks of gateways and databases.
func (f *found) things() map[string]bool {
	known := map[string]bool{}
	for _, s := range f.servers {
		for _, n := range s.PrivateNics {
			known[n.ID] = true
		}
	}
	for _, b := range f.balancers {
		known[b.ID] = true
	}
	for _, n := range f.attached {
		known[n.ID] = true
	}
	for _, g := range f.allGateways {
		for _, n := range g.GatewayNetworks {
			known[n.ID] = true
		}
	}
	for _, d := range f.databases {
		known[d.ID] = true
	}
	return known
}

// listInterfaces reads a listing that goes from token to token.
func (c *Cloud) listInterfaces(ctx context.Context, networks []string) ([]*instancev2.PrivateNetworkInterfaceSummary, error) {
	const what = "the interfaces of the private network could not be listed"
	var out []*instancev2.PrivateNetworkInterfaceSummary
	var token *string
	seen := map[string]bool{}
	for n := 1; ; n++ {
		ctx, _ := seeHeader(ctx)
		r, err := c.nics.ListPrivateNetworkInterfaces(&instancev2.ListPrivateNetworkInterfacesRequest{Zone: c.zone, ProjectID: c.project, PrivateNetworkIDs: networks,
			PageToken: token, PageSize: scw.Uint32Ptr(pageSize)}, scw.WithContext(ctx))
		if err != nil {
			return nil, c.cannotTell(what, err)
		}
		for _, v := range r.PrivateNetworkInterfaces {
			if v == nil || v.ID == "" || seen[v.ID] {
				return nil, c.cannotTell(what, errors.New("the listing has an entry without an ID, or one twice"))
			}
			seen[v.ID] = true
			out = append(out, v)
		}
		if n > mostPages {
			return nil, c.cannotTell(what, errors.New("the listing has no end"))
		}
		if token = r.NextPageToken; token != nil && *token != "" {
			continue
		}
		if int(r.TotalCount) > len(out) {
			return nil, c.cannotTell(what, fmt.Errorf("the listing says that there are %d and shows %d", r.TotalCount, len(out)))
		}
		return out, nil
	}
}

// heldBy says who holds an address in the estate's network that is not ours.
func (inv *Inventory) heldBy(addr netip.Addr) string { return inv.holders[addr] }
