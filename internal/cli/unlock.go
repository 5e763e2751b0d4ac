package cli

import (
	"context"

	"github.com/spf13/cobra"

	"bastide/internal/estate"
	"bastide/internal/session"
)

func (a *app) unlockCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "unlock ENV [LOCK-ID]",
		Short: "Say who holds the estate's lock, or remove it",
		Long: `Say who holds the estate's lock; with the lock's id, remove it. A run that was
killed on another machine cannot give its lock back: it expires two minutes after
it was renewed last, and until then only this removes it. See that the run has
really ended: one that lives stops before its next change when its lock is gone.`,
		Example: `  bastide unlock envs/staging
  bastide unlock envs/staging 1f2e3d4c5b6a7988`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.writes, a.need = len(args) == 2, estate.Place
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error {
				if len(args) == 2 {
					return a.unlock(ctx, s, args[1])
				}
				return a.holder(ctx, s)
			})
		},
	}
}

func (a *app) holder(ctx context.Context, s *session.Session) error {
	kept, err := s.Store()
	if err != nil {
		return err
	}
	there, err := kept.Current(ctx)
	switch {
	case err != nil:
		return err
	case there == nil:
		a.ui.Result("lock", s.Estate.Name+" is not locked", nil)
	default:
		a.ui.Result("lock", there.String()+"\nremove it, if that run does not live any more, with "+s.UnlockCommand()+" "+there.ID, there.Lock)
	}
	return nil
}

func (a *app) unlock(ctx context.Context, s *session.Session, id string) error {
	kept, err := s.Store()
	if err != nil {
		return err
	}
	was, err := kept.Unlock(ctx, id, s.UnlockCommand())
	switch {
	case err != nil:
		return err
	case was == nil:
		a.ui.Result("lock", s.Estate.Name+" is not locked", nil)
	default:
		a.ui.Result("lock", s.Estate.Name+" is unlocked: "+was.String(), was.Lock)
	}
	return nil
}
