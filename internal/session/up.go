package session

import (
	"context"

	"bastide/internal/blueprint"
	"bastide/internal/plan"
	"bastide/internal/run"
	"bastide/internal/talos"
)

// Ready checks what up needs before anything is written: the bundle, the Talos
// snapshot that new volumes are made from, or that an image of it can be had, that
// the Image Factory has the installer that nodes are given, and that the zone has the machines.
func (s *Session) Ready(ctx context.Context, v *Survey, p plan.Plan) error {
	if _, err := s.Unlock(); err != nil {
		return err
	}
	if makesVolumes(p) {
		if _, err := s.cloud.ResolveSnapshot(ctx); err != nil {
			return err
		}
	}
	if err := s.factoryHas(ctx, v, p); err != nil {
		return err
	}
	warnings, err := s.cloud.CheckStock(ctx, p)
	for _, w := range warnings {
		s.config.Notice(w)
	}
	return err
}

func makesVolumes(p plan.Plan) bool {
	for _, a := range p.Actions {
		if want, ok := a.Step.Spec.(blueprint.Volume); ok && a.Op == plan.Create && want.Snapshot != "" {
			return true
		}
	}
	return false
}

// Up carries out a plan.
func (s *Session) Up(ctx context.Context, v *Survey, p plan.Plan, report func(run.Event)) error {
	for _, a := range p.Actions {
		if a.Step.Kind == blueprint.KindGateway && a.Op != plan.Keep {
			v.made = true
		}
	}
	if s.questionOf(v, p) == whetherRefused {
		s.introduce(ctx) // not before: it is a change, of the Factory's, and needs a yes and the lock
	}
	executors := func(k blueprint.Kind) run.Executor {
		if k.Cluster() {
			return s.locked(v.Cluster)
		}
		if k == blueprint.KindImageObject {
			return s.locked(imaging{session: s})
		}
		return s.locked(s.cloud)
	}
	w := run.New(p, v.Live)
	v.known = w.Known()
	return w.Run(ctx, executors, report)
}

// Verify checks on the running nodes what the file promises.
func (s *Session) Verify(ctx context.Context, v *Survey) []talos.Check {
	gateway := v.Inventory.GatewayIP()
	if v.known != nil { // the run may have made it
		if o, ok := v.known.Get(string(blueprint.KindGatewayIP) + "/" + blueprint.GatewayName(s.Estate.Name)); ok {
			gateway = o.Spec.(blueprint.GatewayIP).Address
		}
	}
	return v.Cluster.Verify(ctx, gateway)
}
