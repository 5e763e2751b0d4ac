package scaleway

import (
	"context"
	"fmt"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/plan"
	"bastide/internal/vault"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// forPostgres bounds one change of a database instance: it is made in 3 minutes,
// and takes 6 for another node type.
const forPostgres = 30 * time.Minute

func (c *Cloud) listPostgres(ctx context.Context, tags []string) ([]*rdb.Instance, error) {
	return list(ctx, c, "database instances", func(v *rdb.Instance) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*rdb.Instance, uint64, error) {
		r, err := c.databases.ListInstances(&rdb.ListInstancesRequest{Region: c.region, ProjectID: &c.project, Tags: tags, Page: n, PageSize: size,
			OrderBy: rdb.ListInstancesRequestOrderByCreatedAtAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Instances, uint64(r.TotalCount), nil
	})
}

// alone makes changes of databases wait for each other: an instance refuses a
// change while it is busy with another one.
func (c *Cloud) alone(ctx context.Context) (release func(), err error) {
	select {
	case c.oneDatabase <- struct{}{}:
		return func() { <-c.oneDatabase }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// applyPostgres makes the instance with its one endpoint in the private network
// and brings it to what is wanted, one change at a time. The password that it is
// made with is thrown away: the step of its first user sets the one that is kept.
func (c *Cloud) applyPostgres(ctx context.Context, j job, want blueprint.Postgres) (plan.Observed, error) {
	network, err := j.id(want.Network)
	if err != nil {
		return plan.Observed{}, err
	}
	release, err := c.alone(ctx)
	if err != nil {
		return plan.Observed{}, err
	}
	defer release()
	thrownAway := vault.NewPassword()
	i, fresh, err := ensureNew(ctx, c, forPostgres,
		func(ctx context.Context) (*rdb.Instance, bool, error) {
			all, err := c.listPostgres(ctx, stepTag(j.step))
			var staying []*rdb.Instance
			for _, i := range all {
				if i.Status != rdb.InstanceStatusDeleting {
					staying = append(staying, i)
				}
			}
			return claimed(c, j.step, staying, err, func(v *rdb.Instance) []string { return v.Tags })
		},
		func(ctx context.Context) (*rdb.Instance, error) {
			return c.createPostgres(ctx, j, want, network, thrownAway)
		})
	if err != nil {
		return plan.Observed{}, err
	}
	if i, err = c.postgresAtRest(ctx, j.name(), i.ID, fresh, want); err != nil {
		return plan.Observed{}, err
	}
	if i, err = c.changePostgres(ctx, j, i, want, network); err != nil {
		return plan.Observed{}, err
	}
	return j.done(i.ID, "", string(i.Status), want), nil
}

func (c *Cloud) createPostgres(ctx context.Context, j job, want blueprint.Postgres, network string, password vault.Secret) (*rdb.Instance, error) {
	i, err := c.databases.CreateInstance(&rdb.CreateInstanceRequest{Region: c.region, ProjectID: &c.project, Name: want.Name, Tags: c.tags(j.step),
		Engine: want.Engine, NodeType: want.Type, IsHaCluster: want.HighAvailability, DisableBackup: want.Backup.Disabled,
		UserName: want.FirstUser, Password: password.Reveal(), VolumeType: volumeType(want.IOPS), VolumeSize: scw.Size(want.Size),
		InitEndpoints: []*rdb.EndpointSpec{privateEndpoint(network)}}, scw.WithContext(ctx))
	return i, withhold(err, password)
}

// privateEndpoint asks for an address of IPAM's choice: an address of one's own
// is in no route and in no DNS.
func privateEndpoint(network string) *rdb.EndpointSpec {
	return &rdb.EndpointSpec{PrivateNetwork: &rdb.EndpointSpecPrivateNetwork{PrivateNetworkID: network, IpamConfig: &rdb.EndpointSpecPrivateNetworkIpamConfig{}}}
}

func (c *Cloud) readPostgres(id string) func(context.Context) (*rdb.Instance, error) {
	return func(ctx context.Context) (*rdb.Instance, error) {
		return c.databases.GetInstance(&rdb.GetInstanceRequest{Region: c.region, InstanceID: id}, scw.WithContext(ctx))
	}
}

// postgresReady waits until the instance takes changes.
func (c *Cloud) postgresReady(ctx context.Context, name, id string) (*rdb.Instance, error) {
	return until(ctx, c, waiting{what: name, to: "become ready", limit: forPostgres}, c.readPostgres(id), postgresVerdict)
}

// postgresAtRest also ends with an instance whose volume is full when what is
// wanted is a larger one.
func (c *Cloud) postgresAtRest(ctx context.Context, name, id string, fresh bool, want blueprint.Postgres) (*rdb.Instance, error) {
	return until(ctx, c, waiting{what: name, to: "become ready", limit: forPostgres, fresh: fresh}, c.readPostgres(id), func(i *rdb.Instance) verdict {
		v := postgresVerdict(i)
		if cured(i, want) {
			v.done, v.failed = true, ""
		}
		return v
	})
}

// cured says that an instance has a full volume and is to get a larger one.
func cured(i *rdb.Instance, want blueprint.Postgres) bool {
	return i.Status == rdb.InstanceStatusDiskFull && estate.Size(sizeOf(i)) < want.Size
}

func postgresVerdict(i *rdb.Instance) verdict {
	v := verdict{done: i.Status == rdb.InstanceStatusReady, status: string(i.Status)}
	switch i.Status {
	case rdb.InstanceStatusError:
		v.failed = "Scaleway says that it is in error"
	case rdb.InstanceStatusLocked:
		v.failed = "Scaleway has locked it"
	case rdb.InstanceStatusDiskFull:
		v.failed = fmt.Sprintf("its volume of %s is full, so it takes no writes; a larger services.postgres.volume.size grows it", estate.Size(sizeOf(i)))
	}
	return v
}

func sizeOf(i *rdb.Instance) scw.Size {
	if i.Volume == nil {
		return 0
	}
	return i.Volume.Size
}

// volumeType is Scaleway's name for block storage of a speed.
func volumeType(iops int) rdb.VolumeType {
	if iops == 15000 {
		return rdb.VolumeTypeSbs15k
	}
	return rdb.VolumeTypeSbs5k
}

func iopsOfPostgres(i *rdb.Instance) int {
	if i.Volume == nil {
		return 0
	}
	switch i.Volume.Type {
	case rdb.VolumeTypeSbs5k:
		return 5000
	case rdb.VolumeTypeSbs15k:
		return 15000
	}
	return 0 // on the node's own disk
}

func backupOf(i *rdb.Instance) blueprint.BackupSchedule {
	b := i.BackupSchedule
	if b == nil || b.Disabled {
		return blueprint.BackupSchedule{Disabled: true}
	}
	return blueprint.BackupSchedule{EveryHours: int(b.Frequency), KeepDays: int(b.Retention)}
}

// within is the instance's endpoint in a private network, and outside are all
// others: public ones, and those in a network that is not the estate's.
func within(i *rdb.Instance, network string) (inside *rdb.Endpoint, outside []*rdb.Endpoint) {
	all := i.Endpoints
	if len(all) == 0 && i.Endpoint != nil {
		all = []*rdb.Endpoint{i.Endpoint}
	}
	for _, e := range all {
		switch {
		case e == nil:
		case e.PrivateNetwork != nil && e.PrivateNetwork.PrivateNetworkID == network:
			inside = e
		default:
			outside = append(outside, e)
		}
	}
	return inside, outside
}
