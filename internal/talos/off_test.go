package talos

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/plan"
)

// A machine that the cloud says is off is neither asked nor waited for, and is
// not said to be missing. One that is on its way, or unknown, is not off.
func TestMachinesThatAreOff(t *testing.T) {
	e := testEstate(t)
	live := plan.Live{Steps: map[string]plan.Observed{}}
	power := func(node, state string, settled bool) {
		id := "power/" + node
		live.Steps[id] = plan.Observed{Step: id, Settled: settled, Spec: blueprint.Power{State: state}}
	}
	power("staging-cp-1", "running", true)
	power("staging-cp-2", "stopped", true)
	power("staging-cp-3", "stopped", false)
	power("staging-system-1", "stopped in place", true)
	asked := make(chan string, 16)
	c := &Cluster{estate: e, limits: Defaults(), note: func(string, string) {}, dial: func(_ context.Context, _, address string) (net.Conn, error) {
		asked <- address
		return nil, net.ErrClosed
	}}
	off := c.Off(live)
	if !slices.Equal(off, []string{"staging-cp-2", "staging-system-1"}) {
		t.Fatalf("off: %v", off)
	}
	health, nodes := c.EtcdHealth(t.Context(), off...), c.Nodes(t.Context(), off...)
	if len(asked) != 2+len(e.Nodes())-len(off) {
		t.Errorf("%d connections were tried", len(asked))
	}
	for _, n := range health.Nodes {
		if (n.Problem == machineOff) != (n.Node == "staging-cp-2") {
			t.Errorf("%s: %s", n.Node, n.Problem)
		}
	}
	for _, n := range nodes {
		if (n.Stage == "off") != slices.Contains(off, n.Name) || n.State == Ours {
			t.Errorf("%+v", n)
		}
	}
	if health.Bootstrapped() || health.untouched() {
		t.Error("of a machine that is off nothing is certain")
	}
}

// Machines that are off hold something or nothing: that shows when they run. No
// part of the cluster is said not to exist for it, Kubernetes included.
func TestAControlPlaneThatIsOffIsNotAbsent(t *testing.T) {
	cluster := []string{"machine/staging-cp-1", "machine/staging-cp-2", "machine/staging-cp-3", etcdUp, "etcd-members/staging", "kubernetes-nodes/staging"}
	for name, c := range map[string]struct {
		power func(known)
		node  func(*fakeNode)
		want  plan.Op
	}{
		"off":           {power: func(k known) { k.power("stopped", true) }, want: plan.Wait},
		"stopping":      {power: func(k known) { k.power("stopped", false) }, want: plan.Wait},
		"not answering": {power: func(known) {}, node: func(n *fakeNode) { n.state = Unreachable }, want: plan.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t).up()
			live := cloud(s.estate)
			c.power(live)
			if c.node != nil {
				for _, n := range s.cluster.controlPlaneNodes() {
					s.farm.with(n.Name, c.node)
				}
			}
			seen, err := s.cluster.Observe(t.Context(), s.graph, plan.Live{Steps: live})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range plan.Make(s.graph, seen).Actions {
				if slices.Contains(cluster, a.Step.ID) && a.Op != c.want {
					t.Errorf("%s: %s (%s), want %s", a.Step.ID, a.Op, a.Reason, c.want)
				}
			}
		})
	}
}

// power gives the control plane's machines a state.
func (k known) power(state string, settled bool) {
	for id := range k {
		if strings.HasPrefix(id, "power/staging-cp-") {
			k[id] = plan.Observed{Step: id, Settled: settled, Spec: blueprint.Power{State: state}}
		}
	}
}
