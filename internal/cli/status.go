package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/session"
	"bastide/internal/talos"
	"bastide/internal/ui"
)

func (a *app) statusCommand() *cobra.Command {
	return env(&cobra.Command{
		Use:   "status ENV",
		Short: "Show the cloud, the nodes, etcd with its quorum, and Kubernetes",
		Long: `Show the cloud, the nodes, etcd with its quorum, and Kubernetes, and repeat the
checks on the running nodes that end up. Exit code 1 says that something is not
as it should be; the sentences at the end say what. A node that answers as
another cluster's ends it with 3, after the rest was shown. Where the way to the
nodes is shut, what is at Scaleway is shown, and the exit code is 4: how the nodes
are is not known.`,
		Example: "  bastide status envs/staging",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.patience = time.Nanosecond // one look: status says what is, now
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error {
				st, err := s.Status(ctx)
				if err != nil {
					return err
				}
				shown := statusOf(s.Estate.Name, st)
				a.ui.Status(shown)
				if st.Stranger != nil {
					return st.Stranger
				}
				if err := st.Survey.Barred(); err != nil {
					return err
				}
				if !shown.Healthy {
					return exit(outcome.Failed)
				}
				return nil
			})
		},
	})
}

// statusOf lays out what was read. An estate of which nothing exists is not
// unhealthy: there is nothing.
func statusOf(name string, st *session.Status) ui.Status {
	out := ui.Status{Estate: name}
	for _, it := range st.Inventory.Items {
		out.Cloud = append(out.Cloud, ui.CloudItem{Kind: string(it.Kind), Name: it.Name, ID: it.CloudID, Zone: it.Zone,
			State: it.Status, OK: it.Settled && it.Broken == "", Note: it.Broken})
		if it.Broken != "" {
			out.Problems = append(out.Problems, fmt.Sprintf("%s %s: %s", it.Kind, it.Name, it.Broken))
		}
	}
	if len(out.Cloud) == 0 {
		out.Healthy = true
		return out
	}
	off := offNodes(st)
	for _, action := range st.Survey.Plan().Actions {
		if action.Op == plan.Unknown && st.Survey.Barred() != nil {
			continue // said once, for all
		}
		// Of a machine that is off nothing can be seen; that it is off is said.
		if action.Op != plan.Keep && !(action.Step.Kind.Cluster() && slices.Contains(off, action.Step.Node)) {
			out.Problems = append(out.Problems, fmt.Sprintf("%s: %s", action.Step.ID, action.Reason))
		}
	}
	for _, stray := range st.Survey.Live.Strays {
		out.Problems = append(out.Problems, fmt.Sprintf("%s %s (%s): %s", stray.Kind, stray.Name, stray.CloudID, stray.Why))
	}
	var shut *outcome.Error
	if errors.As(st.Survey.Barred(), &shut) {
		out.Problems = append(out.Problems, fmt.Sprintf("nodes, etcd and Kubernetes were not asked: %s: %s", shut.What, shut.Why))
	}
	nodesOf(st, &out)
	etcdOf(st.Etcd, &out)
	kubernetesOf(st, &out)
	checksOf(st, &out)
	for i, p := range out.Problems {
		out.Problems[i] = strings.ReplaceAll(strings.TrimSpace(p), "\n", "; ") // one line each
	}
	out.Healthy = len(out.Problems) == 0
	return out
}

// checksOf tells what failed of the checks that end up. What has been told in
// another way is not told twice, unless it is all that is wrong.
func checksOf(st *session.Status, out *ui.Status) {
	failed := talos.Failed(st.Checks)
	if len(out.Problems) > 0 {
		failed = slices.DeleteFunc(failed, func(c talos.Check) bool { return !c.Own() })
	}
	for _, c := range failed {
		out.Problems = append(out.Problems, fmt.Sprintf("%s: %s: have %s, want %s; %s", c.Node, c.Name, c.Have, c.Want, c.Fix))
	}
}

func offNodes(st *session.Status) []string {
	if st.Survey.Cluster == nil {
		return nil
	}
	return st.Survey.Cluster.Off(st.Survey.Live)
}

func nodesOf(st *session.Status, out *ui.Status) {
	kube := map[string]talos.KubernetesNode{}
	for _, n := range st.Kubernetes {
		kube[n.Name] = n
	}
	for _, n := range st.Nodes {
		item := ui.NodeItem{Name: n.Name, Role: string(n.Role), Address: n.Address.String(), Power: power(st, n.Name),
			Stage: orState(n.Stage, string(n.State)), Talos: n.Version, Kube: "absent", Note: n.Problem}
		if st.APIErr != nil {
			item.Kube = "unknown"
		}
		if k, ok := kube[n.Name]; ok {
			item.Kube = "Ready"
			if !k.Ready {
				item.Kube, item.Note = "NotReady", strings.TrimSpace(item.Note+" "+k.Why)
			}
		}
		item.OK = n.State == talos.Ours && n.Problem == "" && item.Kube == "Ready"
		if n.Staged {
			item.OK, item.Note = false, "a change waits for a reboot"
		}
		if !item.OK {
			out.Problems = append(out.Problems, fmt.Sprintf("%s is %s, Kubernetes says %s: %s", n.Name, item.Stage, item.Kube, orState(item.Note, "no reason was given")))
		}
		out.Nodes = append(out.Nodes, item)
	}
}

func power(st *session.Status, node string) string {
	if o, ok := st.Survey.Live.Steps["power/"+node]; ok {
		return o.Status
	}
	return "absent"
}

func orState(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func etcdOf(h *talos.EtcdHealth, out *ui.Status) {
	if h == nil {
		return
	}
	e := &ui.Etcd{Picture: h.Members.Bar(), OK: h.Members.Has() && h.Split == ""}
	missing := "no member"
	if h.Bootstrapped() && len(h.Members) == 0 {
		missing = "unknown"
		e.Picture = "the members could not be listed; as the file has them:\n" + h.Assumed().Bar()
		out.Problems = append(out.Problems, "etcd's members could not be listed, as when quorum is lost")
	}
	for _, n := range h.Nodes {
		m := ui.EtcdMember{Name: n.Node, ID: fmt.Sprintf("%016x", n.MemberID), Role: "voter", Leader: n.Leader,
			Healthy: n.Problem == "" && len(n.Errors) == 0 && n.MemberID != 0, Size: n.DBSize, Note: n.Problem}
		if n.MemberID == 0 {
			m.ID, m.Role = memberOf(h, n.Node, missing)
		} else if n.Learner {
			m.Role = "learner"
		}
		if !m.Healthy {
			m.Note = n.State()
			out.Problems = append(out.Problems, fmt.Sprintf("etcd on %s: %s", n.Node, m.Note))
		}
		e.Alarms = append(e.Alarms, n.Alarms...)
		e.Members = append(e.Members, m)
	}
	if voters := len(h.Voters()); h.Bootstrapped() && len(h.Members) > 0 && voters < len(h.Nodes) {
		out.Problems, e.OK = append(out.Problems, fmt.Sprintf("etcd has %d of %d voters", voters, len(h.Nodes))), false
	}
	for _, alarm := range e.Alarms {
		out.Problems, e.OK = append(out.Problems, "etcd alarm: "+alarm), false
	}
	if h.Split != "" {
		out.Problems = append(out.Problems, "etcd is split: "+h.Split)
	}
	out.Etcd = e
}

// memberOf is what the member list says of a node that does not answer itself.
func memberOf(h *talos.EtcdHealth, node, otherwise string) (id, role string) {
	for _, m := range h.Members {
		switch {
		case m.Name != node:
		case m.Voter:
			return fmt.Sprintf("%016x", m.ID), "voter"
		default:
			return fmt.Sprintf("%016x", m.ID), "learner"
		}
	}
	return "", otherwise
}

func kubernetesOf(st *session.Status, out *ui.Status) {
	if st.Endpoint == "" {
		return
	}
	k := &ui.Kubernetes{Endpoint: st.Endpoint, Version: st.Version, Reachable: st.APIErr == nil, Nodes: len(st.Nodes)}
	for _, n := range st.Kubernetes {
		if n.Ready {
			k.Ready++
		}
	}
	if st.APIErr != nil {
		k.Note = st.APIErr.Error()
		out.Problems = append(out.Problems, "the Kubernetes API does not answer: "+k.Note)
	}
	out.Kubernetes = k
}
