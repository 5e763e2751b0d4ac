package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bastide/internal/outcome"
	"bastide/internal/scaleway"
	"bastide/internal/session"
	"bastide/internal/ui"
)

func (a *app) doctorCommand() *cobra.Command {
	return env(&cobra.Command{
		Use:   "doctor ENV",
		Short: "Look the project over for leftovers, lookalikes and traps",
		Long: `Look the project over for leftovers, lookalikes and traps: what carries the
estate's mark without a reason, what looks like the estate's without the mark,
what the cluster made, what is paid for and serves nobody, and settings that are
allowed and hurt later. Each is a named check, with what puts it right. Nothing
is changed. It reads Scaleway alone, in the estate's zone and region, and the
copies of the secrets bundle where the file names a replica for them.

Exit code 0 says that all is well, 1 that something was found, 4 that a listing
could not be read, whatever was found in the others.`,
		Example: "  bastide doctor envs/staging\n  bastide doctor envs/staging -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error {
				checks, err := s.Doctor(ctx)
				if err != nil {
					return err
				}
				return a.diagnose(s.Estate.Name, args[0], checks)
			})
		},
	})
}

func (a *app) diagnose(name, path string, checks []scaleway.Check) error {
	d := ui.Diagnosis{Estate: name}
	found, unread := 0, 0
	for _, c := range checks {
		e := ui.Examined{Name: c.Name, State: "well", Unread: c.Unread}
		for _, f := range c.Findings {
			e.Findings = append(e.Findings, ui.Finding{What: f.What, Why: f.Why, Fix: strings.ReplaceAll(f.Fix, " ENV", " "+path)})
		}
		switch {
		case c.Unread != "":
			e.State = "unread"
			unread++
		case len(c.Findings) > 0:
			e.State = "found"
			found += len(c.Findings)
		}
		d.Checks = append(d.Checks, e)
	}
	things := fmt.Sprintf("%d things found", found)
	if found == 1 {
		things = "1 thing found"
	}
	switch {
	case unread > 0:
		d.Sentence = fmt.Sprintf("%d of %d checks could not be made, %s in the others", unread, len(checks), things)
	case found > 0:
		d.Sentence = fmt.Sprintf("%s by %d checks", things, len(checks))
	default:
		d.Sentence = fmt.Sprintf("all is well, %d checks", len(checks))
	}
	a.ui.Diagnosis(d)
	switch {
	case unread > 0:
		return exit(outcome.Unknown)
	case found > 0:
		return exit(outcome.Failed)
	}
	return nil
}
