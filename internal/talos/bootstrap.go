package talos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/quorum"
)

// applyBootstrap makes sure that there is one etcd cluster. Talos's Bootstrap
// is not idempotent across nodes: sent to a second one it makes a second
// cluster. So every control plane node is asked first; one that has members is
// adopted; one that cannot be asked stops everything; and only when it is
// certain that none ever ran etcd is Bootstrap sent, always to the first.
func (c *Cluster) applyBootstrap(ctx context.Context, a plan.Action) (plan.Observed, error) {
	b := &bootstrap{c: c, first: c.controlPlaneNodes()[0]}
	err := c.until(ctx, c.limits.Etcd, b.look, b.expired)
	if err != nil {
		return plan.Observed{}, err
	}
	return plan.Observed{Step: a.Step.ID, Status: "bootstrapped", Settled: true, Spec: blueprint.EtcdBootstrap{Done: true}}, nil
}

type bootstrap struct {
	c         *Cluster
	first     estate.Node
	untouched time.Time // since when every node was seen untouched, without a gap
	sent      bool      // one may have arrived
	accepted  int       // how many were
	boot      string    // of the node, when it accepted the last one
	last      EtcdHealth
	refused   string // what the node said when it was not ready
}

func (b *bootstrap) look(ctx context.Context) error {
	health := b.c.EtcdHealth(ctx)
	if ctx.Err() != nil {
		return nil // cut short: it says nothing of the nodes
	}
	b.last = health
	if b.last.Bootstrapped() {
		if b.last.divided() && !b.sent {
			return b.split()
		}
		return errStop // lists that differ while members join are the next step's to wait for
	}
	b.c.note(b.first.Name, "etcd: "+b.last.Nodes[0].Service)
	if !b.last.untouched() {
		b.untouched = time.Time{}
		return nil // ask again; at the deadline this is unknown, not absent
	}
	if b.untouched.IsZero() {
		b.untouched = time.Now()
	}
	if time.Since(b.untouched) < b.settle() {
		return nil
	}
	return b.send(ctx)
}

// settle is how long all must have been seen untouched. A node that an earlier
// run configured may have been sent a Bootstrap in that run's last moment and
// not yet show it; the same holds after an answer of our own was lost.
func (b *bootstrap) settle() time.Duration {
	if b.c.isFresh(b.first.Name) && !b.sent {
		return 0
	}
	return b.c.limits.Settle
}

func (b *bootstrap) send(ctx context.Context) error {
	s, err := b.c.open(b.first)
	if err != nil {
		return err
	}
	defer s.close()
	boot, err := s.bootID(ctx)
	switch {
	case err != nil || boot == b.boot:
		// What was accepted in this boot is under way, however long it takes:
		// etcd's image has to be pulled before anything shows.
		return nil
	case b.accepted == maxBootstraps:
		return b.forgotten()
	}
	call, cancel := context.WithTimeout(ctx, b.c.limits.Send)
	defer cancel()
	b.c.note(b.first.Name, "bootstrapping etcd")
	_, err = s.machine.Bootstrap(call, &machine.BootstrapRequest{})
	b.untouched = time.Time{}
	switch err = b.c.clean(err); {
	case err == nil:
		b.sent, b.boot = true, boot
		b.accepted++
		return nil
	case code(err) == codes.AlreadyExists:
		b.sent = true // it is what an earlier attempt did
		return nil
	case code(err) == codes.FailedPrecondition:
		b.refused = err.Error() // not ready yet; nothing was done
		return nil
	case ambiguous(err):
		// It may have worked. All nodes are asked again, and only if none
		// shows anything for a while is it sent once more, to the same node.
		b.sent = true
		return nil
	}
	return outcome.Fail("etcd could not be bootstrapped on "+b.first.Name, "", "see the node's log with `talosctl dmesg`, then run `bastide up` again").Because(err)
}

// maxBootstraps is how often a run lets itself be told that etcd is being made.
// A node that restarts in the middle comes back as if it had never been asked;
// one that does so twice does not keep what it is told.
const maxBootstraps = 2

func (b *bootstrap) forgotten() error {
	return outcome.Fail(fmt.Sprintf("etcd does not stay on %s: it accepted Bootstrap %d times and holds nothing of it", b.first.Name, b.accepted),
		strings.ReplaceAll(b.last.Describe(), "\n", "; "), "see why the node restarts or loses /var with `talosctl dmesg`, then run `bastide up` again")
}

func (b *bootstrap) split() error {
	return outcome.CannotTell("etcd cannot be bootstrapped or adopted", b.last.Split, "find out which of the clusters is the right one; nothing was changed\n"+b.last.Describe())
}

func (b *bootstrap) expired(after time.Duration) error {
	why := strings.ReplaceAll(b.last.Describe(), "\n", "; ")
	if b.refused != "" {
		why += "; the last answer to Bootstrap was: " + b.refused
	}
	if b.sent {
		return outcome.Fail(fmt.Sprintf("etcd did not come up on %s within %s", b.first.Name, after), why, "see `talosctl dmesg` and `talosctl logs etcd` of that node, then run `bastide up` again")
	}
	return outcome.CannotTell("etcd was not bootstrapped", "it is not certain that no control plane node is part of an etcd cluster: "+why,
		"bring the nodes that do not answer back, then run `bastide up` again")
}

// applyMembers waits until every control plane node is a healthy voter of one
// etcd cluster. A learner is on its way, not at fault: it catches up, and its
// promotion can take minutes.
func (c *Cluster) applyMembers(ctx context.Context, a plan.Action) (plan.Observed, error) {
	want := a.Step.Spec.(blueprint.EtcdMembers).Voters
	var last EtcdHealth
	halfway := unstarted{c: c}
	err := c.until(ctx, c.limits.Etcd, func(ctx context.Context) error {
		health := c.EtcdHealth(ctx)
		if ctx.Err() != nil {
			return nil
		}
		last = health
		missing := c.missing(last, want)
		if len(missing) == 0 {
			return errStop
		}
		if err := cmp.Or(c.strandedLearner(last), halfway.look(last)); err != nil {
			return err
		}
		for _, name := range missing {
			c.note(name, "etcd: "+serviceOf(last, name))
		}
		return nil
	}, func(after time.Duration) error { return c.membersFailure(last, want, after) })
	if err != nil {
		return plan.Observed{}, err
	}
	return plan.Observed{Step: a.Step.ID, Status: "healthy", Settled: true, Spec: blueprint.EtcdMembers{Voters: last.Voters()}}, nil
}

// missing lists the nodes that are not healthy voters of the one cluster that
// all agree on.
func (c *Cluster) missing(h EtcdHealth, want []string) []string {
	if h.Split != "" {
		return want
	}
	var out []string
	for _, name := range want {
		if !slices.ContainsFunc(h.Members, func(m quorum.Member) bool { return m.Name == name && m.Voter && m.Healthy }) {
			out = append(out, name)
		}
	}
	return out
}

func (c *Cluster) membersFailure(h EtcdHealth, want []string, after time.Duration) error {
	missing := c.missing(h, want)
	var why []string
	for _, name := range missing {
		why = append(why, name+": "+serviceOf(h, name))
	}
	if h.Split != "" {
		why = append(why, h.Split)
	}
	return outcome.Fail(fmt.Sprintf("etcd has %d of %d voters after %s; not yet: %s", len(want)-len(missing), len(want), after, strings.Join(missing, ", ")),
		strings.Join(why, "; ")+"\n"+h.Members.Picture(), c.remedy(h, missing))
}

// remedy is what helps nodes that did not become voters: one that does not answer
// has to come back first; for a learner it is known, whether or not it was seen
// to have restarted.
func (c *Cluster) remedy(h EtcdHealth, missing []string) string {
	for _, n := range h.Nodes {
		switch {
		case !slices.Contains(missing, n.Node):
		case n.Service == "":
			return fmt.Sprintf("bring %s back, then run `bastide up` again", n.Node)
		case n.Learner:
			return fmt.Sprintf("run `bastide up` again; if %s restarted since it joined it is not promoted any more: %s", n.Node, c.joinAnew(n.Node))
		}
	}
	return "see `talosctl logs etcd` of these nodes, then run `bastide up` again"
}

func serviceOf(h EtcdHealth, name string) string {
	for _, n := range h.Nodes {
		if n.Node == name {
			return n.State()
		}
	}
	return "no such node"
}
