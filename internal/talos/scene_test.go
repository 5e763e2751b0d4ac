package talos

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
)

// quick are limits for scenes. They bound what hangs; nothing waits for them
// where an event can be awaited.
var quick = Limits{
	Contact: time.Minute, Call: time.Minute, Send: time.Minute, Poll: 2 * time.Millisecond, MaxPoll: 20 * time.Millisecond,
	Leave: 60 * time.Millisecond, Settle: 60 * time.Millisecond, Joining: 60 * time.Millisecond, Patience: 300 * time.Millisecond,
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
