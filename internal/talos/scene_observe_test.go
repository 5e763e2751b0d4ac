package talos

import (
	"context"
	"strings"
	"testing"
	"time"

	"bastide/internal/outcome"
	"bastide/internal/plan"
)

func TestObserve(t *testing.T) {
	cases := []struct {
		name    string
		arrange func(*scene)
		ops     map[string]plan.Op
	}{
		{"nothing configured", func(*scene) {}, map[string]plan.Op{
			"machine/staging-cp-1": plan.Create, "machine/staging-system-1": plan.Create, etcdUp: plan.Create, "etcd-members/staging": plan.Create, "kubernetes-nodes/staging": plan.Create}},
		{"a node that boots is unknown, not absent", func(s *scene) { s.farm.with("staging-cp-1", func(n *fakeNode) { n.state = Unreachable }) }, map[string]plan.Op{
			"machine/staging-cp-1": plan.Unknown, etcdUp: plan.Unknown, "machine/staging-cp-2": plan.Create}},
		{"a worker that has not joined is on its way", func(s *scene) { s.must("machine/staging-system-1") }, map[string]plan.Op{
			"machine/staging-system-1": plan.Wait, "machine/staging-system-2": plan.Create}},
		{"configured, not bootstrapped", func(s *scene) { s.must(controlPlane...) }, map[string]plan.Op{
			"machine/staging-cp-1": plan.Keep, etcdUp: plan.Create}},
		{"live", func(s *scene) { s.up() }, map[string]plan.Op{
			"machine/staging-cp-1": plan.Keep, etcdUp: plan.Keep, "etcd-members/staging": plan.Keep, "kubernetes-nodes/staging": plan.Update}},
		{"a member that is down", func(s *scene) {
			s.up()
			s.farm.with("staging-cp-2", func(n *fakeNode) { n.state = Unreachable })
		}, map[string]plan.Op{"machine/staging-cp-2": plan.Unknown, "machine/staging-cp-1": plan.Keep, etcdUp: plan.Keep, "etcd-members/staging": plan.Wait}},
		{"a change", func(s *scene) { s.up().change(immediate) }, map[string]plan.Op{
			"machine/staging-cp-1": plan.Update, "machine/staging-cp-3": plan.Update, "etcd-members/staging": plan.Keep}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			c.arrange(s)
			live, err := s.observe()
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range plan.Make(s.graph, live).Actions {
				if want, ok := c.ops[a.Step.ID]; ok && a.Op != want {
					t.Errorf("%s: %s (%s), want %s", a.Step.ID, a.Op, a.Reason, want)
				}
			}
		})
	}
}

// The plan shows what differs, without secrets, and what changing it costs.
func TestObserveShowsTheDifference(t *testing.T) {
	for patch, cost := range map[string]plan.Disruption{immediate: plan.Restart, rebootOnly: plan.Reboot} {
		s := newScene(t).up().change(patch)
		live, err := s.observe()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range plan.Make(s.graph, live).Actions {
			if a.Step.ID != "machine/staging-cp-2" {
				continue
			}
			text := strings.Join(a.Detail, "\n")
			if a.Disruption != cost || !strings.Contains(text, "+") {
				t.Errorf("%q: %s\n%s", patch, a.Disruption, text)
			}
			for _, secret := range bundle(t).Secrets() {
				if strings.Contains(text, secret.Reveal()) {
					t.Error("the difference shows a secret")
				}
			}
		}
	}
}

func TestObserveLeavesMachinesThatAreOffAlone(t *testing.T) {
	s := newScene(t)
	live, err := s.cluster.Observe(context.Background(), s.graph, plan.Live{})
	if err != nil {
		t.Fatal(err)
	}
	if len(live.Steps)+len(live.Unreachable) != 0 {
		t.Errorf("observed %+v", live)
	}
}

// The time of the command is over while a node is waited for: it is named.
func TestObserveThatIsCutShortNamesTheNode(t *testing.T) {
	limits := quick
	limits.Patience = time.Minute
	s := newScene(t).up().with(limits)
	s.farm.with("staging-cp-3", func(n *fakeNode) { n.state = Unreachable })
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := s.cluster.Observe(ctx, s.graph, plan.Live{Steps: cloud(s.estate)})
	s.refuses(err, outcome.Unknown, "the state of staging-cp-3", "unreachable")
}

// A worker refuses for as long as it has not joined, which may be long; one that
// has joined restarts, and is back soon.
func TestAJoinedWorkerThatRestartsIsWaitedFor(t *testing.T) {
	limits := quick
	limits.Patience = time.Minute
	s := newScene(t).must("machine/staging-system-1").with(limits)
	worker, _ := s.cluster.node("staging-system-1")
	sights := []sight{{node: worker, powered: true, contact: contact{state: Refusing}}}
	s.cluster.lookAgain(context.Background(), Seen{sights: sights})
	if sights[0].looks != 0 {
		t.Error("a worker that has not joined is waited for")
	}
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		s.cluster.lookAgain(context.Background(), Seen{sights: sights, known: []KubernetesNode{{Name: "staging-system-1"}}})
	}()
	s.farm.with("staging-system-1", func(n *fakeNode) { n.state = Ours })
	<-waited
	if sights[0].contact.state != Ours || sights[0].err != nil {
		t.Errorf("it is %s, %v", sights[0].contact.state, sights[0].err)
	}
}
