package scaleway

import (
	"context"
	"fmt"
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
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// Delete removes one thing and returns when it is gone. What is gone already is
// no error, so that an interrupted run can be repeated.
func (c *Cloud) Delete(ctx context.Context, r Removal) error {
	if r.Claim {
		if err := c.claim(ctx, r.Item); err != nil && !notFound(err) {
			return c.failed(fmt.Sprintf("the %s %s (%s) could not be given the estate's mark", r.Item.Kind, r.Item.Name, r.Item.CloudID), err)
		}
		return nil
	}
	err := c.remove(ctx, r.Item)
	if err == nil || notFound(err) {
		return nil
	}
	return c.failed(fmt.Sprintf("the %s %s (%s) could not be deleted", r.Item.Kind, r.Item.Name, r.Item.CloudID), err)
}

func (c *Cloud) remove(ctx context.Context, it Item) error {
	zone, id, with := scw.Zone(it.Zone), it.CloudID, scw.WithContext(ctx)
	if zone == "" {
		zone = c.zone
	}
	switch it.Kind {
	case blueprint.KindServer:
		return c.removeServer(ctx, it)
	case blueprint.KindPrivateNIC:
		return c.removeInterface(ctx, it)
	case blueprint.KindVolume, blueprint.KindClusterVolume:
		return c.removeVolume(ctx, it)
	case blueprint.KindClusterSnapshot:
		return c.removeSnapshot(ctx, it)
	case blueprint.KindSnapshot:
		return c.removeImage(ctx, it)
	case blueprint.KindClusterBalancer:
		return c.removeControllerBalancer(ctx, it)
	case blueprint.KindLoadBalancer:
		return c.removeBalancer(ctx, it)
	case blueprint.KindPostgres:
		return c.removePostgres(ctx, it)
	case blueprint.KindPostgresSecret:
		return c.removeSecret(ctx, it)
	case blueprint.KindGatewayNetwork:
		return c.removeGatewayNetwork(ctx, it)
	case blueprint.KindGateway:
		return c.removeGateway(ctx, it)
	case blueprint.KindGatewayIP:
		return c.freed(ctx, func() error { return c.gateways.DeleteIP(&vpcgw.DeleteIPRequest{Zone: zone, IPID: id}, with) })
	case blueprint.KindAddress:
		return c.releaseAddress(ctx, it)
	case blueprint.KindPrivateNetwork:
		return c.freed(ctx, func() error {
			return c.vpc.DeletePrivateNetwork(&vpc.DeletePrivateNetworkRequest{Region: c.region, PrivateNetworkID: id}, with)
		})
	case blueprint.KindVPC:
		return c.freed(ctx, func() error { return c.vpc.DeleteVPC(&vpc.DeleteVPCRequest{Region: c.region, VpcID: id}, with) })
	case blueprint.KindSecurityGroup:
		return c.freed(ctx, func() error {
			return c.instances.DeleteSecurityGroup(&instance.DeleteSecurityGroupRequest{Zone: zone, SecurityGroupID: id}, with)
		})
	case blueprint.KindPlacementGroup:
		return c.freed(ctx, func() error {
			return c.instances.DeletePlacementGroup(&instance.DeletePlacementGroupRequest{Zone: zone, PlacementGroupID: id}, with)
		})
	case blueprint.KindSSHKey:
		return c.freed(ctx, func() error { return c.iam.DeleteSSHKey(&iam.DeleteSSHKeyRequest{SSHKeyID: id}, with) })
	}
	return c.removeService(ctx, it)
}

// freed deletes something as soon as nothing depends on it any more. What was
// deleted before may keep holding on for a while: a private network refuses, or
// answers with a server error, for some seconds after its last user is gone.
func (c *Cloud) freed(ctx context.Context, remove func() error) error {
	begun := time.Now()
	for {
		err := remove()
		waited := time.Since(begun)
		if err == nil || waited > forFree || !(inUse(err) || passing(err)) {
			return err
		}
		if ended := sleep(ctx, c.pace.next(waited)); ended != nil {
			return orLast(ended, err)
		}
	}
}

// removeServer stops a server and deletes it. Its volumes and booked addresses
// stay; each is removed by its own step.
func (c *Cloud) removeServer(ctx context.Context, it Item) error {
	if _, err := c.power(ctx, it.Name, it.CloudID, stopped); err != nil {
		return err
	}
	return c.gone(ctx, it, forServer,
		func() error {
			return c.instances.DeleteServer(&instance.DeleteServerRequest{Zone: scw.Zone(it.Zone), ServerID: it.CloudID}, scw.WithContext(ctx))
		},
		func(ctx context.Context) error { _, err := c.readServer(it.CloudID)(ctx); return err })
}

// removeVolume waits until the volume's server has let go of it.
func (c *Cloud) removeVolume(ctx context.Context, it Item) error {
	if _, err := until(ctx, c, waiting{what: "the volume " + it.Name, to: "be let go of", limit: forVolume}, c.readVolume(it.CloudID),
		func(v *block.Volume) verdict {
			return verdict{done: v.Status == block.VolumeStatusAvailable || v.Status == block.VolumeStatusError, status: string(v.Status)}
		}); err != nil {
		return err
	}
	return c.gone(ctx, it, forVolume,
		func() error {
			return c.blocks.DeleteVolume(&block.DeleteVolumeRequest{Zone: scw.Zone(it.Zone), VolumeID: it.CloudID}, scw.WithContext(ctx))
		},
		func(ctx context.Context) error { _, err := c.readVolume(it.CloudID)(ctx); return err })
}

// removeBalancer takes backends, frontends and attachments along.
func (c *Cloud) removeBalancer(ctx context.Context, it Item) error {
	return c.gone(ctx, it, forLB,
		func() error {
			return c.balancers.DeleteLB(&lb.ZonedAPIDeleteLBRequest{Zone: scw.Zone(it.Zone), LBID: it.CloudID, ReleaseIP: true}, scw.WithContext(ctx))
		},
		func(ctx context.Context) error { _, err := c.readBalancer(it.CloudID)(ctx); return err })
}

func (c *Cloud) removeGatewayNetwork(ctx context.Context, it Item) error {
	// A gateway that is itself being deleted takes its networks along.
	if _, err := until(ctx, c, waiting{what: "the gateway " + it.on, to: "come to rest", limit: forGateway}, c.readGateway(scw.Zone(it.Zone), it.on),
		func(g *vpcgw.Gateway) verdict {
			v := gatewayVerdict(g)
			v.done = v.done || g.Status == vpcgw.GatewayStatusFailed || g.Status == vpcgw.GatewayStatusStopped
			return v
		}); err != nil {
		return err
	}
	return c.gone(ctx, it, forGateway,
		func() error {
			_, err := c.gateways.DeleteGatewayNetwork(&vpcgw.DeleteGatewayNetworkRequest{Zone: scw.Zone(it.Zone), GatewayNetworkID: it.CloudID}, scw.WithContext(ctx))
			return err
		},
		func(ctx context.Context) error { _, err := c.readGatewayNetwork(it.CloudID)(ctx); return err })
}

// removeGateway leaves the gateway's address, which has a step of its own.
func (c *Cloud) removeGateway(ctx context.Context, it Item) error {
	return c.gone(ctx, it, forGateway,
		func() error {
			_, err := c.gateways.DeleteGateway(&vpcgw.DeleteGatewayRequest{Zone: scw.Zone(it.Zone), GatewayID: it.CloudID, DeleteIP: false}, scw.WithContext(ctx))
			return err
		},
		func(ctx context.Context) error {
			_, err := c.readGateway(scw.Zone(it.Zone), it.CloudID)(ctx)
			return err
		})
}

// releaseAddress waits until IPAM, which lags, no longer shows a user of the
// address: releasing one that is in use is refused.
func (c *Cloud) releaseAddress(ctx context.Context, it Item) error {
	if _, err := until(ctx, c, waiting{what: "the address " + it.Name, to: "be let go of", limit: forFree},
		func(ctx context.Context) (*ipam.IP, error) {
			return c.ipam.GetIP(&ipam.GetIPRequest{Region: c.region, IPID: it.CloudID}, scw.WithContext(ctx))
		},
		func(ip *ipam.IP) verdict {
			return verdict{done: ip.Resource == nil || ip.Resource.ID == "", status: "used by " + holder(ip)}
		}); err != nil {
		return err
	}
	return c.freed(ctx, func() error {
		return c.ipam.ReleaseIP(&ipam.ReleaseIPRequest{Region: c.region, IPID: it.CloudID}, scw.WithContext(ctx))
	})
}

// removeInterface removes an interface whose server is gone. The plain deletion
// is refused for one that still counts as attached; then it is detached first.
func (c *Cloud) removeInterface(ctx context.Context, it Item) error {
	zone, with := scw.Zone(it.Zone), scw.WithContext(ctx)
	return c.gone(ctx, it, forNIC,
		func() error {
			err := c.nics.DeletePrivateNetworkInterface(&instancev2.DeletePrivateNetworkInterfaceRequest{Zone: zone, PrivateNetworkInterfaceID: it.CloudID}, with)
			if err == nil || notFound(err) || !inUse(err) && statusOf(err) != 412 {
				return err
			}
			_, err = c.nics.DetachAndDeletePrivateNetworkInterface(&instancev2.DetachAndDeletePrivateNetworkInterfaceRequest{Zone: zone, PrivateNetworkInterfaceID: it.CloudID}, with)
			return err
		},
		func(ctx context.Context) error {
			_, err := c.nics.GetPrivateNetworkInterface(&instancev2.GetPrivateNetworkInterfaceRequest{Zone: zone, PrivateNetworkInterfaceID: it.CloudID}, with)
			return err
		})
}

// gone deletes something and waits until it cannot be found any more. A thing
// that is already being deleted may refuse a second deletion as busy; waiting
// is then all there is to do.
func (c *Cloud) gone(ctx context.Context, it Item, limit time.Duration, remove func() error, read func(context.Context) error) error {
	if err := c.freed(ctx, remove); err != nil {
		return err
	}
	_, err := until(ctx, c, waiting{what: fmt.Sprintf("the %s %s", it.Kind, it.Name), to: "disappear", limit: limit, gone: true},
		func(ctx context.Context) (struct{}, error) { return struct{}{}, read(ctx) },
		func(struct{}) verdict { return verdict{status: "still there"} })
	return err
}
