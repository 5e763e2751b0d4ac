package scaleway

import (
	"context"
	"fmt"
	"net/netip"
	"sort"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

func (c *Cloud) listBalancers(ctx context.Context, tags []string) ([]*lb.LB, error) {
	return c.listBalancersIn(ctx, c.zone, tags)
}

func (c *Cloud) listBalancersIn(ctx context.Context, zone scw.Zone, tags []string) ([]*lb.LB, error) {
	return list(ctx, c, "load balancers", func(v *lb.LB) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*lb.LB, uint64, error) {
		r, err := c.balancers.ListLBs(&lb.ZonedAPIListLBsRequest{Zone: zone, ProjectID: &c.project, Tags: tags, Page: n, PageSize: size,
			OrderBy: lb.ListLBsRequestOrderByCreatedAtAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.LBs, uint64(r.TotalCount), nil
	})
}

func (c *Cloud) listAttachments(ctx context.Context, balancer string) ([]*lb.PrivateNetwork, error) {
	return c.listAttachmentsIn(ctx, c.zone, balancer)
}

func (c *Cloud) listAttachmentsIn(ctx context.Context, zone scw.Zone, balancer string) ([]*lb.PrivateNetwork, error) {
	return list(ctx, c, "networks of load balancer "+balancer, func(v *lb.PrivateNetwork) string { return v.PrivateNetworkID }, func(ctx context.Context, n *int32, size *uint32) ([]*lb.PrivateNetwork, uint64, error) {
		r, err := c.balancers.ListLBPrivateNetworks(&lb.ZonedAPIListLBPrivateNetworksRequest{Zone: zone, LBID: balancer, Page: n, PageSize: size,
			OrderBy: lb.ListPrivateNetworksRequestOrderByCreatedAtAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.PrivateNetwork, uint64(r.TotalCount), nil
	})
}

// applyBalancer makes a load balancer without a public address. That has to be
// said outright: an empty list of addresses still brings one.
func (c *Cloud) applyBalancer(ctx context.Context, j job, want blueprint.LoadBalancer) (plan.Observed, error) {
	b, fresh, err := ensureNew(ctx, c, forLB,
		func(ctx context.Context) (*lb.LB, bool, error) {
			all, err := c.listBalancers(ctx, stepTag(j.step))
			return claimed(c, j.step, all, err, func(v *lb.LB) []string { return v.Tags })
		},
		func(ctx context.Context) (*lb.LB, error) {
			return c.balancers.CreateLB(&lb.ZonedAPICreateLBRequest{Zone: c.zone, ProjectID: &c.project, Name: j.step.Name, Tags: c.tags(j.step),
				Description: want.Description, Type: want.Type, AssignFlexibleIP: scw.BoolPtr(!want.Private), AssignFlexibleIPv6: scw.BoolPtr(false),
				IPIDs: []string{}, SslCompatibilityLevel: lb.SSLCompatibilityLevel(want.TLS)}, scw.WithContext(ctx))
		})
	if err != nil {
		return plan.Observed{}, err
	}
	if b, err = c.balancerState(ctx, b.ID, fresh); err != nil {
		return plan.Observed{}, err
	}
	if want.Private && len(b.IP) > 0 {
		return plan.Observed{}, outcome.Fail(fmt.Sprintf("%s is not private", j.name()), fmt.Sprintf("it has the public address %s, which cannot be taken away while it lives", b.IP[0].IPAddress),
			"delete it in the Scaleway console; then run the command again")
	}
	if have := c.balancerSpec(b); have.Name != want.Name || have.Description != want.Description || have.TLS != want.TLS {
		// A load balancer's PUT resets what it does not name, so all is named.
		if err := c.onBalancer(ctx, b.ID, func(ctx context.Context) error {
			_, err := c.balancers.UpdateLB(&lb.ZonedAPIUpdateLBRequest{Zone: c.zone, LBID: b.ID, Name: want.Name, Description: want.Description, Tags: b.Tags,
				SslCompatibilityLevel: lb.SSLCompatibilityLevel(want.TLS)}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return plan.Observed{}, err
		}
	}
	return j.done(b.ID, want.Zone, string(b.Status), want), nil
}

func (c *Cloud) balancerReady(ctx context.Context, id string) (*lb.LB, error) {
	return c.balancerState(ctx, id, false)
}

func (c *Cloud) balancerState(ctx context.Context, id string, fresh bool) (*lb.LB, error) {
	return until(ctx, c, waiting{what: "the load balancer " + id, to: "become ready", limit: forLB, fresh: fresh}, c.readBalancer(id), balancerVerdict)
}

func (c *Cloud) readBalancer(id string) func(context.Context) (*lb.LB, error) {
	return func(ctx context.Context) (*lb.LB, error) {
		return c.balancers.GetLB(&lb.ZonedAPIGetLBRequest{Zone: c.zone, LBID: id}, scw.WithContext(ctx))
	}
}

func balancerVerdict(b *lb.LB) verdict {
	v := verdict{done: b.Status == lb.LBStatusReady, status: string(b.Status)}
	switch b.Status {
	case lb.LBStatusError:
		v.failed = "Scaleway says that it is in error"
	case lb.LBStatusLocked:
		v.failed = "Scaleway has locked it"
	case lb.LBStatusStopped:
		v.failed = "it is stopped"
	}
	return v
}

// applyAttachment gives the load balancer its leg in the private network, with
// the booked address: one that Scaleway picked would outlive the load balancer.
func (c *Cloud) applyAttachment(ctx context.Context, j job, want blueprint.LBAttachment) (plan.Observed, error) {
	balancer, err1 := j.id(want.LoadBalancer)
	network, err2 := j.id(want.Network)
	address, err3 := j.id(want.Address)
	if err := firstOf(err1, err2, err3); err != nil {
		return plan.Observed{}, err
	}
	find := func(ctx context.Context) (*lb.PrivateNetwork, bool, error) {
		all, err := c.listAttachments(ctx, balancer)
		for _, a := range all {
			if a.PrivateNetworkID == network {
				return a, true, err
			}
		}
		return nil, false, err
	}
	_, fresh, err := ensureNew(ctx, c, forLB, find, func(ctx context.Context) (*lb.PrivateNetwork, error) {
		if _, err := c.balancerReady(ctx, balancer); err != nil {
			return nil, err
		}
		return c.balancers.AttachPrivateNetwork(&lb.ZonedAPIAttachPrivateNetworkRequest{Zone: c.zone, LBID: balancer, PrivateNetworkID: network,
			IpamIDs: []string{address}}, scw.WithContext(ctx))
	})
	if err != nil {
		return plan.Observed{}, err
	}
	a, err := until(ctx, c, waiting{what: j.name(), to: "become ready", limit: forLB, fresh: fresh},
		func(ctx context.Context) (*lb.PrivateNetwork, error) {
			a, found, err := find(ctx)
			if err == nil && !found {
				err = errNoAttachment
			}
			return a, err
		}, attachmentVerdict)
	if err != nil {
		return plan.Observed{}, err
	}
	return j.done(attachmentID(balancer, network), string(c.zone), string(a.Status), want), nil
}

// errNoAttachment is a complete listing without the attachment.
var errNoAttachment = &scw.ResourceNotFoundError{Resource: "private network attachment"}

// attachmentID names an attachment, which has no ID of its own.
func attachmentID(balancer, network string) string { return balancer + "/" + network }

func attachmentVerdict(a *lb.PrivateNetwork) verdict {
	v := verdict{done: a.Status == lb.PrivateNetworkStatusReady, status: string(a.Status)}
	if a.Status == lb.PrivateNetworkStatusError {
		v.failed = "Scaleway could not attach it"
	}
	return v
}

// attachmentSpec takes the balancer's ID from outside: the listing's own copy of
// the balancer may be missing.
func (r refs) attachmentSpec(a *lb.PrivateNetwork, balancer string) blueprint.LBAttachment {
	return blueprint.LBAttachment{LoadBalancer: r.step(balancer), Network: r.step(a.PrivateNetworkID), Address: r.booked(a.IpamIDs)}
}

func (c *Cloud) balancerSpec(b *lb.LB) blueprint.LoadBalancer {
	return blueprint.LoadBalancer{Name: b.Name, Description: b.Description, Zone: string(b.Zone), Type: strings.ToUpper(b.Type), Private: len(b.IP) == 0, TLS: string(b.SslCompatibilityLevel)}
}

func addrsText(addrs []netip.Addr) []string {
	out := make([]string, 0, len(addrs))
	for _, a := range addrs {
		out = append(out, a.String())
	}
	sort.Strings(out)
	return out
}
