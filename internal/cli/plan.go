package cli

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/run"
	"bastide/internal/session"
)

// garbage is how much may gather before it is collected, in percent of what is in
// use. A plan of hundreds of nodes is over in a second and keeps little of what
// it reads: with Go's default a seventh of its processor time goes into that.
const garbage = 400

func (a *app) planCommand() *cobra.Command {
	var exitCode bool
	cmd := env(&cobra.Command{
		Use:   "plan ENV",
		Short: "Show what up would do, with the reason and what each step disrupts",
		Long: `Show what up would do, with the reason and what each step disrupts. Nothing is
written. Values that cannot be known before the run say why. Where up could not
begin, because something has to be decided first or is not known, plan shows all
the same and ends as up would, with 3 or 4.`,
		Example: `  bastide plan envs/staging
  bastide plan envs/staging --exit-code --output json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.patience = 5 * time.Second // a look or two: a person is waiting
			debug.SetGCPercent(garbage)
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error {
				v, p, err := a.look(ctx, s)
				if err != nil {
					return err
				}
				a.show(v, p)
				if err := s.Foresee(ctx, v, p); err != nil {
					return err
				}
				// What a person has to put right first comes before what is then to be seen.
				if err := run.Blocked(doorOf(p)); err != nil {
					return err
				}
				if err := v.Barred(); err != nil && len(p.Having(plan.Unknown)) > 0 {
					return err
				}
				if err := run.Blocked(p); err != nil {
					return err // as up would, with the whole plan above it
				}
				if exitCode && !p.Empty() {
					return exit(outcome.Changes)
				}
				return nil
			})
		},
	})
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 2 when there is something to do")
	return cmd
}
