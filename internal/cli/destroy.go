package cli

import (
	"context"
	"fmt"
	"reflect"

	"github.com/spf13/cobra"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/scaleway"
	"bastide/internal/session"
	"bastide/internal/ui"
)

func (a *app) destroyCommand() *cobra.Command {
	var yes bool
	cmd := env(&cobra.Command{
		Use:   "destroy ENV",
		Short: "Take the estate down and prove that nothing is left",
		Long: `Take the estate down and prove that nothing is left: an inventory first, then the
removal, then a fresh inventory. It works with a dead cluster and without the
secrets bundle, and with a file in which only the name and the place at Scaleway
are right. Things without the estate's mark are named and never removed.`,
		Annotations: map[string]string{streams: "yes"},
		Example:     "  bastide destroy envs/staging",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.writes, a.need = true, estate.Place
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error { return a.destroy(ctx, s, args[0], yes) })
		},
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) destroy(ctx context.Context, s *session.Session, path string, yes bool) error {
	inv, p, err := s.Teardown(ctx)
	if err != nil {
		return err
	}
	a.ui.Table(inventoryTable(s.Estate.Name, inv))
	bucket, err := s.Store()
	if err != nil {
		return err
	}
	stored, err := bucket.Exists(ctx)
	if err != nil {
		return err
	}
	if len(p.Actions) == 0 && !stored {
		a.ui.Verdict(a.goneVerdict(s, ""))
		return nil
	}
	if len(p.Actions) > 0 {
		if err := a.confirmDestroy(ctx, p, yes); err != nil {
			return err
		}
	}
	a.resume = "bastide destroy " + path
	var kept string
	ctx, h, err := s.Hold(ctx)
	if err != nil {
		return err
	}
	if err = a.demolish(ctx, s, h, p, yes); err != nil {
		h.Release(ctx, err)
		return err
	}
	if kept, err = h.Retire(ctx); err != nil {
		return err
	}
	a.ui.Verdict(a.goneVerdict(s, kept))
	return nil
}

func (a *app) confirmDestroy(ctx context.Context, p plan.Plan, yes bool) error {
	return a.confirm(ctx, yes, fmt.Sprintf("delete all of this, with the data on its %s?", count(p.Actions, "volume")))
}

// demolish takes the estate down under its lock. What was agreed to is read
// again first: another run may have ended just now.
func (a *app) demolish(ctx context.Context, s *session.Session, h *session.Hold, agreed plan.Plan, yes bool) error {
	inv, p, err := s.Teardown(ctx)
	if err != nil {
		return err
	}
	if len(p.Actions) == 0 {
		return nil
	}
	if !reflect.DeepEqual(agreed.Actions, p.Actions) {
		a.ui.Table(inventoryTable(s.Estate.Name, inv))
		if err := a.confirmDestroy(ctx, p, yes); err != nil {
			return err
		}
	}
	progress, end := a.begin("destroy "+s.Estate.Name, len(p.Actions))
	left, err := s.Destroy(ctx, inv, p, a.tells(progress, h))
	end()
	if err != nil {
		return err
	}
	a.ui.Table(inventoryTable(s.Estate.Name, left))
	if !left.Empty() {
		why := fmt.Sprintf("%d things are left", len(left.Items))
		a.ui.Verdict(ui.Verdict{Sentence: s.Estate.Name + " is not gone: " + why})
		return outcome.Fail("the estate is not gone", why, "run the command again")
	}
	return nil
}

func (a *app) goneVerdict(s *session.Session, kept string) ui.Verdict {
	v := ui.Verdict{Passed: true, Sentence: "nothing of " + s.Estate.Name + " exists at Scaleway"}
	if kept != "" {
		v.Sentence = fmt.Sprintf("nothing of %s exists at Scaleway but the bucket %s, which is kept: it holds more than locks and journals", s.Estate.Name, kept)
	}
	return v
}

func inventoryTable(name string, inv *scaleway.Inventory) ui.Table {
	t := ui.Table{Kind: "inventory", Title: "inventory of " + name, Columns: []string{"kind", "name", "id", "zone", "status"}, Empty: "nothing of " + name + " exists at Scaleway"}
	for _, it := range inv.Items {
		t.Rows = append(t.Rows, []string{string(it.Kind), it.Name, it.CloudID, it.Zone, it.Status})
	}
	return t
}

func count(actions []plan.Action, kind string) string {
	n := 0
	for _, a := range actions {
		if string(a.Step.Kind) == kind {
			n++
		}
	}
	if n == 1 {
		return "1 " + kind
	}
	return fmt.Sprintf("%d %ss", n, kind)
}
