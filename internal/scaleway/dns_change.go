package scaleway

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/domain/v2beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

const forZone = 5 * time.Minute // pending 5 s after each change

// applyRecord brings the estate's records of one name to what is wanted, in one
// call that leaves all others alone.
func (c *Cloud) applyRecord(ctx context.Context, j job, want blueprint.DNSRecord) (plan.Observed, error) {
	if err := c.pointTo(j, &want); err != nil {
		return plan.Observed{}, err
	}
	zone := canonicalName(want.Zone)
	// Changes of one zone are made one after the other.
	c.zoneChange.Lock()
	defer c.zoneChange.Unlock()
	set, err := c.correctRecord(ctx, j.step.Name, zone, want)
	if err != nil {
		return plan.Observed{}, err
	}
	if err := c.zoneActive(ctx, zone); err != nil {
		return plan.Observed{}, err
	}
	want.Target = ""
	return j.done(set.own[0].ID, "", present, want), nil
}

// pointTo fills in the address of the record's target, which may have been made
// in this run.
func (c *Cloud) pointTo(j job, want *blueprint.DNSRecord) error {
	if len(want.Values) > 0 {
		return nil
	}
	o, _ := j.known.Get(want.Target)
	switch spec := o.Spec.(type) {
	case blueprint.EdgeIP:
		want.Values = []string{spec.Address.String()}
	case blueprint.Address:
		want.Values = []string{spec.Address.String()}
	default:
		return fmt.Errorf("%s is not made yet", want.Target)
	}
	return nil
}

// correctRecord makes the change and looks until it shows. After a lost answer
// it looks before it tries again.
func (c *Cloud) correctRecord(ctx context.Context, name, zone string, want blueprint.DNSRecord) (recordSet, error) {
	look := func(ctx context.Context) (recordSet, error) {
		all, err := c.listRecords(ctx, zone)
		if notFound(err) {
			return recordSet{}, outcome.Fail(fmt.Sprintf("the DNS record %s could not be set", name), noZone(zone), "then run the command again").Because(err)
		}
		return c.setOf(all, name, zone), err
	}
	for n := 1; ; n++ {
		set, err := look(ctx)
		if err != nil {
			return set, err
		}
		if set.other != nil {
			return set, outcome.Fail(fmt.Sprintf("the DNS record %s could not be set", name), recordStrange(set.other, name), "remove it, or choose another name in dns; then run the command again")
		}
		relative := strings.TrimSuffix(strings.TrimSuffix(name, zone), ".")
		changes := c.recordChanges(set.own, relative, want)
		if len(changes) == 0 {
			return set, nil
		}
		err = c.changeZone(ctx, zone, changes)
		// A change that was made and asked for again, because its answer was lost,
		// finds its record there, or the one that it replaced gone.
		if doubt := uncertain(err) || nameTaken(err) || notFound(err); err != nil && (!doubt || n == attempts) {
			return set, err
		}
		lag := forVisible
		if err != nil {
			lag = c.lag(err)
		}
		set, shown, lookErr := lookAgain(ctx, c, lag, func(ctx context.Context) (recordSet, bool, error) {
			set, err := look(ctx)
			return set, err == nil && set.other == nil && len(c.recordChanges(set.own, "", want)) == 0, err
		})
		switch {
		case lookErr != nil || shown:
			return set, lookErr
		case err != nil && !uncertain(err) && reflect.DeepEqual(changes, c.recordChanges(set.own, relative, want)):
			return set, err // it was not made, and asking again would be answered the same
		case err == nil && set.other != nil:
			return set, outcome.Fail(fmt.Sprintf("the DNS record %s is there without the estate's mark", name),
				"Scaleway did not keep the comment that it was made with", "write "+c.comment()+" into the record's comment in the Scaleway console; then run the command again")
		case err == nil:
			return set, outcome.Fail(fmt.Sprintf("the DNS record %s did not show within %s", name, forVisible), "the zone takes the change and does not show it", again)
		}
	}
}

// recordChanges is what turns the estate's records of a name into the wanted
// ones. Each names a record by its ID: naming them by their fields would take
// those of others along.
func (c *Cloud) recordChanges(own []*domain.Record, relative string, want blueprint.DNSRecord) []*domain.RecordChange {
	missing := slices.Clone(want.Values)
	var wrong []*domain.Record
	for _, r := range own {
		if i := slices.Index(missing, value(r)); i >= 0 && string(r.Type) == want.Type && int(r.TTL) == want.TTL {
			missing = slices.Delete(missing, i, i+1)
			continue
		}
		wrong = append(wrong, r)
	}
	var changes []*domain.RecordChange
	for _, v := range missing {
		record := []*domain.Record{{Name: relative, Type: domain.RecordType(want.Type), Data: v, TTL: uint32(want.TTL), Comment: scw.StringPtr(c.comment())}}
		if len(wrong) > 0 {
			changes = append(changes, &domain.RecordChange{Set: &domain.RecordChangeSet{ID: &wrong[0].ID, Records: record}})
			wrong = wrong[1:]
			continue
		}
		changes = append(changes, &domain.RecordChange{Add: &domain.RecordChangeAdd{Records: record}})
	}
	for _, r := range wrong {
		changes = append(changes, &domain.RecordChange{Delete: &domain.RecordChangeDelete{ID: &r.ID}})
	}
	return changes
}

// changeZone makes changes in a zone that exists. A zone that does not would
// otherwise be made on the way, and billed.
func (c *Cloud) changeZone(ctx context.Context, zone string, changes []*domain.RecordChange) error {
	return c.steady(ctx, forZone, func(ctx context.Context) error {
		_, err := c.domains.UpdateDNSZoneRecords(&domain.UpdateDNSZoneRecordsRequest{DNSZone: zone, Changes: changes,
			ReturnAllRecords: scw.BoolPtr(false), DisallowNewZoneCreation: true}, scw.WithContext(ctx))
		return err
	})
}

// zoneActive waits until the zone's servers have its changes.
func (c *Cloud) zoneActive(ctx context.Context, name string) error {
	_, err := until(ctx, c, waiting{what: "the DNS zone " + name, to: "become active", limit: forZone},
		func(ctx context.Context) (*domain.DNSZone, error) {
			r, err := c.domains.ListDNSZones(&domain.ListDNSZonesRequest{DNSZones: []string{name}}, scw.WithContext(ctx))
			if err != nil {
				return nil, err
			}
			for _, z := range r.DNSZones {
				if z != nil && zoneName(z) == name {
					return z, nil
				}
			}
			return nil, &scw.ResourceNotFoundError{Resource: "DNS zone", ResourceID: name}
		},
		func(z *domain.DNSZone) verdict {
			v := verdict{done: z.Status == domain.DNSZoneStatusActive, status: string(z.Status)}
			if z.Status == domain.DNSZoneStatusError || z.Status == domain.DNSZoneStatusLocked {
				v.failed = "its state is " + string(z.Status)
			}
			return v
		})
	return err
}

// removeRecord deletes the estate's records of one name and leaves the zone, and
// all else in it.
func (c *Cloud) removeRecord(ctx context.Context, it Item) error {
	c.zoneChange.Lock()
	defer c.zoneChange.Unlock()
	return c.gone(ctx, it, forZone,
		func() error {
			all, err := c.listRecords(ctx, it.on)
			if err != nil {
				return err
			}
			for _, r := range c.setOf(all, it.Name, it.on).own {
				err := c.changeZone(ctx, it.on, []*domain.RecordChange{{Delete: &domain.RecordChangeDelete{ID: &r.ID}}})
				if err != nil && !notFound(err) {
					return err
				}
			}
			return nil
		},
		func(ctx context.Context) error {
			all, err := c.listRecords(ctx, it.on)
			if err == nil && len(c.setOf(all, it.Name, it.on).own) == 0 {
				return &scw.ResourceNotFoundError{Resource: "DNS record", ResourceID: it.Name}
			}
			return err
		})
}
