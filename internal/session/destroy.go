package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/run"
	"bastide/internal/scaleway"
	"bastide/internal/store"
)

// Demolition is a teardown that was laid out: what is there, what goes in which
// order, and what stays.
type Demolition struct {
	Before   *scaleway.Inventory
	Plan     plan.Plan
	Kept     []scaleway.Kept
	After    *scaleway.Inventory         // what is there once it was carried out
	Stored   bool                        // the estate's bucket exists
	Replica  string                      // the replica that stays as it is, unasked; empty where none does
	Copies   int                         // of the secrets bundle in the replica, which go too
	replica  *store.Shelf                // where they are
	data     []blueprint.Data            // the classes that were named
	removals map[string]scaleway.Removal // by step of the plan
}

// DataStore is the class of the estate's own bucket, which is no step: it holds
// the lock, and goes last.
const DataStore = string(blueprint.DataStore)

// Takes says whether a class of data was named.
func (d Demolition) Takes(class string) bool {
	return slices.Contains(d.data, blueprint.Data(class))
}

// DataClasses are the classes of data that a teardown keeps unless they are named.
func DataClasses() []string {
	var out []string
	for _, d := range blueprint.DataClasses {
		out = append(out, string(d))
	}
	return out
}

// Unread is what could not be read when the project was looked at last.
func (d Demolition) Unread() []string {
	if d.After != nil {
		return d.After.Unread
	}
	return d.Before.Unread
}

// Data are the classes of data that the demolition deletes something of.
func (d Demolition) Data() []string {
	var out []string
	for _, r := range d.removals {
		if class := string(r.Item.Kind.Data()); class != "" && !r.Claim && !slices.Contains(out, class) {
			out = append(out, class)
		}
	}
	if (d.Stored || d.Copies > 0) && d.Takes(DataStore) {
		out = append(out, DataStore)
	}
	slices.Sort(out)
	return out
}

// KeptStore is the estate's bucket when it stays because of what it holds.
func (s *Session) KeptStore(bucket string) scaleway.Kept {
	return scaleway.Kept{Item: scaleway.Item{Kind: blueprint.KindStore, Name: bucket, CloudID: bucket}, Class: blueprint.DataStore, Why: "it holds more than locks and journals"}
}

// Teardown reads what exists and lays out its removal. What holds data stays
// unless its class is named. It needs neither the bundle nor a living cluster.
func (s *Session) Teardown(ctx context.Context, named []string) (Demolition, error) {
	data, unknown := blueprint.DataOf(named)
	if unknown != "" {
		return Demolition{}, outcome.Refuse("nothing was done", fmt.Sprintf("--delete-data says %s, which is no class of data", unknown),
			"use one or more of "+strings.Join(DataClasses(), ", "))
	}
	cloud, err := s.Cloud(ctx)
	if err != nil {
		return Demolition{}, err
	}
	inv, err := cloud.WholeInventory(ctx)
	if err != nil {
		return Demolition{}, err
	}
	t, err := cloud.Teardown(inv, data)
	if err != nil {
		return Demolition{}, err
	}
	kept, err := s.Store()
	if err != nil {
		return Demolition{}, err
	}
	stored, err := kept.Exists(ctx)
	if err != nil {
		return Demolition{}, err
	}
	d := Demolition{Before: inv, Kept: t.Kept, Stored: stored, data: data, removals: map[string]scaleway.Removal{}}
	names := stepNames(t.Removals)
	for _, r := range t.Removals {
		d.removals[names[r.ID]] = r
	}
	d.Plan = s.demolitionPlan(t.Removals, names)
	return d, s.layOutReplica(ctx, &d)
}

// demolitionPlan names removals as steps are named, kind/name; the second of
// two things with one name keeps its ID in it.
func (s *Session) demolitionPlan(removals []scaleway.Removal, names map[string]string) plan.Plan {
	p := plan.Plan{Estate: s.Estate.Name}
	for _, r := range removals {
		step := blueprint.Step{ID: names[r.ID], Kind: r.Item.Kind, Name: r.Item.Name, Spec: r.Item.Spec}
		for _, first := range r.After {
			step.Needs = append(step.Needs, names[first])
		}
		a := plan.Action{Step: step, Op: plan.Delete, Reason: "it is part of " + s.Estate.Name, Disruption: plan.None}
		if r.Claim {
			a.Op, a.Reason = plan.Update, "only its node says that it is part of "+s.Estate.Name
		}
		p.Actions = append(p.Actions, a)
	}
	return p
}

func stepNames(removals []scaleway.Removal) map[string]string {
	names, taken := map[string]string{}, map[string]bool{}
	for _, r := range removals {
		name := string(r.Item.Kind) + "/" + r.Item.Name
		if r.Claim {
			name = "mark " + name
		}
		if taken[name] {
			name += " " + r.Item.CloudID
		}
		taken[name], names[r.ID] = true, name
	}
	return names
}

// Destroy carries out a teardown, reads what is there then, and says what of it
// was not meant to stay.
func (s *Session) Destroy(ctx context.Context, d *Demolition, report func(run.Event)) (left []scaleway.Item, err error) {
	err = run.New(d.Plan, plan.Live{}).Run(ctx, func(blueprint.Kind) run.Executor { return s.locked(demolition{s.cloud, d.removals, s.emptyBucket}) }, report)
	if err != nil {
		return nil, err
	}
	if d.After, err = s.cloud.WholeInventory(ctx); err != nil {
		return nil, outcome.Unproven(err)
	}
	kept := map[string]bool{}
	for _, k := range d.Kept {
		kept[k.Item.CloudID] = true
	}
	for _, it := range d.After.Items {
		if !kept[it.CloudID] {
			left = append(left, it)
		}
	}
	return left, nil
}

// demolition removes instead of making.
type demolition struct {
	cloud    *scaleway.Cloud
	removals map[string]scaleway.Removal
	empty    func(ctx context.Context, bucket string) error
}

func (d demolition) Apply(ctx context.Context, a plan.Action, _ plan.Known) (plan.Observed, error) {
	r := d.removals[a.Step.ID]
	if r.Item.Kind == blueprint.KindBucket && !r.Claim {
		if err := d.empty(ctx, r.Item.Name); err != nil {
			return plan.Observed{}, err
		}
	}
	return plan.Observed{Step: a.Step.ID}, d.cloud.Delete(ctx, r)
}

// emptyBucket removes what is in one of the application's buckets: all versions,
// delete markers and uploads. Object storage removes empty buckets only.
func (s *Session) emptyBucket(ctx context.Context, name string) error {
	objects, _, err := scaleway.NewObjectStorage(s.reach())
	if err != nil {
		return err
	}
	return store.NewBucket(objects, name).Empty(ctx, store.EmptyOptions{})
}
