package talos

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bastide/internal/outcome"
)

func TestSceneFreshEstate(t *testing.T) {
	s := newScene(t).must("machine/staging-system-1", "machine/staging-system-2").up()
	s.transcript(
		"staging-system-1 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-system-2 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-cp-1 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-cp-2 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-cp-3 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-cp-1 Bootstrap",
	)
	live, err := s.observe()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range append(controlPlane, etcdUp, "etcd-members/staging") {
		if !live.Steps[id].Settled {
			t.Errorf("%s is not settled: %+v", id, live.Steps[id])
		}
	}
	s.rerun().up()
	if n := len(s.farm.changes()); n != 6 {
		t.Errorf("a second run changed something: %v", s.farm.changes())
	}
}

// Field report 01: members exist although nothing remembers the bootstrap.
func TestFieldReport01BootstrapIsNotSentToALiveEtcd(t *testing.T) {
	s := newScene(t).up()
	s.rerun().must(etcdUp, "etcd-members/staging")
	if n := s.count("Bootstrap"); n != 1 {
		t.Errorf("%d Bootstraps", n)
	}
	// The first node was replaced and is empty; the cluster lives on the others.
	s.farm.with("staging-cp-1", func(n *fakeNode) { n.cluster, n.etcd, n.stuck = "", "Preparing", true })
	s.rerun().must(etcdUp)
	if n := s.count("Bootstrap"); n != 1 {
		t.Errorf("an empty first node was bootstrapped into a second cluster: %v", s.farm.changes())
	}
}

func TestBootstrapIsNotSentWhileANodeCannotBeAsked(t *testing.T) {
	for _, state := range []State{Unreachable, Refusing, Maintenance} {
		t.Run(string(state), func(t *testing.T) {
			limits := quick
			limits.Etcd = 200 * time.Millisecond // more than Settle: a Bootstrap would be sent if it were ever
			s := newScene(t).with(limits).must(controlPlane...)
			s.farm.with("staging-cp-3", func(n *fakeNode) { n.state = state })
			err := s.apply(etcdUp)
			s.refuses(err, outcome.Unknown, "etcd was not bootstrapped", "staging-cp-3")
			if n := s.count("Bootstrap"); n != 0 {
				t.Errorf("%d Bootstraps", n)
			}
		})
	}
}

func TestBootstrapWhoseAnswerIsLost(t *testing.T) {
	s := newScene(t).must(controlPlane...)
	s.farm.with("staging-cp-1", func(n *fakeNode) {
		n.after = func(_ *fakeNode, method string) error {
			if method == "Bootstrap" {
				return status.Error(codes.Unavailable, "connection lost")
			}
			return nil
		}
	})
	s.must(etcdUp, "etcd-members/staging")
	if n := s.count("Bootstrap"); n != 1 {
		t.Errorf("%d Bootstraps", n)
	}
}

func TestBootstrapThatNeverArrived(t *testing.T) {
	s := newScene(t).must(controlPlane...)
	dropped := false
	s.farm.with("staging-cp-1", func(n *fakeNode) {
		n.before = func(_ *fakeNode, method string) error {
			if method == "Bootstrap" && !dropped {
				dropped = true
				return status.Error(codes.Unavailable, "connection lost")
			}
			return nil
		}
	})
	s.must(etcdUp)
	s.transcript(
		"staging-cp-1 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-cp-2 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-cp-3 ApplyConfiguration NO_REBOOT in maintenance",
		"staging-cp-1 Bootstrap",
	)
}

func TestBootstrapWaitsForTheNode(t *testing.T) {
	s := newScene(t).must(controlPlane...)
	answers := []string{"bootstrap is not available yet", "time is not in sync yet"}
	s.farm.with("staging-cp-1", func(n *fakeNode) {
		n.before = func(_ *fakeNode, method string) error {
			if method != "Bootstrap" || len(answers) == 0 {
				return nil
			}
			err := status.Error(codes.FailedPrecondition, answers[0])
			answers = answers[1:]
			return err
		}
	})
	s.must(etcdUp)
	if n := s.count("Bootstrap"); n != 1 || len(answers) != 0 {
		t.Errorf("%d Bootstraps, %v left", n, answers)
	}
}

// A run was killed after its Bootstrap and before the node shows anything: the
// next run must not send another.
func TestBootstrapByAnEarlierRunThatDoesNotShowYet(t *testing.T) {
	s := newScene(t).must(controlPlane...)
	s.farm.with("staging-cp-1", func(n *fakeNode) {
		looks := 0
		n.before = func(n *fakeNode, method string) error {
			if method == "ServiceList" {
				if looks++; looks == 3 {
					n.farm.mu.Lock()
					n.join(n.name)
					n.farm.mu.Unlock()
				}
			}
			return nil
		}
	})
	limits := quick
	limits.Settle = time.Minute
	s.with(limits).must(etcdUp)
	if n := s.count("Bootstrap"); n != 0 {
		t.Errorf("%d Bootstraps", n)
	}
}

func TestTwoClustersAreNotAdopted(t *testing.T) {
	s := newScene(t).must(controlPlane...)
	s.farm.with("staging-cp-1", func(n *fakeNode) { n.join("a") })
	s.farm.with("staging-cp-2", func(n *fakeNode) { n.join("b") })
	s.farm.with("staging-cp-3", func(n *fakeNode) { n.stuck = true })
	s.refuses(s.apply(etcdUp), outcome.Unknown, "list different members")
}

// A run that was killed right after its Bootstrap leaves a cluster that grows
// while the next one looks: nodes that were asked a moment apart then list
// different members of one cluster.
func TestAClusterThatGrowsIsAdopted(t *testing.T) {
	s := newScene(t).must(controlPlane...)
	s.farm.with("staging-cp-1", func(n *fakeNode) { n.join("a") })
	s.farm.with("staging-cp-2", func(n *fakeNode) { n.join("a") })
	s.farm.with("staging-cp-3", func(n *fakeNode) { n.stuck = true })
	s.farm.with("staging-cp-1", func(n *fakeNode) { n.sees = 1 })
	if h := s.cluster.EtcdHealth(context.Background()); h.Split == "" {
		t.Fatalf("the nodes agree: %s", h.Describe())
	}
	s.must(etcdUp)
	if n := s.count("Bootstrap"); n != 0 {
		t.Errorf("%d Bootstraps", n)
	}
}

// forgets makes a node lose its etcd in the moment that it has accepted
// Bootstrap, so many times.
func (s *scene) forgets(name string, times int) {
	s.farm.with(name, func(n *fakeNode) {
		n.after = func(n *fakeNode, method string) error {
			if method == "Bootstrap" && times > 0 {
				times--
				n.farm.mu.Lock()
				n.leave()
				n.boot++
				n.farm.mu.Unlock()
			}
			return nil
		}
	})
}

// Field report 02, for up: accepted is not done. A reboot forgets the Bootstrap;
// it is sent once more, because every node was asked and none holds anything.
func TestFieldReport02ABootstrapThatIsForgottenIsSentOnceMore(t *testing.T) {
	s := newScene(t).must(controlPlane...)
	s.forgets("staging-cp-1", 1)
	s.must(etcdUp, "etcd-members/staging")
	if n := s.count("Bootstrap"); n != 2 {
		t.Errorf("%d Bootstraps", n)
	}
}

func TestFieldReport02ANodeThatForgetsEveryBootstrapIsNotAskedForEver(t *testing.T) {
	s := newScene(t).must(controlPlane...)
	s.forgets("staging-cp-1", 100)
	s.refuses(s.apply(etcdUp), outcome.Failed, "etcd does not stay on staging-cp-1", "accepted Bootstrap 2 times")
	if n := s.count("Bootstrap"); n != 2 {
		t.Errorf("%d Bootstraps", n)
	}
}

// A node that pulls etcd's image after it accepted Bootstrap shows nothing for
// long. It is not asked again in the same boot.
func TestABootstrapThatTakesLongIsNotRepeated(t *testing.T) {
	limits := quick
	limits.Etcd = 400 * time.Millisecond // many times Settle
	s := newScene(t).with(limits).must(controlPlane...)
	s.farm.with("staging-cp-1", func(n *fakeNode) {
		n.after = func(n *fakeNode, method string) error {
			if method == "Bootstrap" {
				n.farm.mu.Lock()
				n.leave()
				n.farm.mu.Unlock()
			}
			return nil
		}
	})
	s.refuses(s.apply(etcdUp), outcome.Failed, "etcd did not come up on staging-cp-1", "Preparing")
	if n := s.count("Bootstrap"); n != 1 {
		t.Errorf("%d Bootstraps", n)
	}
}

// The first node forgets when the second is a voter already: quorum of the two is
// lost. Nothing may make a second cluster of the first.
func TestFieldReport02AForgetfulNodeIsNotBootstrappedBesideAMemberWithoutQuorum(t *testing.T) {
	s := newScene(t).must(controlPlane...).must(etcdUp)
	s.farm.with("staging-cp-2", func(n *fakeNode) { n.join("staging-cp-1"); n.sick = "it sees no leader" })
	s.farm.with("staging-cp-1", func(n *fakeNode) { n.leave(); n.stuck = true })
	s.farm.with("staging-cp-3", func(n *fakeNode) { n.leave(); n.stuck = true })
	limits := quick
	limits.Etcd = 200 * time.Millisecond // more than Settle: a Bootstrap would be sent if it were ever
	s.with(limits)
	if err := s.apply(etcdUp); err != nil && outcome.CodeOf(err) != outcome.Unknown {
		t.Error(err)
	}
	s.refuses(s.apply("etcd-members/staging"), outcome.Failed, "not yet: staging-cp-1", "it sees no leader")
	if n := s.count("Bootstrap"); n != 1 {
		t.Errorf("%d Bootstraps", n)
	}
}
