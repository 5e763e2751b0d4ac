package session

import (
	"context"
	"fmt"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/run"
	"bastide/internal/talos"
)

// Ready checks what up needs before anything is written: the bundle, the Talos
// snapshot that new volumes are made from, or that an image of it can be had, and that the zone has the machines.
func (s *Session) Ready(ctx context.Context, p plan.Plan) error {
	if _, err := s.Unlock(); err != nil {
		return err
	}
	if makesVolumes(p) {
		if _, err := s.cloud.ResolveSnapshot(ctx); err != nil {
			return err
		}
	}
	if makesImage(p) {
		if err := s.imageCanBeMade(ctx); err != nil {
			return err
		}
	}
	warnings, err := s.cloud.CheckStock(ctx, p)
	for _, w := range warnings {
		s.config.Notice(w)
	}
	return err
}

// foresight bounds what a plan waits for where it can do without the answer.
const foresight = 10 * time.Second

// Foresee refuses a plan that up would refuse for the sake of its image. That it
// cannot be asked now is no fault of the plan's.
func (s *Session) Foresee(ctx context.Context, p plan.Plan) error {
	if !makesImage(p) {
		return nil
	}
	f, err := s.factory()
	if err != nil {
		return err
	}
	brief, cancel := context.WithTimeout(ctx, foresight)
	defer cancel()
	switch err := f.Check(brief, s.Estate.Talos); {
	case err == nil:
		return nil
	case outcome.CodeOf(err) == outcome.Refused, ctx.Err() != nil:
		return err
	}
	s.config.Notice(fmt.Sprintf("the Image Factory could not be asked whether there is Talos %s with these extensions; up asks it again", s.Estate.Talos.Version))
	return nil
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
		if o, ok := v.known.Get(string(blueprint.KindGatewayIP) + "/" + s.Estate.Name + "-gateway"); ok {
			gateway = o.Spec.(blueprint.GatewayIP).Address
		}
	}
	return v.Cluster.Verify(ctx, gateway)
}
