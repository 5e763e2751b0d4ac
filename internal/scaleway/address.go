package scaleway

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// listAddresses lists IPv4 addresses that IPAM knows: of one private network, or
// of the project in the region when none is named.
func (c *Cloud) listAddresses(ctx context.Context, network *string, tags []string) ([]*ipam.IP, error) {
	return list(ctx, c, "addresses in IPAM", func(v *ipam.IP) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*ipam.IP, uint64, error) {
		r, err := c.ipam.ListIPs(&ipam.ListIPsRequest{Region: c.region, ProjectID: &c.project, PrivateNetworkID: network, Tags: tags, IsIPv6: scw.BoolPtr(false),
			Page: n, PageSize: size, OrderBy: ipam.ListIPsRequestOrderByCreatedAtAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.IPs, r.TotalCount, nil
	})
}

// applyAddress books exactly the wanted address.
func (c *Cloud) applyAddress(ctx context.Context, j job, want blueprint.Address) (plan.Observed, error) {
	network, err := j.id(want.Network)
	if err != nil {
		return plan.Observed{}, err
	}
	ip, err := ensure(ctx, c, forFree,
		func(ctx context.Context) (*ipam.IP, bool, error) {
			all, err := c.listAddresses(ctx, &network, stepTag(j.step))
			return claimed(c, j.step, all, err, func(v *ipam.IP) []string { return v.Tags })
		},
		func(ctx context.Context) (*ipam.IP, error) {
			address := net.IP(want.Address.AsSlice())
			return c.ipam.BookIP(&ipam.BookIPRequest{Region: c.region, ProjectID: c.project, Source: &ipam.Source{PrivateNetworkID: &network},
				Address: &address, Tags: c.tags(j.step)}, scw.WithContext(ctx))
		})
	if err != nil {
		return plan.Observed{}, c.taken(ctx, network, want.Address, err)
	}
	if got := addressOf(ip); got != want.Address {
		return plan.Observed{}, outcome.Fail(fmt.Sprintf("the address %s could not be booked for %s", want.Address, j.step.Name),
			fmt.Sprintf("Scaleway booked %s for it", got), "run plan to see what is live")
	}
	return j.done(ip.ID, "", present, want), nil
}

// taken says who holds an address that could not be booked, if somebody does.
func (c *Cloud) taken(ctx context.Context, network string, address netip.Addr, cause error) error {
	all, err := c.listAddresses(ctx, &network, nil)
	if err != nil {
		return cause
	}
	for _, ip := range all {
		if addressOf(ip) == address {
			return outcome.Fail(fmt.Sprintf("the address %s could not be booked", address), "it is taken by "+holder(ip),
				"free it, or give the estate another network.cidr; nothing was attached to the network by this step").Because(cause)
		}
	}
	return cause
}

// holder names what has an address.
func holder(ip *ipam.IP) string {
	if ip.Resource == nil {
		return fmt.Sprintf("the booking %s", ip.ID)
	}
	name := ""
	if ip.Resource.Name != nil && *ip.Resource.Name != "" {
		name = " " + *ip.Resource.Name
	}
	return fmt.Sprintf("%s%s (%s)", ip.Resource.Type, name, ip.Resource.ID)
}

// addressOf is a booking's address; IPAM writes it with the network's mask.
func addressOf(ip *ipam.IP) netip.Addr {
	addr, _ := netip.AddrFromSlice(ip.Address.IP)
	return addr.Unmap()
}
