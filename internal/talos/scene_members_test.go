package talos

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"

	"bastide/internal/outcome"
	"bastide/internal/plan"
)

// Field report 03: the second node stays in Preparing.
func TestFieldReport03ANodeThatStaysInPreparingIsNamed(t *testing.T) {
	s := newScene(t).must(controlPlane...)
	s.farm.with("staging-cp-2", func(n *fakeNode) { n.stuck, n.message = true, "timeout building initial cluster" })
	s.must(etcdUp)
	for deadline := time.Now().Add(time.Minute); len(s.cluster.EtcdHealth(context.Background()).Voters()) < 2; {
		if time.Now().After(deadline) {
			t.Fatal("the third node does not join")
		}
	}
	limits := quick
	limits.Etcd = time.Millisecond
	s.with(limits)
	s.refuses(s.apply("etcd-members/staging"), outcome.Failed, "2 of 3 voters", "not yet: staging-cp-2", "Preparing", "timeout building initial cluster", "[##][##]")
}

// Field report 04: a learner takes its time; that is not an error.
func TestFieldReport04ALearnerTakesItsTime(t *testing.T) {
	s := newScene(t).must(controlPlane...)
	s.farm.with("staging-cp-2", func(n *fakeNode) { n.learnFor = 12 })
	s.must(etcdUp, "etcd-members/staging")
	s.transcript(
		"staging-cp-1 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-cp-2 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-cp-3 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-cp-1 Bootstrap",
	)
	if Defaults().Etcd < 5*time.Minute {
		t.Error("the deadline for etcd is below five minutes")
	}
}

// A learner whose node restarts is not promoted any more: waiting is in vain, and
// said to be at once.
func TestALearnerWhoseNodeRestartedIsNotWaitedFor(t *testing.T) {
	s := newScene(t).must(controlPlane...)
	s.farm.with("staging-cp-2", func(n *fakeNode) { n.learnFor = -1 })
	s.farm.with("staging-cp-3", func(n *fakeNode) { n.stuck = true })
	s.must(etcdUp)
	learns := func() bool {
		return slices.ContainsFunc(s.cluster.EtcdHealth(context.Background()).Nodes, func(n EtcdNode) bool { return n.Learner })
	}
	for deadline := time.Now().Add(time.Minute); !learns(); {
		if time.Now().After(deadline) {
			t.Fatal("the second node does not become a learner")
		}
	}
	s.farm.with("staging-cp-2", func(n *fakeNode) { n.booted = n.joined.Add(time.Minute) })
	s.refuses(s.apply("etcd-members/staging"), outcome.Failed, "staging-cp-2 stays a learner of etcd", "promotes a member only in the start that added it",
		"talosctl -n 172.16.0.5 reset --graceful=false --reboot --system-labels-to-wipe=EPHEMERAL")
	s.transcript(
		"staging-cp-1 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-cp-2 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-cp-3 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-cp-1 Bootstrap",
	)
}

// A node that restarts between the addition of its member and its start is not
// let in again; that is told with the command that makes room, and soon.
func TestAMemberThatWasAddedAndNeverStarts(t *testing.T) {
	s := newScene(t).must(controlPlane...)
	for _, name := range []string{"staging-cp-2", "staging-cp-3"} {
		s.farm.with(name, func(n *fakeNode) { n.stuck = true })
	}
	s.must(etcdUp)
	add := func(peer string) {
		s.farm.with("staging-cp-1", func(n *fakeNode) {
			n.farm.clusters[n.cluster].added = []*machine.EtcdMember{{Id: 0xbfac3b7805c765bb, IsLearner: true, PeerUrls: []string{"https://" + peer + ":2380"}}}
		})
	}
	add("172.16.0.5")
	s.refuses(s.apply("etcd-members/staging"), outcome.Failed, "staging-cp-2 does not get into etcd", "added and has not begun to start since",
		"talosctl -n 172.16.0.4 etcd remove-member bfac3b7805c765bb")

	add("172.16.0.99") // nobody knows whose it is: it may be starting
	limits := quick
	limits.Etcd = 500 * time.Millisecond
	s.with(limits)
	s.refuses(s.apply("etcd-members/staging"), outcome.Failed, "etcd has 1 of 3 voters", "not yet: staging-cp-2, staging-cp-3")
}

// A command that was given less time than the step says the same as the step's
// own deadline: which node, in what state, and what it said last.
func TestTheTimeOfTheCommandIsOver(t *testing.T) {
	s := newScene(t).must(controlPlane...)
	s.farm.with("staging-cp-2", func(n *fakeNode) { n.stuck, n.message = true, "timeout building initial cluster" })
	s.must(etcdUp)
	for _, c := range []struct {
		step  string
		words []string
	}{
		{"etcd-members/staging", []string{"of 3 voters", "staging-cp-2", "Preparing", "timeout building initial cluster"}},
		{"machine/staging-system-1", []string{"staging-system-1 was not configured within", "it was last seen refusing"}},
	} {
		s.farm.with("staging-system-1", func(n *fakeNode) { n.state = Refusing })
		step, _ := s.graph.Step(c.step)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := s.cluster.Apply(ctx, plan.Action{Step: step, Op: plan.Create}, cloud(s.estate))
		cancel()
		s.refuses(err, outcome.Failed, c.words...)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	step, _ := s.graph.Step("etcd-members/staging")
	if _, err := s.cluster.Apply(stopped, plan.Action{Step: step, Op: plan.Create}, cloud(s.estate)); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that somebody stopped says %v", err)
	}
}
