package scaleway

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"bastide/internal/blueprint"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// tagCloudController is on every load balancer that Scaleway's cloud controller
// makes; it says nothing about which cluster it is of.
// (scaleway-cloud-controller-manager, scaleway/loadbalancers.go)
const tagCloudController = "managed-by-scaleway-cloud-controller-manager"

// The storage driver tags nothing. Its volumes have the name of their
// PersistentVolume, its snapshots that of their VolumeSnapshotContent, with an
// optional prefix before it. (scaleway-csi, pkg/driver/controller.go; the names
// are the defaults of external-provisioner and external-snapshotter)
var (
	claimName    = regexp.MustCompile(`(^|.-)pvc-[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`)
	snapshotName = regexp.MustCompile(`(^|.-)snapshot-[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`)
)

// Lookalike is something that may be the estate's and that nothing ties to it:
// it is named, and never changed or deleted.
type Lookalike struct {
	Kind blueprint.Kind
	Name string
	ID   string
	Zone string
	Why  string // why it may be the estate's, and why it does not count
}

// remains is what the project has of the kinds that a cluster makes by itself.
type remains struct {
	volumes   []*block.Volume
	snapshots []*block.Snapshot
	balancers []*lb.LB
	networks  map[string][]string // of a cloud controller's load balancer
}

// WholeInventory is Inventory with what the cluster's cloud controller and
// storage driver made, and with what looks like the estate's. It reads the
// listings of the whole project, so a command uses it that takes down or looks
// for what was forgotten, and not each plan.
func (c *Cloud) WholeInventory(ctx context.Context) (*Inventory, error) {
	var f *found
	r := &remains{networks: map[string][]string{}}
	readings := []func(context.Context) error{
		func(ctx context.Context) (err error) { f, err = c.findAll(ctx); return err },
		into(&r.volumes, func(ctx context.Context) ([]*block.Volume, error) { return c.listVolumes(ctx, nil) }),
		into(&r.snapshots, func(ctx context.Context) ([]*block.Snapshot, error) { return c.listSnapshots(ctx, "") }),
		func(ctx context.Context) error { return c.findControllerBalancers(ctx, r) },
	}
	if err := together(ctx, len(readings), func(ctx context.Context, i int) error { return readings[i](ctx) }); err != nil {
		return nil, err
	}
	f.remains = r
	return c.interpret(f), nil
}

// findControllerBalancers looks in every zone of the region: a service may ask
// for a load balancer in another zone than its nodes.
func (c *Cloud) findControllerBalancers(ctx context.Context, r *remains) error {
	var err error
	if r.balancers, err = inZones(ctx, c, c.allBalancersIn); err != nil {
		return err
	}
	made := slices.DeleteFunc(slices.Clone(r.balancers), func(b *lb.LB) bool { return !has(b.Tags, tagCloudController) })
	attached := make([][]*lb.PrivateNetwork, len(made))
	err = together(ctx, len(made), func(ctx context.Context, i int) (err error) {
		attached[i], err = c.listAttachmentsIn(ctx, made[i].Zone, made[i].ID)
		if notFound(err) {
			err = nil // it was being deleted and is gone now
		}
		return err
	})
	for i, b := range made {
		for _, n := range attached[i] {
			r.networks[b.ID] = append(r.networks[b.ID], n.PrivateNetworkID)
		}
	}
	return err
}

// leftovers brings what the cluster made and what only looks like it. Names are
// no proof: a load balancer is the cluster's when it is in the estate's network
// or carries its mark, a volume when a node has it or it carries the mark, which
// a teardown puts on it before its node goes.
func (r *reader) leftovers() {
	if r.f.remains == nil {
		return
	}
	ids := map[string]bool{}
	for _, it := range r.inv.Items {
		ids[it.CloudID] = true
	}
	r.controllerBalancers()
	r.clusterVolumes(ids)
	r.clusterSnapshots(ids)
}

func (r *reader) controllerBalancers() {
	for _, b := range r.f.remains.balancers {
		if !has(b.Tags, tagCloudController) {
			continue
		}
		tied := r.marked(b.Tags)
		networks := r.f.remains.networks[b.ID]
		for _, id := range networks {
			_, ours := r.refs[id]
			tied = tied || ours
		}
		for _, ip := range r.f.addresses { // one that is going has left its network, not yet its address
			_, ours := r.refs[r.f.networkOf(ip)]
			tied = tied || ours && ip.Resource != nil && ip.Resource.ID == b.ID
		}
		if !tied {
			if !isLeaving(string(b.Status)) && !r.inUseElsewhere(networks) {
				r.lookalike(blueprint.KindClusterBalancer, b.Name, b.ID, string(b.Zone), "a cloud controller made it, and it is in no private network that would say for which cluster")
			}
			continue
		}
		r.inv.Items = append(r.inv.Items, Item{Kind: blueprint.KindClusterBalancer, Name: b.Name, CloudID: b.ID, Zone: string(b.Zone), Status: string(b.Status),
			Settled: balancerVerdict(b).done, Created: moment(b.CreatedAt), keepsAddress: slices.ContainsFunc(b.IP, func(ip *lb.IP) bool { return ip != nil && len(ip.Tags) > 0 })})
	}
}

// inUseElsewhere says that one of the networks is somebody else's and exists.
func (r *reader) inUseElsewhere(networks []string) bool {
	for _, n := range r.f.networks {
		if has(networks, n.ID) && !r.marked(n.Tags) {
			return true
		}
	}
	return false
}

func (r *reader) clusterVolumes(known map[string]bool) {
	for _, v := range r.f.remains.volumes {
		if known[v.ID] || isLeaving(string(v.Status)) {
			continue
		}
		marked, on := r.marked(v.Tags), serverOf(v)
		switch {
		case !byDriver(v.Name, v.Tags, claimName):
			continue
		case marked && r.f.guests[on]: // not one that is going, which volumes name for some seconds more
			r.lookalike(blueprint.KindClusterVolume, v.Name, v.ID, string(v.Zone), fmt.Sprintf("it carries the estate's mark, and the server %s has it, which is not the estate's", on))
			continue
		case on == "" && !marked:
			r.lookalike(blueprint.KindClusterVolume, v.Name, v.ID, string(v.Zone), "a storage driver made it, and no server has it that would say for which cluster")
			continue
		case !marked && !r.ourServer(on):
			continue // another cluster's
		}
		r.inv.Items = append(r.inv.Items, Item{Kind: blueprint.KindClusterVolume, Name: v.Name, CloudID: v.ID, Zone: string(v.Zone), Status: string(v.Status),
			Settled: true, Created: moment(v.CreatedAt), on: on, tags: v.Tags, unmarked: !marked})
	}
}

func (r *reader) clusterSnapshots(known map[string]bool) {
	ours := map[string]bool{}
	theirs := map[string]bool{}
	for _, v := range r.f.remains.volumes {
		theirs[v.ID] = true
	}
	for _, it := range r.inv.Items {
		if it.Kind == blueprint.KindClusterVolume {
			ours[it.CloudID] = true
		}
	}
	for _, s := range r.f.remains.snapshots {
		marked := r.marked(s.Tags)
		if known[s.ID] || !byDriver(s.Name, s.Tags, snapshotName) || isLeaving(string(s.Status)) {
			continue
		}
		parent := ""
		if s.ParentVolume != nil {
			parent = s.ParentVolume.ID
		}
		if !marked && !ours[parent] {
			if !theirs[parent] || r.isLookalike(parent) {
				r.lookalike(blueprint.KindClusterSnapshot, s.Name, s.ID, string(s.Zone), "a storage driver made it, and its volume does not say for which cluster")
			}
			continue
		}
		r.inv.Items = append(r.inv.Items, Item{Kind: blueprint.KindClusterSnapshot, Name: s.Name, CloudID: s.ID, Zone: string(s.Zone), Status: string(s.Status),
			Settled: true, Created: moment(s.CreatedAt), tags: s.Tags, unmarked: !marked})
	}
}

func (r *reader) isLookalike(id string) bool {
	return slices.ContainsFunc(r.inv.Lookalikes, func(l Lookalike) bool { return l.ID == id })
}

func (r *reader) ourServer(id string) bool {
	_, ours := r.inv.servers()[id]
	return ours
}

func (r *reader) lookalike(kind blueprint.Kind, name, id, zone, why string) {
	r.inv.Lookalikes = append(r.inv.Lookalikes, Lookalike{kind, name, id, zone, why})
}

// byDriver says that a storage driver made something: by the tag that a teardown
// put on it, or by its name where no step claims it.
func byDriver(name string, tags []string, form *regexp.Regexp) bool {
	return has(tags, blueprint.TagMadeBy+blueprint.MadeByDriver) || stepOf(tags) == "" && form.MatchString(name)
}

// claim puts the estate's mark on something that only its node ties to the
// estate, before that node goes. Without it a later run could not tell whose it is.
func (c *Cloud) claim(ctx context.Context, it Item) error {
	tags := slices.Clone(it.tags)
	for _, t := range []string{blueprint.TagEstate + c.estate.Name, blueprint.TagMadeBy + blueprint.MadeByDriver} {
		if !has(tags, t) {
			tags = append(tags, t)
		}
	}
	// It may be busy with what the driver does; as with a deletion, that passes.
	return c.freed(ctx, func() (err error) {
		switch it.Kind {
		case blueprint.KindClusterVolume:
			_, err = c.blocks.UpdateVolume(&block.UpdateVolumeRequest{Zone: scw.Zone(it.Zone), VolumeID: it.CloudID, Tags: &tags}, scw.WithContext(ctx))
		case blueprint.KindClusterSnapshot:
			_, err = c.blocks.UpdateSnapshot(&block.UpdateSnapshotRequest{Zone: scw.Zone(it.Zone), SnapshotID: it.CloudID, Tags: &tags}, scw.WithContext(ctx))
		default:
			err = fmt.Errorf("a %s carries no tags", it.Kind)
		}
		return err
	})
}

// removeControllerBalancer releases its public addresses with it, in one call,
// so that no address is left over if that is the last. An address with tags was
// reserved by somebody, and stays.
func (c *Cloud) removeControllerBalancer(ctx context.Context, it Item) error {
	zone := scw.Zone(it.Zone)
	return c.gone(ctx, it, forLB,
		func() error {
			return c.balancers.DeleteLB(&lb.ZonedAPIDeleteLBRequest{Zone: zone, LBID: it.CloudID, ReleaseIP: !it.keepsAddress}, scw.WithContext(ctx))
		},
		func(ctx context.Context) error {
			_, err := c.balancers.GetLB(&lb.ZonedAPIGetLBRequest{Zone: zone, LBID: it.CloudID}, scw.WithContext(ctx))
			return err
		})
}

func (c *Cloud) removeSnapshot(ctx context.Context, it Item) error {
	zone := scw.Zone(it.Zone)
	return c.gone(ctx, it, forVolume,
		func() error {
			return c.blocks.DeleteSnapshot(&block.DeleteSnapshotRequest{Zone: zone, SnapshotID: it.CloudID}, scw.WithContext(ctx))
		},
		func(ctx context.Context) error {
			_, err := c.blocks.GetSnapshot(&block.GetSnapshotRequest{Zone: zone, SnapshotID: it.CloudID}, scw.WithContext(ctx))
			return err
		})
}
