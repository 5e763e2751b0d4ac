package talos

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bastide/internal/outcome"
	"bastide/internal/plan"
)

// Field report 21: the node took the configuration, the answer was lost.
func TestFieldReport21ApplyWhoseAnswerIsLost(t *testing.T) {
	for _, name := range []string{"staging-cp-1", "staging-system-1"} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.farm.with(name, func(n *fakeNode) {
				n.after = func(n *fakeNode, method string) error {
					if method == "ApplyConfiguration" {
						n.farm.mu.Lock()
						if !n.controlPlane() { // its kubelet joins meanwhile
							n.state = Ours
						}
						n.farm.mu.Unlock()
						return status.Error(codes.Unavailable, "connection lost")
					}
					return nil
				}
			})
			s.must("machine/" + name)
			s.transcript(name + " ApplyConfiguration NO_REBOOT in maintenance")
		})
	}
}

func TestApplyThatNeverArrived(t *testing.T) {
	s := newScene(t)
	dropped := 0
	s.farm.with("staging-cp-1", func(n *fakeNode) {
		n.before = func(_ *fakeNode, method string) error {
			if method == "ApplyConfiguration" && dropped < 2 {
				dropped++
				return status.Error(codes.Unavailable, "connection lost")
			}
			return nil
		}
	})
	s.must("machine/staging-cp-1")
	s.transcript("staging-cp-1 ApplyConfiguration NO_REBOOT in maintenance")
}

func TestMaintenanceCertificateThatChanges(t *testing.T) {
	s := newScene(t)
	other := throwaway(t)
	s.farm.with("staging-cp-1", func(n *fakeNode) {
		n.before = func(n *fakeNode, method string) error {
			if method != "ApplyConfiguration" {
				return nil
			}
			n.farm.mu.Lock()
			n.cert = other
			n.farm.mu.Unlock()
			go n.hangUp()
			return status.Error(codes.Unavailable, "connection lost")
		}
	})
	s.refuses(s.apply("machine/staging-cp-1"), outcome.Failed, "staging-cp-1 changed while it was being configured", "its certificate changed between two contacts")
	s.transcript()
}

// Field reports 08 and 09: a node of another cluster, a bundle of another.
func TestFieldReport09AnotherClustersNode(t *testing.T) {
	s := newScene(t)
	stranger, err := strangersBundle()
	if err != nil {
		t.Fatal(err)
	}
	s.farm.with("staging-cp-2", func(n *fakeNode) { n.state, n.bundle = Ours, stranger })
	s.refuses(s.apply("machine/staging-cp-2"), outcome.Refused, "staging-cp-2 belongs to another cluster", stranger.Fingerprint(), bundle(t).Fingerprint())
	_, err = s.observe()
	s.refuses(err, outcome.Refused, stranger.Fingerprint(), bundle(t).Fingerprint(), "nothing was changed")
	s.transcript()
	shown, err := s.cluster.Interpret(t.Context(), s.graph, plan.Live{}, s.cluster.Look(t.Context(), plan.Live{Steps: cloud(s.estate)}))
	if err != nil {
		t.Fatal(err)
	}
	for id, why := range map[string]string{"machine/staging-cp-2": stranger.Fingerprint(), "machine/staging-cp-1": "", etcdUp: "staging-cp-2", "kubernetes-nodes/staging": "staging-cp-2"} {
		if got := shown.Unreachable[id]; (got == "") != (why == "") || !strings.Contains(got, why) {
			t.Errorf("%s: %q, want %q", id, got, why)
		}
	}
	live, err := s.cluster.LiveFingerprint(context.Background())
	if err != nil || live != stranger.Fingerprint() {
		t.Errorf("live fingerprint %s, %v", live, err)
	}
}

func TestAWrongSnapshotIsNotConfigured(t *testing.T) {
	s := newScene(t)
	s.farm.with("staging-system-1", func(n *fakeNode) { n.version = "v1.12.1" })
	s.refuses(s.apply("machine/staging-system-1"), outcome.Failed, "runs v1.12.1 and talos.version is v1.13.5")
	s.transcript()
}

func TestANodeThatRefusesItsConfiguration(t *testing.T) {
	s := newScene(t)
	s.farm.with("staging-cp-1", func(n *fakeNode) {
		n.before = func(_ *fakeNode, method string) error {
			if method == "ApplyConfiguration" {
				return status.Error(codes.InvalidArgument, "unknown keys\ndiff:\n token: "+bundle(t).Machine().TrustdInfo.Token)
			}
			return nil
		}
	})
	s.refuses(s.apply("machine/staging-cp-1"), outcome.Failed, "staging-cp-1 refuses its configuration", "unknown keys")
}

// A node whose version could not be read is not sent a configuration on trust.
func TestANodeThatDoesNotTellItsVersionIsAskedAgain(t *testing.T) {
	s := newScene(t)
	lost := 0
	s.farm.with("staging-cp-1", func(n *fakeNode) {
		n.before = func(n *fakeNode, method string) error {
			switch {
			case method == "Version" && lost < 2:
				lost++
				return status.Error(codes.Unavailable, "connection lost")
			case method == "ApplyConfiguration" && lost < 2:
				n.farm.t.Error("it is sent its configuration and nobody knows what it runs")
			}
			return nil
		}
	})
	s.must("machine/staging-cp-1")
	s.transcript("staging-cp-1 ApplyConfiguration NO_REBOOT in maintenance")
}
