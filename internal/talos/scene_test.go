package talos

import (
	"context"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/vault"
)

// quick are limits for scenes. They bound what hangs; nothing waits for them
// where an event can be awaited.
var quick = Limits{
	Contact: time.Minute, Call: time.Minute, Send: time.Minute, Poll: 2 * time.Millisecond, MaxPoll: 20 * time.Millisecond,
	Leave: 60 * time.Millisecond, Settle: 60 * time.Millisecond, Patience: 300 * time.Millisecond,
	Node: 2 * time.Minute, Etcd: 2 * time.Minute, Ready: 2 * time.Minute, Reboot: 2 * time.Minute,
}

// scene is an estate, its fake nodes and a cluster layer that runs on them.
type scene struct {
	t       *testing.T
	estate  *estate.Estate
	graph   *blueprint.Graph
	farm    *fakeFarm
	cluster *Cluster
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, estate: testEstate(t)}
	s.farm = newFarm(t, s.estate, bundle(t))
	s.rerun()
	return s
}

// rerun is a new process: nothing but the nodes is remembered.
func (s *scene) rerun() *scene {
	s.t.Helper()
	return s.with(quick)
}

func (s *scene) with(l Limits) *scene {
	s.t.Helper()
	g, err := blueprint.Build(s.estate, nil, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.cluster, err = New(Options{Estate: s.estate, Bundle: bundle(s.t), Graph: g, Dial: s.farm.dial, Limits: l})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.cluster.Renderer().Complete(g, netip.MustParseAddr("203.0.113.7")); err != nil {
		s.t.Fatal(err)
	}
	s.graph = g
	return s
}

func (s *scene) apply(id string) error {
	s.t.Helper()
	step, ok := s.graph.Step(id)
	if !ok {
		s.t.Fatalf("no step %s", id)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	_, err := s.cluster.Apply(ctx, plan.Action{Step: step, Op: plan.Create}, cloud(s.estate))
	return err
}

func (s *scene) must(ids ...string) *scene {
	s.t.Helper()
	for _, id := range ids {
		if err := s.apply(id); err != nil {
			s.t.Fatalf("%s: %v", id, err)
		}
	}
	return s
}

func (s *scene) observe() (plan.Live, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	return s.cluster.Observe(ctx, s.graph, plan.Live{Steps: cloud(s.estate)})
}

func (s *scene) refuses(err error, code outcome.Code, words ...string) {
	s.t.Helper()
	if outcome.CodeOf(err) != code {
		s.t.Fatalf("got %v (code %d), want code %d", err, outcome.CodeOf(err), code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			s.t.Errorf("error\n  %v\nlacks %q", err, w)
		}
	}
	for _, secret := range bundle(s.t).Secrets() {
		if strings.Contains(err.Error(), secret.Reveal()) {
			s.t.Error("the error shows a secret")
		}
	}
}

func (s *scene) transcript(want ...string) {
	s.t.Helper()
	got := strings.Join(s.farm.changes(), "\n")
	if got != strings.Join(want, "\n") {
		s.t.Errorf("what changed the nodes:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

func (s *scene) count(what string) int {
	n := 0
	for _, line := range s.farm.changes() {
		if strings.Contains(line, what) {
			n++
		}
	}
	return n
}

const etcdUp = "etcd-bootstrap/staging"

var controlPlane = []string{"machine/staging-cp-1", "machine/staging-cp-2", "machine/staging-cp-3"}

// up brings the control plane to three voters.
func (s *scene) up() *scene {
	s.t.Helper()
	return s.must(controlPlane...).must(etcdUp, "etcd-members/staging")
}

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
func TestReport01BootstrapIsNotSentToALiveEtcd(t *testing.T) {
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

// Field report 03: the second node stays in Preparing.
func TestReport03ANodeThatStaysInPreparingIsNamed(t *testing.T) {
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
func TestReport04ALearnerTakesItsTime(t *testing.T) {
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

// Field report 21: the node took the configuration, the answer was lost.
func TestReport21ApplyWhoseAnswerIsLost(t *testing.T) {
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
func TestReport09AnotherClustersNode(t *testing.T) {
	s := newScene(t)
	stranger, err := vault.Generate("v1.13.5", born)
	if err != nil {
		t.Fatal(err)
	}
	s.farm.with("staging-cp-2", func(n *fakeNode) { n.state, n.bundle = Ours, stranger })
	s.refuses(s.apply("machine/staging-cp-2"), outcome.Refused, "staging-cp-2 belongs to another cluster", stranger.Fingerprint(), bundle(t).Fingerprint())
	_, err = s.observe()
	s.refuses(err, outcome.Refused, stranger.Fingerprint(), bundle(t).Fingerprint(), "nothing was changed")
	s.transcript()
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
func TestReport26RebootsOneAtATime(t *testing.T) {
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
