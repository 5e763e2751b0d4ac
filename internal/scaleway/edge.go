package scaleway

import (
	"context"
	"fmt"
	"net/netip"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

func (c *Cloud) listEdgeIPs(ctx context.Context, tags []string) ([]*lb.IP, error) {
	return list(ctx, c, "addresses of load balancers", func(v *lb.IP) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*lb.IP, uint64, error) {
		r, err := c.balancers.ListIPs(&lb.ZonedAPIListIPsRequest{Zone: c.zone, ProjectID: &c.project, Tags: tags, Page: n, PageSize: size}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.IPs, uint64(r.TotalCount), nil
	})
}

// applyEdgeIP reserves an address of the load balancers' own family: one of
// another product cannot be bound to a load balancer.
func (c *Cloud) applyEdgeIP(ctx context.Context, j job, want blueprint.EdgeIP) (plan.Observed, error) {
	ip, err := ensure(ctx, c, forFree,
		func(ctx context.Context) (*lb.IP, bool, error) {
			all, err := c.listEdgeIPs(ctx, stepTag(j.step))
			return claimed(c, j.step, all, err, func(v *lb.IP) []string { return v.Tags })
		},
		func(ctx context.Context) (*lb.IP, error) {
			return c.balancers.CreateIP(&lb.ZonedAPICreateIPRequest{Zone: c.zone, ProjectID: &c.project, Tags: c.tags(j.step), IsIPv6: false}, scw.WithContext(ctx))
		})
	if err != nil {
		return plan.Observed{}, err
	}
	if want.Address = edgeAddress(ip); !want.Address.IsValid() {
		return plan.Observed{}, outcome.Fail(j.name()+" has no IPv4 address", fmt.Sprintf("Scaleway gave it %q", ip.IPAddress), "release it in the Scaleway console; then run the command again")
	}
	return j.done(ip.ID, want.Zone, present, want), nil
}

func edgeAddress(ip *lb.IP) netip.Addr {
	a, err := netip.ParseAddr(ip.IPAddress)
	if err != nil || !a.Is4() {
		return netip.Addr{}
	}
	return a
}

func (r *reader) edgeIPs() {
	for _, ip := range r.f.edgeIPs {
		if !r.marked(ip.Tags) {
			continue
		}
		it := Item{Kind: blueprint.KindEdgeIP, Step: stepOf(ip.Tags), Name: ip.IPAddress, CloudID: ip.ID, Zone: string(ip.Zone), Settled: true,
			Spec: blueprint.EdgeIP{Zone: string(ip.Zone), Address: edgeAddress(ip)}}
		if ip.LBID != nil && *ip.LBID != "" {
			it.Status, it.on = "used by the load balancer "+*ip.LBID, *ip.LBID
		}
		r.add(it)
	}
}

// releaseEdgeIP waits until no load balancer has the address: releasing one that
// is in use is refused.
func (c *Cloud) releaseEdgeIP(ctx context.Context, it Item) error {
	zone := scw.Zone(it.Zone)
	if _, err := until(ctx, c, waiting{what: "the address " + it.Name, to: "be let go of", limit: forFree},
		func(ctx context.Context) (*lb.IP, error) {
			return c.balancers.GetIP(&lb.ZonedAPIGetIPRequest{Zone: zone, IPID: it.CloudID}, scw.WithContext(ctx))
		},
		func(ip *lb.IP) verdict {
			if ip.LBID == nil || *ip.LBID == "" {
				return verdict{done: true, status: present}
			}
			return verdict{status: "used by the load balancer " + *ip.LBID}
		}); err != nil {
		return err
	}
	return c.freed(ctx, func() error {
		return c.balancers.ReleaseIP(&lb.ZonedAPIReleaseIPRequest{Zone: zone, IPID: it.CloudID}, scw.WithContext(ctx))
	})
}
