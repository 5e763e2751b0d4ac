package cli

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/scaleway"
	"bastide/internal/session"
	"bastide/internal/ui"
)

// razing is what the command line of destroy says.
type razing struct {
	path  string
	yes   bool
	data  []string // the classes of data that go too
	typed string   // the estate's name, said beforehand
}

func (a *app) destroyCommand() *cobra.Command {
	var r razing
	cmd := env(&cobra.Command{
		Use:   "destroy ENV",
		Short: "Take the estate down and prove that nothing is left",
		Long: `Take the estate down and prove that nothing is left: an inventory first, then the
removal, then a fresh inventory. It works with a dead cluster and without the
secrets bundle, and with a file in which only the name and the place at Scaleway
are right. Things without the estate's mark are named and never removed. Where that last
inventory could not be read to its end, the exit code is 4, whatever is gone.

What holds data is kept, with what it stands on, unless its class is named with
--delete-data: ` + strings.Join(session.DataClasses(), ", ") + `.
Then the estate's name has to be typed, or given with --confirm where there is
no terminal; that answers the question as well. A later run can delete what was kept.`,
		Annotations: map[string]string{streams: "yes"},
		Example: "  bastide destroy envs/staging\n" +
			"  bastide destroy envs/staging --delete-data postgres,buckets --confirm staging",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.writes, a.need = true, estate.Place
			r.path = args[0]
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error { return a.destroy(ctx, s, r) })
		},
	})
	cmd.Flags().BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	cmd.Flags().StringSliceVar(&r.data, "delete-data", nil, "classes of data to delete as well, such as postgres,buckets")
	cmd.Flags().StringVar(&r.typed, "confirm", "", "the estate's name, instead of typing it")
	return cmd
}

func (a *app) destroy(ctx context.Context, s *session.Session, r razing) error {
	name := s.Estate.Name
	if err := a.named(r, name); err != nil {
		return err
	}
	d, err := s.Teardown(ctx, r.data)
	if err != nil {
		return err
	}
	a.ui.Table(inventoryTable(name, d.Before))
	a.showKept(name, d.Kept)
	if len(d.Plan.Actions) == 0 && !d.Stored && d.Copies == 0 {
		return a.razed(name, d)
	}
	if err := a.mayRaze(ctx, name, d, r); err != nil {
		return err
	}
	a.resume = r.again(d.Data(), name)
	ctx, h, err := s.Hold(ctx)
	if err != nil {
		return err
	}
	if d, err = a.demolish(ctx, s, h, d, r); err != nil {
		h.Release(ctx, err)
		return err
	}
	if err := s.ClearReplica(ctx, d); err != nil {
		h.Release(ctx, err)
		return err
	}
	store, err := h.Retire(ctx, d.Takes(session.DataStore))
	if err != nil {
		return err
	}
	if store != "" {
		d.Kept = append(d.Kept, s.KeptStore(store))
	}
	return a.razed(name, d)
}

// demolish takes the estate down under its lock. What was agreed to is read
// again first: another run may have ended just now.
func (a *app) demolish(ctx context.Context, s *session.Session, h *session.Hold, agreed session.Demolition, r razing) (session.Demolition, error) {
	name := s.Estate.Name
	d, err := s.Teardown(ctx, r.data)
	if err != nil || len(d.Plan.Actions) == 0 {
		return d, err
	}
	if !reflect.DeepEqual(agreed.Plan.Actions, d.Plan.Actions) {
		a.ui.Table(inventoryTable(name, d.Before))
		a.showKept(name, d.Kept)
		if err := a.mayRaze(ctx, name, d, r); err != nil {
			return d, err
		}
	}
	progress, end := a.begin("destroy "+name, len(d.Plan.Actions))
	left, err := s.Destroy(ctx, &d, a.tells(progress, h))
	end()
	if err != nil {
		return d, err
	}
	a.ui.Table(inventoryTable(name, d.After))
	if len(left) > 0 {
		why := fmt.Sprintf("%d things are left", len(left))
		a.ui.Verdict(ui.Verdict{Sentence: name + " is not gone: " + why})
		return d, outcome.Fail("the estate is not gone", why, "run the command again")
	}
	return d, nil
}

// named refuses a command line that could not be carried out: without anybody
// to type the name, it has to be there.
func (a *app) named(r razing, name string) error {
	switch {
	case r.typed != "" && r.typed != name:
		return outcome.Refuse("nothing was done", fmt.Sprintf("--confirm says %s, the estate is %s", r.typed, name), "look at which environment you mean")
	case r.typed == "" && len(r.data) > 0 && !a.questions().Anybody():
		return outcome.Refuse("nothing was done", "data is deleted only when the estate's name is typed, and there is no terminal to type it on",
			"look at what would go, then add --confirm with the estate's name")
	}
	return nil
}

// mayRaze asks as much as is at stake: a yes for what can be made again, the
// estate's name for data.
func (a *app) mayRaze(ctx context.Context, name string, d session.Demolition, r razing) error {
	if r.typed == name {
		return nil
	}
	if data := d.Data(); len(data) > 0 {
		return a.questions().Typed(ctx, fmt.Sprintf("delete all of this but what is kept, with the data in %s? it cannot be brought back", strings.Join(data, ", ")), name)
	}
	if len(d.Plan.Actions) == 0 {
		return nil // only the estate's bucket may go, if it holds nothing that is missed
	}
	question := fmt.Sprintf("delete all of this, with the data on its %s?", count(d.Plan.Actions, "volume"))
	if len(d.Kept) > 0 {
		question = fmt.Sprintf("delete all of this but what is kept, with the data on its %s?", count(d.Plan.Actions, "volume"))
	}
	return a.confirm(ctx, r.yes, question)
}

// again is the command that goes on after a failure.
func (r razing) again(data []string, name string) string {
	command := "bastide destroy " + r.path
	if len(data) > 0 {
		command += " --delete-data " + strings.Join(data, ",") + " --confirm " + name
	}
	return command
}

// showKept says what stays, why, and how to be rid of it.
func (a *app) showKept(name string, kept []scaleway.Kept) {
	if len(kept) == 0 {
		return
	}
	t := ui.Table{Kind: "kept", Title: "kept of " + name, Columns: []string{"kind", "name", "id", "why", "delete with"}}
	for _, k := range kept {
		with := "" // what only carries something goes by itself once that is gone
		if k.Class != "" {
			with = "--delete-data " + string(k.Class)
		}
		t.Rows = append(t.Rows, []string{string(k.Item.Kind), k.Item.Name, k.Item.CloudID, k.Why, with})
	}
	a.ui.Table(t)
}

// razed is the verdict over a teardown that left what it was to leave. What
// could not be read is never said to be clean.
func (a *app) razed(name string, d session.Demolition) error {
	a.showLookalikes(d)
	sentence := "nothing of " + name + " exists at Scaleway"
	if len(d.Kept) > 0 {
		sentence = everythingBut(name, d.Kept)
	}
	if d.Replica != "" {
		sentence += fmt.Sprintf("; copies of its secrets bundle in the replica %s were not looked at and stay, --delete-data %s deletes them", d.Replica, session.DataStore)
	}
	unread := strings.Join(d.Unread(), ", ")
	if unread == "" {
		a.ui.Verdict(ui.Verdict{Passed: true, Sentence: sentence})
		return nil
	}
	a.ui.Verdict(ui.Verdict{Sentence: "what could be read says that " + sentence + "; not read: " + unread})
	return outcome.Unproven(outcome.CannotTell("it is not certain that "+name+" is gone", "the API key may not read "+unread,
		"run the command again with a key that may, or look there yourself"))
}

// everythingBut says what stays, in the order of the inventory.
func everythingBut(name string, kept []scaleway.Kept) string {
	var hold, data []string
	for _, k := range kept {
		hold = append(hold, string(k.Item.Kind)+" "+k.Item.Name)
		if class := string(k.Class); class != "" && !slices.Contains(data, class) {
			data = append(data, class)
		}
	}
	return fmt.Sprintf("everything of %s is gone but what was kept: %s; --delete-data %s deletes that too", name, strings.Join(hold, ", "), strings.Join(data, ","))
}

// showLookalikes names what may be the estate's and was left, as nothing ties it
// to the estate.
func (a *app) showLookalikes(d session.Demolition) {
	inv := d.After
	if inv == nil {
		inv = d.Before
	}
	if len(inv.Lookalikes) == 0 {
		return
	}
	t := ui.Table{Kind: "lookalikes", Title: "not the estate's as far as can be told, and left", Columns: []string{"kind", "name", "id", "zone", "why"}}
	for _, l := range inv.Lookalikes {
		t.Rows = append(t.Rows, []string{string(l.Kind), l.Name, l.ID, l.Zone, l.Why})
	}
	a.ui.Table(t)
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
