package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/run"
	"bastide/internal/scaleway"
	"bastide/internal/store"
	"bastide/internal/talos"
)

// Build is the making of an image for its own sake, laid out.
type Build struct {
	Plan   plan.Plan
	Digest string // of the image that exists; empty where none does
	Source string // of its file, where that is there
	live   plan.Live
	known  plan.Known // what there is once it was carried out; nil before
}

// ImagePlan says what has to happen until the file's image is there, whether or
// not anything needs it now. It reads the cloud and the bucket.
func (s *Session) ImagePlan(ctx context.Context) (*Build, error) {
	if err := makesItself(s.Estate); err != nil {
		return nil, err
	}
	cloud, err := s.Cloud(ctx)
	if err != nil {
		return nil, err
	}
	inv, err := cloud.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	g, err := blueprint.Build(s.Estate, inv.Booked(), s.Estate.Admin.PublicKeys)
	if err != nil {
		return nil, outcome.Refuse("the estate cannot be laid out", err.Error(), "change the file").Because(err)
	}
	if err := s.proveSnapshots(ctx, g, inv, func(*blueprint.Graph, string) bool { return true }); err != nil {
		return nil, err
	}
	v := &Survey{Inventory: inv, Graph: g, Live: inv.Made(g)}
	if err := s.lookForImage(ctx, v); err != nil {
		return nil, err
	}
	for _, i := range inv.Images() {
		if i.Second && i.Doubt != "" {
			s.config.Notice(fmt.Sprintf("the snapshot %s (%s) is not used: %s; bastide image prune removes it if no volume is of it", i.Name, i.CloudID, i.Doubt))
		}
	}
	b := &Build{Source: v.source, live: v.Live}
	for _, o := range v.Live.Steps {
		if o.Digest != "" {
			b.Digest = o.Digest
		}
	}
	for _, i := range inv.Images() {
		if _, wanted := g.Step(i.Step); wanted && !i.Second && b.Digest == "" {
			b.Digest = i.Digest
		}
	}
	b.Plan = plan.Make(g, v.Live)
	b.Plan.Notes, b.Plan.Strays = nil, nil
	b.Plan.Actions = slices.DeleteFunc(b.Plan.Actions, func(a plan.Action) bool { return !isImage(a.Step.Kind) })
	b.withoutObject()
	return b, nil
}

// withoutObject leaves the file of a snapshot that is there unmade.
func (b *Build) withoutObject() {
	made := false
	for _, a := range b.Plan.Actions {
		made = made || a.Step.Kind == blueprint.KindSnapshot && (a.Op == plan.Keep || a.Op == plan.Wait)
	}
	for i, a := range b.Plan.Actions {
		if made && a.Step.Kind == blueprint.KindImageObject {
			b.Plan.Actions[i] = plan.Action{Step: a.Step, Op: plan.Keep, Disruption: plan.None}
		}
	}
}

func isImage(k blueprint.Kind) bool {
	return k == blueprint.KindImageObject || k == blueprint.KindSnapshot
}

// CanBuild checks what a build needs before anything is written: the Image
// Factory or, where from names one, a file that is an image and has the content of
// the one that exists.
func (s *Session) CanBuild(ctx context.Context, b *Build, from string, progress func(read, total int64)) error {
	if from == "" {
		if makesImage(b.Plan) {
			return s.imageCanBeMade(ctx)
		}
		return nil
	}
	if b.Digest == "" {
		return s.lookAtFile(ctx, from)
	}
	c, err := CheckImage(ctx, from, int64(s.Estate.SmallestRoot()), progress, s.config.Notice)
	if err != nil {
		return err
	}
	if c.Result.Digest != b.Digest {
		return outcome.Refuse(from+" was not made the image of "+s.Estate.Name, fmt.Sprintf("an image of this version and schematic exists with other content: %s%s, and the file's is %s", b.Digest, madeFrom(b.Source), c.Result.Digest),
			"use the one that exists or, if it is the wrong one, add --replace, which makes it anew if nothing uses it")
	}
	return nil
}

// Build carries out a build.
func (s *Session) Build(ctx context.Context, b *Build, from string, report func(run.Event)) error {
	w := run.New(b.Plan, b.live)
	b.known = w.Known()
	return w.Run(ctx, func(k blueprint.Kind) run.Executor {
		if k == blueprint.KindImageObject {
			return s.locked(imaging{s, from, b})
		}
		return s.locked(s.cloud)
	}, report)
}

// Images is everything that has to do with the estate's images.
type Images struct {
	Snapshots []PinnedSnapshot
	Objects   []PinnedObject
	Nodes     []talos.Running // what runs; nil where nodes were not asked
	NotAsked  string          // why nodes that there are were not asked
	wanted    string          // step of the snapshot that the file asks for; empty where bastide makes none
	wantedKey string          // of its file
	unmade    map[string]bool // nodes of the file that are no server yet, and run nothing
}

// PinnedSnapshot is a snapshot, and what keeps it.
type PinnedSnapshot struct {
	scaleway.Image
	Pins []string
}

// PinnedObject is a file in the bucket, and what keeps it.
type PinnedObject struct {
	store.StoredImage
	Pins []string
}

// Images reads what there is. With nodes, those are asked what they run; without,
// whatever may run on one is kept.
func (s *Session) Images(ctx context.Context, nodes bool) (*Images, error) {
	cloud, err := s.Cloud(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := s.Store()
	if err != nil {
		return nil, err
	}
	out := &Images{}
	var inv *scaleway.Inventory
	var objects []store.StoredImage
	var cloudErr, storeErr error
	var wg sync.WaitGroup
	wg.Go(func() { inv, cloudErr = cloud.WholeInventory(ctx) })
	wg.Go(func() { objects, storeErr = kept.Images(ctx) })
	wg.Wait()
	if cloudErr != nil || storeErr != nil {
		return nil, firstError(cloudErr, storeErr)
	}
	s.pin(out, inv, objects)
	if inv.HasServers() {
		out.NotAsked = "nobody wanted to know"
		if nodes {
			out.NotAsked = s.askNodes(ctx, out)
		}
		out.onlyServers(inv)
	}
	out.keepWhatRuns()
	return out, ctx.Err()
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Unpinned is what a prune removes.
type Unpinned struct {
	Snapshots []scaleway.Image
	Objects   []store.StoredImage
}

// Unpinned are the images that nothing keeps.
func (i *Images) Unpinned() Unpinned {
	var out Unpinned
	for _, s := range i.Snapshots {
		if len(s.Pins) == 0 {
			out.Snapshots = append(out.Snapshots, s.Image)
		}
	}
	for _, o := range i.Objects {
		if len(o.Pins) == 0 {
			out.Objects = append(out.Objects, o.StoredImage)
		}
	}
	return out
}

// Steps are the removals as steps of a plan, in the order in which they are made.
func (u Unpinned) Steps() []blueprint.Step {
	var out []blueprint.Step
	for _, s := range u.Snapshots {
		name := s.Name
		if s.Step == "" || s.Second {
			name += " " + s.CloudID
		}
		out = append(out, blueprint.Step{ID: string(blueprint.KindSnapshot) + "/" + name, Kind: blueprint.KindSnapshot, Name: s.Name, Spec: s.Spec})
	}
	for _, o := range u.Objects {
		name := strings.TrimSuffix(strings.TrimPrefix(o.Key, blueprint.ImagePrefix), ".qcow2")
		out = append(out, blueprint.Step{ID: string(blueprint.KindImageObject) + "/" + name, Kind: blueprint.KindImageObject, Name: name, Spec: blueprint.ImageObject{Key: o.Key}})
	}
	return out
}

// Prune removes images that nothing keeps. What is gone already is fine.
func (s *Session) Prune(ctx context.Context, u Unpinned, report func(run.Event)) error {
	kept, err := s.imageStore()
	if err != nil {
		return err
	}
	p := plan.Plan{Estate: s.Estate.Name}
	for _, step := range u.Steps() {
		p.Actions = append(p.Actions, plan.Action{Step: step, Op: plan.Delete, Reason: "nothing keeps it", Disruption: plan.None})
	}
	do := pruning{cloud: s.cloud, store: kept, of: u}
	return run.New(p, plan.Live{}).Run(ctx, func(blueprint.Kind) run.Executor { return s.locked(do) }, report)
}

type pruning struct {
	cloud *scaleway.Cloud
	store *store.Store
	of    Unpinned
}

func (p pruning) Apply(ctx context.Context, a plan.Action, _ plan.Known) (plan.Observed, error) {
	done := plan.Observed{Step: a.Step.ID}
	if spec, ok := a.Step.Spec.(blueprint.ImageObject); ok {
		return done, p.store.RemoveImage(ctx, spec.Key)
	}
	steps := p.of.Steps()
	i := slices.IndexFunc(steps, func(s blueprint.Step) bool { return s.ID == a.Step.ID })
	return done, p.cloud.Delete(ctx, scaleway.Removal{Item: p.of.Snapshots[i].Item})
}
