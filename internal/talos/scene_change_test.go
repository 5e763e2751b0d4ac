package talos

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bastide/internal/outcome"
)

// change makes the file ask for something else on the control plane.
func (s *scene) change(patch string) *scene {
	s.estate.Talos.Patches.ControlPlane = []string{write(s.t, s.estate, "change.yaml", patch)}
	return s.rerun()
}

const (
	immediate  = "machine: {sysctls: {a: b}}\n"
	rebootOnly = "machine: {env: {A: b}}\n"
)

func TestChangeWithoutReboot(t *testing.T) {
	s := newScene(t).up().change(immediate).must(controlPlane...)
	s.transcript(append(s.farm.changes()[:4],
		"staging-cp-1 ApplyConfiguration NO_REBOOT in configured",
		"staging-cp-2 ApplyConfiguration NO_REBOOT in configured",
		"staging-cp-3 ApplyConfiguration NO_REBOOT in configured",
	)...)
}

// A node that restarts just when it is to be changed is waited for, and named
// only when it stays away.
func TestChangeOfANodeThatGivesNoClearAnswer(t *testing.T) {
	s := newScene(t).up().change(immediate)
	patient := quick
	patient.Patience = time.Minute
	s.with(patient)
	var silent atomic.Int64
	silent.Store(3)
	s.farm.with("staging-cp-1", func(n *fakeNode) {
		n.before = func(n *fakeNode, method string) error {
			if method == "ApplyConfiguration" && silent.Load() != 0 { // at first a dry run
				silent.Add(-1)
				return status.Error(codes.Unavailable, "restarting")
			}
			return nil
		}
	})
	s.must(controlPlane...)
	if n := s.count("in configured"); n != 3 {
		t.Errorf("%d changes: %v", n, s.farm.changes())
	}
	silent.Store(-1)
	s.change("machine: {sysctls: {a: c}}\n").refuses(s.apply("machine/staging-cp-1"), outcome.Unknown, "staging-cp-1 was not changed", "restarting")
}

// The file was changed between a run that was cut short and the next one.
func TestChangeBeforeBootstrap(t *testing.T) {
	for _, patch := range []string{immediate, rebootOnly} {
		s := newScene(t).must(controlPlane...).change(patch).up()
		if n := s.count("in configured"); n != 3 {
			t.Errorf("%d changes: %v", n, s.farm.changes())
		}
	}
}

// Field report 26: the next node only when the one before is a healthy voter
// again, however many steps run at once.
func TestFieldReport26RebootsOneAtATime(t *testing.T) {
	s := newScene(t).up().change(rebootOnly)
	away := 0
	for _, name := range []string{"staging-cp-1", "staging-cp-2", "staging-cp-3"} {
		s.farm.with(name, func(n *fakeNode) {
			n.after = func(n *fakeNode, method string) error {
				n.farm.mu.Lock()
				defer n.farm.mu.Unlock()
				switch {
				case method == "ApplyConfiguration" && n.boot > 0 && n.sick == "":
					n.sick = "just rebooted"
					if away++; away > 1 {
						n.farm.t.Error("two nodes are away at once")
					}
				case method == "EtcdAlarmList" && n.sick != "" && n.boot > 0 && n.learnFor < 5:
					if n.learnFor++; n.learnFor == 5 {
						n.sick = ""
						away--
					}
				}
				return nil
			}
		})
	}
	errs := make(chan error, 3)
	for _, id := range controlPlane {
		go func() { errs <- s.apply(id) }()
	}
	for range controlPlane {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if n := s.count("ApplyConfiguration REBOOT in configured"); n != 3 {
		t.Errorf("%d reboots: %v", n, s.farm.changes())
	}
}

func TestQuorumGate(t *testing.T) {
	cases := []struct {
		name    string
		arrange func(*scene)
		words   []string
	}{
		{"another member is down", func(s *scene) { s.farm.with("staging-cp-3", func(n *fakeNode) { n.state = Unreachable }) },
			[]string{"etcd would not survive its absence", "without staging-cp-1 1 of 3 voters", "[##][##][--]"}},
		{"another member is sick", func(s *scene) { s.farm.with("staging-cp-3", func(n *fakeNode) { n.sick = "etcdserver: no leader" }) },
			[]string{"etcd would not survive its absence", "etcdserver: no leader"}},
		{"another member is full", func(s *scene) {
			s.farm.with("staging-cp-2", func(n *fakeNode) { n.alarm = machine.EtcdMemberAlarm_NOSPACE })
		}, []string{"staging-cp-2 has raised NOSPACE"}},
		{"another member learns", func(s *scene) {
			s.farm.with("staging-cp-2", func(n *fakeNode) { n.learner, n.learnFor = true, -1 })
		}, []string{"staging-cp-2 is still a learner"}},
		{"quorum is lost", func(s *scene) {
			for _, name := range []string{"staging-cp-2", "staging-cp-3"} {
				s.farm.with(name, func(n *fakeNode) { n.state = Refusing })
			}
		}, []string{"etcd has no quorum", "quorum is lost"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t).up().change(rebootOnly)
			c.arrange(s)
			s.refuses(s.apply("machine/staging-cp-1"), outcome.Refused, append(c.words, "nothing was changed")...)
			if n := s.count("in configured"); n != 0 {
				t.Errorf("a node was changed: %v", s.farm.changes())
			}
		})
	}
}

func TestEtcdSettingsTakeAReboot(t *testing.T) {
	s := newScene(t).up()
	s.estate.Kubernetes.Etcd.Quota = 4 << 30
	s.rerun().must("machine/staging-cp-1")
	if n := s.count("staging-cp-1 ApplyConfiguration REBOOT in configured"); n != 1 {
		t.Errorf("changes: %v", s.farm.changes())
	}
}

func TestTheNodeMayInsistOnAReboot(t *testing.T) {
	s := newScene(t).up().change(immediate)
	s.farm.with("staging-cp-1", func(n *fakeNode) { n.rebootOnly = true })
	s.must("machine/staging-cp-1")
	if n := s.count("staging-cp-1 ApplyConfiguration REBOOT in configured"); n != 1 {
		t.Errorf("changes: %v", s.farm.changes())
	}
}

func TestAStagedChangeIsFinished(t *testing.T) {
	s := newScene(t).up()
	s.farm.with("staging-cp-2", func(n *fakeNode) {
		n.stored = []byte(strings.Replace(string(n.active), "debug: false", "debug: true", 1))
	})
	live, err := s.observe()
	if err != nil {
		t.Fatal(err)
	}
	if o := live.Steps["machine/staging-cp-2"]; o.Settled || !strings.Contains(o.Status, "waits for a reboot") {
		t.Errorf("observed %+v", o)
	}
	s.must("machine/staging-cp-2")
	if live, err = s.observe(); err != nil || !live.Steps["machine/staging-cp-2"].Settled {
		t.Errorf("after: %+v, %v", live.Steps["machine/staging-cp-2"], err)
	}
}
