package ui

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"
)

func step(kind blueprint.Kind, name, node string, spec blueprint.Spec) blueprint.Step {
	return blueprint.Step{ID: string(kind) + "/" + name, Kind: kind, Name: name, Node: node, Spec: spec}
}

// created is what a plan says about something that does not exist.
func created(kind blueprint.Kind, name, node string, spec blueprint.Spec) plan.Action {
	g := &blueprint.Graph{Estate: "staging", Steps: []blueprint.Step{step(kind, name, node, spec)}}
	return plan.Make(g, plan.Live{}).Actions[0]
}

func firstPlan() plan.Plan {
	return plan.Plan{Estate: "staging", Actions: []plan.Action{
		created(blueprint.KindVPC, "staging", "", blueprint.VPC{Name: "staging"}),
		created(blueprint.KindPrivateNetwork, "staging", "", blueprint.PrivateNetwork{VPC: "vpc/staging", CIDR: netip.MustParsePrefix("172.16.0.0/22")}),
		created(blueprint.KindGatewayIP, "staging-gateway", "", blueprint.GatewayIP{Zone: "fr-par-1"}),
		created(blueprint.KindAddress, "staging-cp-1", "staging-cp-1", blueprint.Address{Network: "private-network/staging", Address: netip.MustParseAddr("172.16.0.11")}),
		created(blueprint.KindLoadBalancer, "staging-api", "", blueprint.LoadBalancer{Zone: "fr-par-1", Type: "LB-S", Private: true}),
		created(blueprint.KindServer, "staging-cp-1", "staging-cp-1", blueprint.Server{Zone: "fr-par-1", Type: "PLAY2-NANO",
			Volumes: []string{"volume/staging-cp-1"}, SecurityGroup: "security-group/staging-nodes", PlacementGroup: "placement-group/staging-control-plane"}),
		created(blueprint.KindMachine, "staging-cp-1", "staging-cp-1", blueprint.Machine{Node: "staging-cp-1",
			Pending: "it holds the gateway's public address, which Scaleway assigns"}),
		created(blueprint.KindEtcdBootstrap, "staging", "", blueprint.EtcdBootstrap{Done: true}),
		created(blueprint.KindSecurityGroup, "staging-nodes", "", blueprint.SecurityGroup{Zone: "fr-par-1", Stateful: true, InboundDefault: "drop", OutboundDefault: "accept"}),
	}, Notes: []string{plan.PrivateTraffic}}
}

func laterPlan() plan.Plan {
	keep := created(blueprint.KindVPC, "staging", "", blueprint.VPC{Name: "staging"})
	keep.Op, keep.Reason, keep.Changes = plan.Keep, "", nil
	return plan.Plan{Estate: "staging", Actions: []plan.Action{
		keep,
		{Step: step(blueprint.KindGateway, "staging-gateway", "", blueprint.Gateway{}), Op: plan.Update, Disruption: plan.Brief,
			Reason:  "bastion ranges not as in the file",
			Changes: []plan.Change{{Attribute: "bastion ranges", Have: "0.0.0.0/0", Want: "198.51.100.7/32"}}},
		{Step: step(blueprint.KindLoadBalancer, "staging-api", "", blueprint.LoadBalancer{}), Op: plan.Wait, Disruption: plan.None, Reason: "it is pending"},
		{Step: step(blueprint.KindServer, "staging-cp-2", "staging-cp-2", blueprint.Server{}), Op: plan.Refuse,
			Reason:  "its type is PLAY2-NANO, wanted PLAY2-MICRO, and cannot change while it lives",
			Changes: []plan.Change{{Attribute: "type", Have: "PLAY2-NANO", Want: "PLAY2-MICRO"}}},
	}, Strays: []plan.Stray{{Kind: blueprint.KindServer, Step: "server/staging-old-1", CloudID: "8a1d", Name: "staging-old-1", Why: "the file asks for no such node"}}}
}

func TestPlanOfANewEstate(t *testing.T) {
	golden(t, "plan_new", []string{"text", "json"}, func(p Printer, _ *clock) { p.Plan(firstPlan(), nil) })
}

func TestPlanOfALiveEstate(t *testing.T) {
	golden(t, "plan_live", []string{"text", "ascii", "color", "json"}, func(p Printer, _ *clock) { p.Plan(laterPlan(), nil) })
}

func TestPlanWithNothingToDo(t *testing.T) {
	golden(t, "plan_empty", []string{"text", "json"}, func(p Printer, _ *clock) {
		l := laterPlan()
		p.Plan(plan.Plan{Estate: "staging", Actions: l.Actions[:1]}, nil)
	})
}

func someStatus() Status {
	return Status{Estate: "staging",
		Cloud: []CloudItem{
			{Kind: "gateway", Name: "staging-gateway", ID: "1", Zone: "fr-par-1", State: "running", OK: true, Note: "203.0.113.9"},
			{Kind: "load-balancer", Name: "staging-api", ID: "2", Zone: "fr-par-1", State: "error", Note: "its private network did not attach"},
		},
		Nodes: []NodeItem{
			{Name: "staging-cp-1", Role: "control-plane", Address: "172.16.0.11", Power: "running", Stage: "running", Talos: "v1.13.5", Kube: "Ready", OK: true},
			{Name: "staging-cp-2", Role: "control-plane", Address: "172.16.0.12", Power: "stopped", Stage: "unreachable", Kube: "NotReady", Note: "powered off"},
		},
		Etcd: &Etcd{ClusterID: "c0ffee", Alarms: []string{"NOSPACE on staging-cp-1"},
			Members: []EtcdMember{
				{Name: "staging-cp-1", ID: "a1", Role: "voter", Leader: true, Healthy: true, Size: 25_600_000},
				{Name: "staging-cp-2", ID: "b2", Role: "voter", Note: "does not answer"},
			},
			Picture: "voters 1 of 2 up, 2 needed\n  #####.....\n"},
		Kubernetes: &Kubernetes{Endpoint: "https://172.16.0.5:6443", Version: "v1.36.3", Reachable: true, Ready: 1, Nodes: 2},
		Problems:   []string{"etcd has lost its quorum"},
	}
}

func TestStatus(t *testing.T) {
	golden(t, "status", []string{"text", "ascii", "color", "json"}, func(p Printer, _ *clock) { p.Status(someStatus()) })
	golden(t, "status_nothing", []string{"text", "json"}, func(p Printer, _ *clock) { p.Status(Status{Estate: "staging"}) })
}

func TestErrors(t *testing.T) {
	golden(t, "errors", []string{"text", "color", "json"}, func(p Printer, _ *clock) {
		refused := outcome.Refuse("the bastion at 203.0.113.9:61000 did not open", "it accepts none of the SSH keys", "add one to the SSH agent")
		p.Error(refused, "")
		p.Error(errors.Join(
			fmt.Errorf("server/staging-cp-1: %w", outcome.Fail("PLAY2-NANO is out of stock in fr-par-1", "Scaleway has none left", "choose another type or zone")),
			fmt.Errorf("volume/staging-cp-2: creating: %w", errors.New("quota exceeded"))), "bastide up examples/private")
		p.Error(&outcome.Error{Code: outcome.Interrupted, What: "stopped before the end", Why: "the run was interrupted", Err: context.Canceled}, "bastide up examples/private")
		p.Error(errors.New("estate.yaml:3:1: name: is missing\nestate.yaml:9:3: admin.cidrs: is empty"), "")
		p.Warn("SCW_DEFAULT_PROJECT_ID names another project than the file, which wins")
		p.Notice("first contact with the bastion")
	})
}

func TestLists(t *testing.T) {
	golden(t, "lists", []string{"text", "json"}, func(p Printer, _ *clock) {
		p.Table(Table{Kind: "inventory", Title: "what is left", Columns: []string{"kind", "name", "made at"},
			Rows: [][]string{{"server", "staging-cp-1", "2026-03-01"}, {"private-network", "staging", ""}}})
		p.Table(Table{Kind: "inventory", Columns: []string{"kind"}, Empty: "nothing of staging is left"})
		p.Result("version", "bastide v0.1.0", map[string]string{"version": "v0.1.0"})
	})
}

func TestRehearsalOutput(t *testing.T) {
	golden(t, "rehearsal", []string{"text", "ascii", "color", "json"}, func(p Printer, _ *clock) {
		p.Timeline(Timeline{Title: "rehearsal of staging", Bars: []Bar{
			{Label: "network", To: 4 * time.Second},
			{Label: "load balancer", From: 4 * time.Second, To: 50 * time.Second, Note: "the longest chain"},
			{Label: "etcd bootstrap", From: 50 * time.Second, To: 50*time.Second + 30*time.Millisecond},
			{Label: "workers", From: 51 * time.Second, To: 125 * time.Second, Failed: true},
		}})
		p.Timeline(Timeline{Title: "nothing happened"})
		p.Verdict(Verdict{Sentence: "1 of 2 checks failed", Checks: []Check{
			{Name: "nothing is left", Passed: true}, {Name: "all nodes are Ready", Detail: "staging-system-1 is not"}}})
		p.Verdict(Verdict{Passed: true, Sentence: "the estate rises and falls"})
	})
}

func TestProgressInLines(t *testing.T) {
	golden(t, "progress", []string{"text", "ascii", "color", "json"}, func(p Printer, c *clock) {
		g := p.Progress("raising staging", 3)
		g.Start("vpc/staging")
		c.now = c.now.Add(time.Second)
		g.Done("vpc/staging", time.Second)
		g.Start("gateway/staging-gateway")
		g.Note("gateway/staging-gateway", "allocating")
		g.Note("gateway/staging-gateway", "allocating")
		g.Failed("gateway/staging-gateway", 95*time.Second, errors.New("quota\nexceeded"))
		g.Skipped("server/staging-cp-1", "something that it needs did not happen")
		g.End()
		g.End()
	})
}

func TestProgressOfACommandWithOneResultLeavesStdoutAlone(t *testing.T) {
	var s streams
	p := New(Options{JSON: true, Out: &s.out, Err: &s.err})
	g := p.Progress("reading", 1)
	g.Start("servers")
	g.Done("servers", time.Millisecond)
	g.End()
	p.Plan(plan.Plan{Estate: "staging"}, nil)
	if n := strings.Count(s.out.String(), "\n"); n != 1 || !strings.Contains(s.err.String(), "servers") {
		t.Errorf("want one document and progress beside it, got:\n%s", s.String())
	}
}

// The live line is drawn, moved out of the way of others, and gone at the end.
func TestProgressOnATerminal(t *testing.T) {
	var s streams
	c := newClock()
	p := New(Options{Out: &s.out, Err: &s.err, Live: true, Width: 60, Now: c.Now}).(*text)
	a := &account{t: p, total: 40, stop: make(chan struct{})} // no ticker: the test draws
	a.Start("gateway/staging-gateway")
	a.Start("volume/staging-cp-1")
	c.now = c.now.Add(31 * time.Second)
	a.Note("gateway/staging-gateway", "allocating")
	p.Warn("slow today")
	a.Done("gateway/staging-gateway", 31*time.Second)
	a.Done("volume/staging-cp-1", 31*time.Second)
	a.End()
	want := strings.Join([]string{
		wipe + "⠋ 0/40 gateway/staging-gateway 0ms",
		wipe + "⠋ 0/40 gateway/staging-gateway 0ms (and 1 more)",
		wipe + cut("⠋ 0/40 gateway/staging-gateway 31s, allocating (and 1 more)", 59),
		wipe + "bastide: warning: slow today\n" + cut("⠋ 0/40 gateway/staging-gateway 31s, allocating (and 1 more)", 59),
		wipe + "✓ gateway/staging-gateway 31s\n" + cut("⠋ 0/40 gateway/staging-gateway 31s, allocating (and 1 more)", 59),
		wipe + "⠋ 1/40 volume/staging-cp-1 31s",
		wipe + "✓ volume/staging-cp-1 31s\n⠋ 1/40 volume/staging-cp-1 31s",
		wipe,
	}, "")
	if got := s.err.String(); got != want {
		t.Errorf("got:\n%q\nwant:\n%q", got, want)
	}
	if s.out.Len() > 0 {
		t.Errorf("progress reached standard output: %q", s.out.String())
	}
}

func TestTheAnimationEnds(t *testing.T) {
	var s streams
	p := New(Options{Out: &s.out, Err: &s.err, Live: true})
	g := p.Progress("raising staging", 1)
	g.Start("vpc/staging")
	g.End() // waits for the goroutine that draws
	if got := s.err.String(); !strings.HasSuffix(got, wipe) {
		t.Errorf("the terminal is left with %q", got)
	}
}

func TestDetect(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o := Detect(f, f, func(name string) string { return map[string]string{"LANG": "en_GB.UTF-8", "TERM": "xterm"}[name] }, false)
	if o.Colour || o.Live || o.ASCII {
		t.Errorf("a file got %+v", o)
	}
	for locale, ascii := range map[string]bool{"": true, "C": true, "C.UTF-8": false, "fr_FR.utf8": false} {
		if o := Detect(f, f, func(name string) string { return map[string]string{"LC_ALL": locale, "LANG": locale}[name] }, false); o.ASCII != ascii {
			t.Errorf("locale %q: ASCII is %v", locale, o.ASCII)
		}
	}
}
