package cli

import (
	"context"
	"reflect"

	"bastide/internal/outcome"
	"bastide/internal/session"
	"bastide/internal/ui"
)

// replaceImage removes the image that is there, if nothing uses it and another can
// be made. That other is made by a build like any other; agreed says that somebody
// said yes to it already.
func (a *app) replaceImage(ctx context.Context, s *session.Session, path, from string, yes bool) (agreed bool, err error) {
	old, err := s.Replaced(ctx)
	if err != nil {
		return false, err
	}
	if err := s.CanReplace(ctx, from, nil); err != nil || len(old.Steps()) == 0 {
		return yes, err
	}
	a.ui.Table(replacedTable(s.Estate.Name, old))
	if err := a.confirm(ctx, yes, "remove this and make the image anew?"); err != nil {
		return false, err
	}
	return true, a.holding(ctx, s, func(ctx context.Context, h *session.Hold) error {
		a.resume = buildCommand(path, from) + " --replace"
		now, err := s.Replaced(ctx)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(old.Steps(), now.Steps()) {
			return outcome.Refuse("the image of "+s.Estate.Name+" was not replaced", "another run has changed it since it was looked at", "look at it with bastide image list, and run the command again")
		}
		progress, end := a.begin("remove the image of "+s.Estate.Name, len(now.Steps()))
		defer end()
		return s.Prune(ctx, now, a.tells(progress, h))
	})
}

func replacedTable(name string, u session.Unpinned) ui.Table {
	t := unpinnedTable(name, u)
	t.Kind, t.Title = "replaced", "the image of "+name+" that goes"
	return t
}

// buildCommand is the command that goes on after a failure.
func buildCommand(path, from string) string {
	if from == "" {
		return "bastide image build " + path
	}
	return "bastide image build " + path + " --from " + from
}
