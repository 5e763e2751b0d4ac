package scaleway

import (
	"context"
	"net"
	"net/netip"

	"bastide/internal/blueprint"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// listVPCs lists VPCs of the project that have one of the tags.
func (c *Cloud) listVPCs(ctx context.Context, tags []string) ([]*vpc.VPC, error) {
	return list(ctx, c, "VPCs", func(v *vpc.VPC) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*vpc.VPC, uint64, error) {
		r, err := c.vpc.ListVPCs(&vpc.ListVPCsRequest{Region: c.region, ProjectID: &c.project, Tags: tags, Page: n, PageSize: size,
			OrderBy: vpc.ListVPCsRequestOrderByCreatedAtAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Vpcs, uint64(r.TotalCount), nil
	})
}

// listNetworks lists the project's private networks; with tags, those that have
// one of them.
func (c *Cloud) listNetworks(ctx context.Context, tags []string) ([]*vpc.PrivateNetwork, error) {
	return list(ctx, c, "private networks", func(v *vpc.PrivateNetwork) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*vpc.PrivateNetwork, uint64, error) {
		r, err := c.vpc.ListPrivateNetworks(&vpc.ListPrivateNetworksRequest{Region: c.region, ProjectID: &c.project, Tags: tags, Page: n, PageSize: size,
			OrderBy: vpc.ListPrivateNetworksRequestOrderByCreatedAtAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.PrivateNetworks, uint64(r.TotalCount), nil
	})
}

func (c *Cloud) applyVPC(ctx context.Context, j job, want blueprint.VPC) (plan.Observed, error) {
	v, err := ensure(ctx, c, forFree,
		func(ctx context.Context) (*vpc.VPC, bool, error) {
			all, err := c.listVPCs(ctx, stepTag(j.step))
			return claimed(c, j.step, all, err, func(v *vpc.VPC) []string { return v.Tags })
		},
		func(ctx context.Context) (*vpc.VPC, error) {
			return c.vpc.CreateVPC(&vpc.CreateVPCRequest{Region: c.region, ProjectID: c.project, Name: want.Name, Tags: c.tags(j.step), EnableRouting: true}, scw.WithContext(ctx))
		})
	if err != nil {
		return plan.Observed{}, err
	}
	if v.Name != want.Name {
		if err := c.steady(ctx, forFree, func(ctx context.Context) error {
			_, err := c.vpc.UpdateVPC(&vpc.UpdateVPCRequest{Region: c.region, VpcID: v.ID, Name: &want.Name}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return plan.Observed{}, err
		}
	}
	return j.done(v.ID, "", present, want), nil
}

func (c *Cloud) applyNetwork(ctx context.Context, j job, want blueprint.PrivateNetwork) (plan.Observed, error) {
	vpcID, err := j.id(want.VPC)
	if err != nil {
		return plan.Observed{}, err
	}
	pn, err := ensure(ctx, c, forFree,
		func(ctx context.Context) (*vpc.PrivateNetwork, bool, error) {
			all, err := c.listNetworks(ctx, stepTag(j.step))
			return claimed(c, j.step, all, err, func(v *vpc.PrivateNetwork) []string { return v.Tags })
		},
		func(ctx context.Context) (*vpc.PrivateNetwork, error) {
			return c.vpc.CreatePrivateNetwork(&vpc.CreatePrivateNetworkRequest{Region: c.region, ProjectID: c.project, Name: j.step.Name,
				Tags: c.tags(j.step), VpcID: &vpcID, Subnets: []scw.IPNet{ipNet(want.CIDR)}}, scw.WithContext(ctx))
		})
	if err != nil {
		return plan.Observed{}, err
	}
	if pn.Name != want.Name {
		if err := c.steady(ctx, forFree, func(ctx context.Context) error {
			_, err := c.vpc.UpdatePrivateNetwork(&vpc.UpdatePrivateNetworkRequest{Region: c.region, PrivateNetworkID: pn.ID, Name: &want.Name}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return plan.Observed{}, err
		}
	}
	return j.done(pn.ID, "", present, want), nil
}

// networkSpec is a private network in the blueprint's terms. Its IPv4 range is
// the one that counts; Scaleway adds an IPv6 range of its own.
func (r refs) networkSpec(pn *vpc.PrivateNetwork) blueprint.PrivateNetwork {
	spec := blueprint.PrivateNetwork{Name: pn.Name, VPC: r.step(pn.VpcID)}
	for _, s := range pn.Subnets {
		if s == nil {
			continue
		}
		if p, ok := prefix(s.Subnet); ok && p.Addr().Is4() {
			spec.CIDR = p
			break
		}
	}
	return spec
}

// ipNet and prefix convert between the SDK's ranges and netip's.
func ipNet(p netip.Prefix) scw.IPNet {
	return scw.IPNet{IPNet: net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
}

func prefix(n scw.IPNet) (netip.Prefix, bool) {
	addr, ok := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(addr.Unmap(), ones), ok
}

// claimed finds the thing that carries a step's mark. Listings are read oldest
// first, and the oldest counts.
func claimed[T any](c *Cloud, s blueprint.Step, all []T, err error, tags func(T) []string) (T, bool, error) {
	var none T
	if err != nil {
		return none, false, err
	}
	for _, v := range all {
		if c.ours(tags(v), s) {
			return v, true, nil
		}
	}
	return none, false, nil
}
