package session

import (
	"context"

	"bastide/internal/blueprint"
	"bastide/internal/plan"
	"bastide/internal/run"
	"bastide/internal/scaleway"
)

// Teardown reads what exists and lays out its removal. It needs neither the
// bundle nor a living cluster.
func (s *Session) Teardown(ctx context.Context) (*scaleway.Inventory, plan.Plan, error) {
	cloud, err := s.Cloud(ctx)
	if err != nil {
		return nil, plan.Plan{}, err
	}
	inv, err := cloud.Inventory(ctx)
	if err != nil {
		return nil, plan.Plan{}, err
	}
	removals, err := cloud.Teardown(inv)
	if err != nil {
		return inv, plan.Plan{}, err
	}
	return inv, s.demolitionPlan(removals), nil
}

// demolitionPlan names removals as steps are named, kind/name; the second of
// two things with one name keeps its ID in it.
func (s *Session) demolitionPlan(removals []scaleway.Removal) plan.Plan {
	names := stepNames(removals)
	p := plan.Plan{Estate: s.Estate.Name}
	for _, r := range removals {
		step := blueprint.Step{ID: names[r.ID], Kind: r.Item.Kind, Name: r.Item.Name, Spec: r.Item.Spec}
		for _, first := range r.After {
			step.Needs = append(step.Needs, names[first])
		}
		p.Actions = append(p.Actions, plan.Action{Step: step, Op: plan.Delete, Reason: "it is part of " + s.Estate.Name, Disruption: plan.None})
	}
	return p
}

func stepNames(removals []scaleway.Removal) map[string]string {
	names, taken := map[string]string{}, map[string]bool{}
	for _, r := range removals {
		name := string(r.Item.Kind) + "/" + r.Item.Name
		if taken[name] {
			name += " " + r.Item.CloudID
		}
		taken[name], names[r.ID] = true, name
	}
	return names
}

// Destroy carries out a teardown and reads what is left.
func (s *Session) Destroy(ctx context.Context, inv *scaleway.Inventory, p plan.Plan, report func(run.Event)) (*scaleway.Inventory, error) {
	removals, err := s.cloud.Teardown(inv)
	if err != nil {
		return nil, err
	}
	d := demolition{cloud: s.cloud, removals: map[string]scaleway.Removal{}}
	names := stepNames(removals)
	for _, r := range removals {
		d.removals[names[r.ID]] = r
	}
	err = run.New(p, plan.Live{}).Run(ctx, func(blueprint.Kind) run.Executor { return s.locked(d) }, report)
	if err != nil {
		return nil, err
	}
	return s.cloud.Inventory(ctx)
}

// demolition removes instead of making.
type demolition struct {
	cloud    *scaleway.Cloud
	removals map[string]scaleway.Removal
}

func (d demolition) Apply(ctx context.Context, a plan.Action, _ plan.Known) (plan.Observed, error) {
	return plan.Observed{Step: a.Step.ID}, d.cloud.Delete(ctx, d.removals[a.Step.ID])
}
