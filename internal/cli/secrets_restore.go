package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bastide/internal/estate"
	"bastide/internal/session"
)

// restored is what secrets restore prints.
type restored struct {
	Path   string `json:"path"`
	From   string `json:"from"`
	Digest string `json:"digest"`          // SHA-256 of the encrypted bundle
	Aside  string `json:"aside,omitempty"` // where the file is that was there before
}

func (a *app) secretsRestoreCommand() *cobra.Command {
	var from string
	var replace bool
	cmd := env(&cobra.Command{
		Use:   "restore ENV",
		Short: "Bring the encrypted bundle back from one of its copies",
		Long: `Bring the encrypted bundle back from one of its copies: the newest in the estate's
bucket and in the replica that store.replica names, if they agree. With --from one
of them is enough, and of the other nothing is needed, its keys included. A bundle
that is there is kept: another one is a refusal, and with --replace it is moved
beside. The copy stays encrypted; the age identity is needed to use it, not here.`,
		Example: "  bastide secrets restore envs/staging\n  bastide secrets restore envs/staging --from replica",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.need = estate.Place
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error {
				r, err := s.Restore(ctx, from, replace)
				if err != nil {
					return err
				}
				text := fmt.Sprintf("%s is the newest copy in %s, digest %s", r.Path, r.From, r.Digest)
				if r.Aside != "" {
					text += "\nthe bundle that was there before is now " + r.Aside
				}
				a.ui.Result("restored", text, restored{r.Path, r.From, r.Digest, r.Aside})
				return nil
			})
		},
	})
	cmd.Flags().StringVar(&from, "from", session.FromBoth, "store (the estate's bucket) or replica, instead of both")
	cmd.Flags().BoolVar(&replace, "replace", false, "put it in the place of another bundle, which is moved beside")
	return cmd
}
