package scaleway

import (
	"context"
	"fmt"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/estate"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// alteration is one change of an instance: how to see that it is made, and how
// to ask for it.
type alteration struct {
	to   string // the rest of the sentence "the instance did not ..."
	made func(*rdb.Instance) bool
	ask  func(context.Context, *rdb.Instance) error
	cure bool // of a full volume, with which the instance takes no other change
}

// changePostgres makes what differs as wanted, one change after the other: the
// API takes one, and the instance is busy with it for up to minutes. A way in
// from outside is closed before anything else, except that a full volume has to
// grow before the instance takes any other change.
func (c *Cloud) changePostgres(ctx context.Context, j job, i *rdb.Instance, want blueprint.Postgres, network string) (*rdb.Instance, error) {
	changes := []alteration{c.outsideClosed(network), c.insideOpen(network), c.named(want), c.volumeKind(want), c.volumeGrown(want), c.nodeType(want), c.standby(want), c.backups(want), c.settings(want)}
	if i.Status == rdb.InstanceStatusDiskFull {
		changes = append([]alteration{c.volumeGrown(want)}, changes...)
	}
	for _, a := range changes {
		if a.made(i) {
			continue
		}
		var err error
		if i, err = c.alter(ctx, j.name(), i.ID, a); err != nil {
			return i, err
		}
	}
	return i, nil
}

// alter asks for a change when the instance rests without it, and asks again if
// it still does after any lag is over: a request whose answer was lost may or
// may not have been taken.
func (c *Cloud) alter(ctx context.Context, name, id string, a alteration) (*rdb.Instance, error) {
	var resend pacing
	return until(ctx, c, waiting{what: name, to: a.to, limit: forPostgres},
		func(ctx context.Context) (*rdb.Instance, error) {
			i, err := c.readPostgres(id)(ctx)
			if err != nil || a.made(i) || !a.takenBy(i) || !resend.due(c.pace.Settle) {
				return i, err
			}
			if err := a.ask(ctx, i); err != nil && !passing(err) {
				return i, c.overtaken(ctx, id, a, err)
			}
			return i, nil
		},
		func(i *rdb.Instance) verdict {
			v := postgresVerdict(i)
			if a.cure && i.Status == rdb.InstanceStatusDiskFull {
				v.failed = ""
			}
			v.done = v.done && a.made(i)
			return v
		})
}

// overtaken forgives a refusal when the change shows, or the instance works on
// one: the reading that led to the request was late.
func (c *Cloud) overtaken(ctx context.Context, id string, a alteration, refusal error) error {
	i, err := c.readPostgres(id)(ctx)
	if err == nil && (a.made(i) || !a.takenBy(i)) {
		return nil
	}
	return refusal
}

// takenBy says that an instance rests and takes the change.
func (a alteration) takenBy(i *rdb.Instance) bool {
	return i.Status == rdb.InstanceStatusReady || a.cure && i.Status == rdb.InstanceStatusDiskFull
}

// outsideClosed removes every endpoint outside the private network, whoever
// made it: a database that the internet reaches is never right.
func (c *Cloud) outsideClosed(network string) alteration {
	return alteration{"lose its endpoints outside the private network",
		func(i *rdb.Instance) bool { _, outside := within(i, network); return len(outside) == 0 },
		func(ctx context.Context, i *rdb.Instance) error {
			_, outside := within(i, network)
			if outside[0].ID == "" {
				return nil // still being made
			}
			err := c.databases.DeleteEndpoint(&rdb.DeleteEndpointRequest{Region: c.region, EndpointID: outside[0].ID}, scw.WithContext(ctx))
			if notFound(err) {
				return nil
			}
			return err
		}, false}
}

func (c *Cloud) insideOpen(network string) alteration {
	return alteration{"get its endpoint in the private network",
		func(i *rdb.Instance) bool { inside, _ := within(i, network); return inside != nil },
		func(ctx context.Context, i *rdb.Instance) error {
			_, err := c.databases.CreateEndpoint(&rdb.CreateEndpointRequest{Region: c.region, InstanceID: i.ID, EndpointSpec: privateEndpoint(network)}, scw.WithContext(ctx))
			return err
		}, false}
}

func (c *Cloud) named(want blueprint.Postgres) alteration {
	return alteration{"be named " + want.Name,
		func(i *rdb.Instance) bool { return i.Name == want.Name },
		func(ctx context.Context, i *rdb.Instance) error {
			_, err := c.databases.UpdateInstance(&rdb.UpdateInstanceRequest{Region: c.region, InstanceID: i.ID, Name: &want.Name}, scw.WithContext(ctx))
			return err
		}, false}
}

// upgrade asks for exactly one thing, as the API wants it.
func (c *Cloud) upgrade(ctx context.Context, req rdb.UpgradeInstanceRequest, id string) error {
	req.Region, req.InstanceID = c.region, id
	_, err := c.databases.UpgradeInstance(&req, scw.WithContext(ctx))
	return err
}

func (c *Cloud) volumeKind(want blueprint.Postgres) alteration {
	kind := volumeType(want.IOPS)
	return alteration{fmt.Sprintf("get a volume with %d IOPS", want.IOPS),
		func(i *rdb.Instance) bool { return iopsOfPostgres(i) == want.IOPS },
		func(ctx context.Context, i *rdb.Instance) error {
			return c.upgrade(ctx, rdb.UpgradeInstanceRequest{VolumeType: &kind}, i.ID)
		}, false}
}

func (c *Cloud) volumeGrown(want blueprint.Postgres) alteration {
	size := uint64(want.Size)
	return alteration{fmt.Sprintf("grow its volume to %s", want.Size),
		func(i *rdb.Instance) bool { return estate.Size(sizeOf(i)) >= want.Size },
		func(ctx context.Context, i *rdb.Instance) error {
			return c.upgrade(ctx, rdb.UpgradeInstanceRequest{VolumeSize: &size}, i.ID)
		}, true}
}

func (c *Cloud) nodeType(want blueprint.Postgres) alteration {
	name := strings.ToLower(want.Type)
	return alteration{"become a " + want.Type,
		func(i *rdb.Instance) bool { return strings.EqualFold(i.NodeType, want.Type) },
		func(ctx context.Context, i *rdb.Instance) error {
			return c.upgrade(ctx, rdb.UpgradeInstanceRequest{NodeType: &name}, i.ID)
		}, false}
}

// standby adds the second node; taking it away is refused by the plan.
func (c *Cloud) standby(want blueprint.Postgres) alteration {
	return alteration{"get its standby",
		func(i *rdb.Instance) bool { return highlyAvailable(i) || !want.HighAvailability },
		func(ctx context.Context, i *rdb.Instance) error {
			return c.upgrade(ctx, rdb.UpgradeInstanceRequest{EnableHa: scw.BoolPtr(true)}, i.ID)
		}, false}
}

func highlyAvailable(i *rdb.Instance) bool {
	return i.IsHaCluster || i.HighAvailabilityMode == rdb.HighAvailabilityModeSingleZone || i.HighAvailabilityMode == rdb.HighAvailabilityModeMultipleZone
}

func (c *Cloud) backups(want blueprint.Postgres) alteration {
	return alteration{"take its backup schedule",
		func(i *rdb.Instance) bool { return backupOf(i) == want.Backup },
		func(ctx context.Context, i *rdb.Instance) error {
			req := &rdb.UpdateInstanceRequest{Region: c.region, InstanceID: i.ID, IsBackupScheduleDisabled: &want.Backup.Disabled}
			if !want.Backup.Disabled {
				req.BackupScheduleFrequency = scw.Uint32Ptr(uint32(want.Backup.EveryHours))
				req.BackupScheduleRetention = scw.Uint32Ptr(uint32(want.Backup.KeepDays))
			}
			_, err := c.databases.UpdateInstance(req, scw.WithContext(ctx))
			return err
		}, false}
}

// settings adds and changes those that the file names. All others are the
// provider's, who sets some by the node's size.
func (c *Cloud) settings(want blueprint.Postgres) alteration {
	return alteration{"take its settings",
		func(i *rdb.Instance) bool { return len(unsettled(i, want.Settings)) == 0 },
		func(ctx context.Context, i *rdb.Instance) error {
			_, err := c.databases.AddInstanceSettings(&rdb.AddInstanceSettingsRequest{Region: c.region, InstanceID: i.ID,
				Settings: unsettled(i, want.Settings)}, scw.WithContext(ctx))
			return err
		}, false}
}
