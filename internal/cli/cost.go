package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"bastide/internal/estate"
	"bastide/internal/price"
	"bastide/internal/session"
)

func (a *app) costCommand() *cobra.Command {
	var offline bool
	cmd := env(&cobra.Command{
		Use:   "cost ENV",
		Short: "Show what the estate costs, line by line, and what up would add to what runs",
		Long: `Show what the estate costs an hour, a day and a month, line by line, and what up
would add to what runs. Prices come from Scaleway's catalogue where it gives
them, and else from a dated table that came with this build. What cannot be
priced is named with the reason and is in no total.

Without an API key, or with --offline, the file alone is priced from the table.`,
		Example: `  bastide cost examples/private --offline
  bastide cost envs/staging --output json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.need = estate.Layout
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error {
				alone, err := a.alone(s, offline, "the file alone is priced, from the table")
				if err != nil {
					return err
				}
				bill, err := bill(ctx, s, alone)
				if err == nil {
					a.ui.Cost(bill)
				}
				return err
			})
		},
	})
	cmd.Flags().BoolVar(&offline, "offline", false, "price the file alone, from the table; ask nobody")
	return cmd
}

// alone says whether a command looks at nothing but the file: on request, or
// because there is no API key, which is said then.
func (a *app) alone(s *session.Session, offline bool, so string) (bool, error) {
	if offline {
		return true, nil
	}
	none, err := s.Offline()
	if none && err == nil {
		a.ui.Notice("there is no API key, so " + so)
	}
	return none, err
}

func bill(ctx context.Context, s *session.Session, alone bool) (price.Bill, error) {
	if alone {
		g, err := s.Draft()
		if err != nil {
			return price.Bill{}, err
		}
		return price.Make(g, nil, price.Table()), nil
	}
	quote, err := s.Quote(ctx)
	if err != nil {
		return price.Bill{}, err
	}
	v, err := s.SurveyCloud(ctx)
	if err != nil {
		return price.Bill{}, err
	}
	return price.Make(v.Graph, &v.Live, quote.Book(10*time.Second)), nil
}
