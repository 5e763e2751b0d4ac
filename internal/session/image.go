package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/factory"
	"bastide/internal/image"
	"bastide/internal/image/fetch"
	"bastide/internal/image/format"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/scaleway"
	"bastide/internal/store"
)

// imageStore is the estate's bucket for files of images. A part is larger than
// anything else that goes there, so a call may take longer; and it is asked before
// each whether the lock is still held.
func (s *Session) imageStore() (*store.Store, error) {
	if s.images == nil {
		o := s.reach()
		o.Retry = scaleway.Retry{Attempt: 2 * time.Minute, Budget: 10 * time.Minute}
		o.Decorators = append(o.Decorators, scaleway.Guard(s.writes))
		objects, _, err := scaleway.NewObjectStorage(o)
		if err != nil {
			return nil, err
		}
		s.images = store.New(store.Options{Objects: objects, Bucket: s.Estate.BucketName(), Estate: s.Estate.Name, Seal: s.Vault().Seal, Notice: s.config.Notice})
	}
	return s.images, nil
}

func (s *Session) factory() (*factory.Factory, error) {
	return factory.New(factory.Options{LookupEnv: s.config.LookupEnv, UserAgent: s.config.UserAgent, Notice: s.config.Notice})
}

// lookForImage looks in the bucket for the file of the image, if something is
// still to be made of it.
func (s *Session) lookForImage(ctx context.Context, v *Survey) error {
	for _, step := range v.Graph.Steps {
		want, ok := step.Spec.(blueprint.ImageObject)
		if _, seen := v.Live.Steps[step.ID]; !ok || seen {
			continue
		}
		kept, err := s.Store()
		if err != nil {
			return err
		}
		found, unproven, err := kept.Image(ctx, want.Key)
		switch {
		case err != nil:
			return err
		case unproven != "":
			s.config.Notice(fmt.Sprintf("%s in the bucket %s is not used: %s", want.Key, want.Bucket, unproven))
		case found != nil:
			v.Live.Steps[step.ID] = observedImage(step, want, found)
			v.source = found.Source
			if ofFile(found.Source) {
				s.config.Notice(fmt.Sprintf("%s in the bucket %s was made from the file %s: that it is Talos %s with this schematic is the word of whoever built it", want.Key, want.Bucket, found.Source, found.Talos))
			}
		}
	}
	return nil
}

func observedImage(step blueprint.Step, want blueprint.ImageObject, found *store.Image) plan.Observed {
	have := want // where it came from, and whose file it is, says its proof
	have.Talos, have.Schematic = found.Talos, found.Schematic
	return plan.Observed{Step: step.ID, CloudID: found.Key, Status: "in the bucket", Settled: true, Spec: have, Digest: found.Digest}
}

// imaging carries out the step of an image's file: from the Image Factory, or
// from a file of the user's.
type imaging struct {
	session *Session
	from    string
	build   *Build // is told where the image came from; nil where nobody asks
}

func (i imaging) Apply(ctx context.Context, a plan.Action, _ plan.Known) (plan.Observed, error) {
	want := a.Step.Spec.(blueprint.ImageObject)
	made, err := i.session.makeImage(ctx, a.Step, want, i.from)
	if err != nil {
		return plan.Observed{}, outcome.Begun(err) // a lock was taken and a journal begun
	}
	if i.build != nil {
		i.build.Source = made.Source
	}
	return observedImage(a.Step, want, made), nil
}

// makeImage reads the source, converts and checks it, and writes it to the bucket,
// in one pass. An upload that is cut short is kept for the next run; one whose
// content turned out to be wrong is thrown away.
func (s *Session) makeImage(ctx context.Context, step blueprint.Step, want blueprint.ImageObject, from string) (*store.Image, error) {
	kept, err := s.imageStore()
	if err != nil {
		return nil, err
	}
	if found, _, err := kept.Image(ctx, want.Key); err != nil || found != nil {
		return found, err
	}
	if from == "" {
		f, err := s.factory()
		if err != nil {
			return nil, err
		}
		if err := f.Register(ctx, s.Estate.Talos); err != nil {
			return nil, err
		}
		from = f.Image(s.Estate.Talos)
	}
	name := fetch.Shown(from)
	what := fmt.Sprintf("the image %s was not made from %s", want.Key, name)
	src, err := image.Open(ctx, from, nil, fetch.Options{Progress: s.pace(step.ID), Notice: s.config.Notice})
	if err != nil {
		return nil, notRead(what, name, readAgain, err)
	}
	defer func() { _ = src.Close() }()
	up, err := kept.StartImage(ctx, want.Key, image.HeadSize)
	if err != nil {
		return nil, err
	}
	result, err := image.Convert(ctx, src, up, image.Options{Limit: int64(s.Estate.SmallestRoot())})
	if err != nil {
		wrong := format.Refused(err) != nil
		return nil, errors.Join(notRead(what, name, uploadAgain, err), up.Stop(context.WithoutCancel(ctx), !wrong))
	}
	made, err := up.Finish(ctx, store.Image{Talos: want.Talos, Schematic: want.Schematic, Digest: result.Digest, VirtualSize: result.VirtualSize,
		Source: src.Name(), Made: time.Now().UTC(), By: s.config.UserAgent})
	if err != nil {
		_ = up.Stop(ctx, true)
		return nil, err
	}
	sent, had := up.Sent()
	s.say(step.ID, fmt.Sprintf("%d parts sent, %d were there", sent, had))
	return made, nil
}

func (s *Session) say(step, text string) {
	if s.config.Step != nil {
		s.config.Step(step, text)
	}
}

// makesItself refuses what only makes sense where bastide makes the image.
func makesItself(e *estate.Estate) error {
	if e.Talos.MakesImage() {
		return nil
	}
	return outcome.Refuse("no image is made for "+e.Name, "the file names the snapshot "+e.Talos.Snapshot, "leave out talos.snapshot, and bastide makes the image of version, extensions and kernel arguments")
}
