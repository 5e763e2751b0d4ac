package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"
)

// question is how much a plan depends on the Image Factory's word.
type question string

const (
	// noQuestion is a plan that writes no installer, or only one that running nodes
	// or a proven image already have: an estate that runs needs no Factory.
	noQuestion question = "none"
	// whetherRefused is a plan whose image is there by somebody's word, proven or
	// named by the file. A Factory that has no such thing ends it; one that cannot be
	// asked does not.
	whetherRefused question = "whether it refuses"
	// mustAnswer is a plan that makes the image, or writes an installer that nothing
	// vouches for.
	mustAnswer question = "must answer"
)

// questionOf says what has to be asked of the Factory before a plan is carried out.
// The name of an installer is computed offline: without the question a misspelt
// extension, or a version that does not exist, ends up in the nodes and shows only
// when one of them is to be upgraded.
func (s *Session) questionOf(v *Survey, p plan.Plan) question {
	given, proven := !s.Estate.Talos.MakesImage(), v.imageProven()
	switch {
	case makesImage(p):
		return mustAnswer
	case !writesMachines(p), v.installers.All():
		return noQuestion
	case len(v.installers.Others) > 0 && proven:
		return whetherRefused
	case len(v.installers.Others) > 0:
		return mustAnswer
	case proven:
		return noQuestion
	case given:
		return whetherRefused
	}
	return mustAnswer
}

func makesImage(p plan.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Step.Kind == blueprint.KindImageObject && a.Op == plan.Create })
}

// writesMachines says that a node is, or may be, sent a configuration.
func writesMachines(p plan.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a plan.Action) bool {
		return a.Step.Kind == blueprint.KindMachine && (a.Op == plan.Create || a.Op == plan.Update || a.Op == plan.Wait)
	})
}

// imageProven says that the image of the file's version and schematic was made: its
// file is in the bucket and proven, or its snapshot says what went into it.
func (v *Survey) imageProven() bool {
	if v.Inventory == nil {
		return false
	}
	for _, i := range v.Inventory.Images() {
		if _, wanted := v.Graph.Step(i.Step); wanted && !i.Second && i.Broken == "" && i.Digest != "" {
			return true
		}
	}
	for _, step := range v.Graph.Steps {
		if step.Kind == blueprint.KindImageObject && v.Live.Steps[step.ID].Digest != "" {
			return true
		}
	}
	return false
}

// foresight bounds what a plan waits for where it can do without the answer.
const foresight = 10 * time.Second

// Foresee refuses a plan that up would refuse for the sake of its image or of the
// nodes' installer. That the Factory cannot be asked now is no fault of the plan's.
func (s *Session) Foresee(ctx context.Context, v *Survey, p plan.Plan) error {
	q := s.questionOf(v, p)
	if q == noQuestion {
		return nil
	}
	asked, err := s.askBriefly(ctx)
	if err == nil && !asked && q == mustAnswer {
		s.config.Notice(fmt.Sprintf("the Image Factory could not be asked whether there is Talos %s with these extensions; up asks it again", s.Estate.Talos.Version))
	}
	return err
}

// factoryHas asks the Factory before anything is written, as far as the plan
// depends on it.
func (s *Session) factoryHas(ctx context.Context, v *Survey, p plan.Plan) error {
	switch s.questionOf(v, p) {
	case mustAnswer:
		return s.imageCanBeMade(ctx)
	case whetherRefused:
		asked, err := s.askBriefly(ctx)
		if err == nil && !asked {
			s.config.Notice(fmt.Sprintf("the Image Factory could not be asked whether it has Talos %s with these extensions; the image that is there is taken for proof", s.Estate.Talos.Version))
		}
		return err
	}
	return nil
}

// askBriefly passes on what the Factory refuses, and says whether it answered at
// all. It changes nothing there.
func (s *Session) askBriefly(ctx context.Context) (bool, error) {
	f, err := s.factory()
	if err != nil {
		return false, err
	}
	brief, cancel := context.WithTimeout(ctx, foresight)
	defer cancel()
	switch err := f.Check(brief, s.Estate.Talos); {
	case err == nil:
		return true, nil
	case outcome.CodeOf(err) == outcome.Refused, ctx.Err() != nil:
		return true, err
	}
	return false, nil
}

// introduce makes the schematic known to the Factory, so that its installer can be
// had, where no image is made for it. That this fails, or that the Factory has another
// id for it, is told and ends nothing: the nodes have their image from elsewhere.
func (s *Session) introduce(ctx context.Context) {
	f, err := s.factory()
	if err == nil {
		brief, cancel := context.WithTimeout(ctx, foresight)
		defer cancel()
		err = f.Register(brief, s.Estate.Talos)
	}
	if err != nil && ctx.Err() == nil {
		s.config.Notice("the installer that nodes are given may not be had: " + err.Error())
	}
}

// imageCanBeMade asks the Image Factory before anything is written. What it is
// told there is what the schematic consists of, and is named by its content.
func (s *Session) imageCanBeMade(ctx context.Context) error {
	f, err := s.factory()
	if err != nil {
		return err
	}
	if err := f.Check(ctx, s.Estate.Talos); err != nil {
		return err
	}
	return f.Register(ctx, s.Estate.Talos)
}
