package cli

import (
	"context"

	"github.com/spf13/cobra"

	"bastide/internal/estate"
	"bastide/internal/session"
	"bastide/internal/store"
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

// lockDocument is what unlock tells programs.
type lockDocument struct {
	Locked bool `json:"locked"`
	// Lock is the one that is held or, with Locked false, that was removed.
	Lock        *store.Lock `json:"lock,omitempty"`
	RenewedAgo  float64     `json:"renewedAgoSeconds,omitempty"` // by the store's clock
	Expired     bool        `json:"expired,omitempty"`
	HolderEnded bool        `json:"holderEnded,omitempty"` // seen for certain, on this machine
}

func document(s *store.State, locked bool) lockDocument {
	if s == nil {
		return lockDocument{}
	}
	return lockDocument{Locked: locked, Lock: &s.Lock, RenewedAgo: s.Age.Seconds(), Expired: s.Expired, HolderEnded: s.Ended}
}

func (a *app) holder(ctx context.Context, s *session.Session) error {
	kept, err := s.Store()
	if err != nil {
		return err
	}
	there, err := kept.Current(ctx)
	if err != nil {
		return err
	}
	text := s.Estate.Name + " is not locked"
	if there != nil {
		text = there.String() + "\nremove it, if that run does not live any more, with " + s.UnlockCommand() + " " + there.ID
	}
	a.ui.Result("lock", text, document(there, true))
	return nil
}

func (a *app) unlock(ctx context.Context, s *session.Session, id string) error {
	kept, err := s.Store()
	if err != nil {
		return err
	}
	was, err := kept.Unlock(ctx, id, s.UnlockCommand())
	if err != nil {
		return err
	}
	text := s.Estate.Name + " is not locked"
	if was != nil {
		text = s.Estate.Name + " is unlocked: the lock was that of " + was.Command + ", of " + was.Holder.User + " on " + was.Holder.Host
	}
	a.ui.Result("lock", text, document(was, false))
	return nil
}
