package scaleway

import (
	"context"

	"bastide/internal/blueprint"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// applyNIC joins a server to the private network with its booked address. It
// is done while the server is stopped: then it is immediate, and the guest finds
// the interface when it boots.
func (c *Cloud) applyNIC(ctx context.Context, j job, want blueprint.PrivateNIC) (plan.Observed, error) {
	server, err1 := j.id(want.Server)
	network, err2 := j.id(want.Network)
	address, err3 := j.id(want.Address)
	if err := firstOf(err1, err2, err3); err != nil {
		return plan.Observed{}, err
	}
	nic, fresh, err := ensureNew(ctx, c, forNIC,
		func(ctx context.Context) (*instance.PrivateNIC, bool, error) { return c.findNIC(ctx, server, network) },
		func(ctx context.Context) (*instance.PrivateNIC, error) {
			r, err := c.instances.CreatePrivateNIC(&instance.CreatePrivateNICRequest{Zone: c.zone, ServerID: server, PrivateNetworkID: network,
				IpamIPIDs: []string{address}, Tags: c.tags(j.step)}, scw.WithContext(ctx))
			if err != nil {
				return nil, err
			}
			return given(r.PrivateNic)
		})
	if err != nil {
		return plan.Observed{}, err
	}
	nic, err = until(ctx, c, waiting{what: j.name(), to: "become available", limit: forNIC, fresh: fresh},
		func(ctx context.Context) (*instance.PrivateNIC, error) {
			r, err := c.instances.GetPrivateNIC(&instance.GetPrivateNICRequest{Zone: c.zone, ServerID: server, PrivateNicID: nic.ID}, scw.WithContext(ctx))
			if err != nil {
				return nil, err
			}
			return given(r.PrivateNic)
		}, nicVerdict)
	if err != nil {
		return plan.Observed{}, err
	}
	return j.done(nic.ID, string(c.zone), string(nic.State), want), nil
}

// findNIC looks inside the server: the listing of its interfaces lacks the
// total that would prove it complete.
func (c *Cloud) findNIC(ctx context.Context, server, network string) (*instance.PrivateNIC, bool, error) {
	s, err := c.readServer(server)(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, n := range s.PrivateNics {
		if n.PrivateNetworkID == network {
			return n, true, nil
		}
	}
	return nil, false, nil
}

func nicVerdict(n *instance.PrivateNIC) verdict {
	v := verdict{done: n.State == instance.PrivateNICStateAvailable, status: string(n.State)}
	if n.State == instance.PrivateNICStateSyncingError {
		v.failed = "Scaleway could not attach it"
	}
	return v
}

// nicSpec finds the interface's booked address among its addresses: IPv6 ones
// that nobody booked are there too.
func (r refs) nicSpec(n *instance.PrivateNIC, server string) blueprint.PrivateNIC {
	return blueprint.PrivateNIC{Server: r.step(server), Network: r.step(n.PrivateNetworkID), Address: r.booked(n.IpamIPIDs)}
}
