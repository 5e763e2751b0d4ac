package fault_test

import (
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"bastide/internal/sim/clock"
	"bastide/internal/sim/fault"
)

func TestBadScripts(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown section", "htp: []\n", "htp"},
		{"unknown key", "http:\n  - path: /a\n    pth: /b\n    drop: true\n", "line 3"},
		{"wrong type", "http:\n  - path: /a\n    nth: often\n", "line 3"},
		{"bad duration", "http:\n  - {path: /a, delay: soon}\n", "line 2: \"soon\" is no duration such as 2s"},
		{"no path", "http:\n  - {drop: true}\n", "http rule 1: path is missing"},
		{"bad expression", "http:\n  - {path: '~(', drop: true}\n", "http rule 1"},
		{"nothing to do", "http:\n  - {path: /a}\n", "http rule 1: the rule does nothing"},
		{"two ends", "http:\n  - {path: /a, drop: true, status: 500}\n", "exclude each other"},
		{"no status", "http:\n  - {path: /a, status: 42}\n", "status 42"},
		{"nth and from", "http:\n  - {path: /a, drop: true, nth: 1, from: 2}\n", "nth excludes"},
		{"negative", "http:\n  - {path: /a, drop: true, nth: -1}\n", "counted from 1"},
		{"bad per", "http:\n  - {path: /a, drop: true, per: day}\n", "per is"},
		{"no rpc", "rpc:\n  - {code: Unavailable}\n", "rpc rule 1: rpc is missing"},
		{"bad code", "rpc:\n  - {rpc: Bootstrap, code: Sleepy}\n", "code \"Sleepy\""},
		{"rpc does nothing", "rpc:\n  - {rpc: Bootstrap}\n", "does nothing"},
		{"code and drop", "rpc:\n  - {rpc: Bootstrap, code: Unavailable, dropReply: true}\n", "exclude"},
		{"event without node", "events:\n  - {event: power-loss}\n", "event 1"},
		{"event at no call", "events:\n  - {node: a, event: reboot, on: {nth: 1}}\n", "either rpc"},
		{"event at two calls", "events:\n  - {node: a, event: reboot, on: {rpc: Bootstrap, path: /a}}\n", "either rpc"},
		{"event with a method of no path", "events:\n  - {node: a, event: reboot, on: {rpc: Bootstrap, method: GET}}\n", "method with path"},
		{"event at no time", "events:\n  - {node: a, event: reboot, on: {rpc: Bootstrap, when: during}}\n", "neither before nor after"},
		{"event with an unknown key", "events:\n  - {node: a, event: reboot, on: {rpc: Bootstrap, from: 2}}\n", "from"},
		{"event at a negative call", "events:\n  - {node: a, event: reboot, on: {rpc: Bootstrap, nth: -1}}\n", "counted from 1"},
		{"event at a bad path", "events:\n  - {node: a, event: reboot, on: {path: '~('}}\n", "event 1"},
		{"permissions of nothing", "permissions:\n  - {nth: 1}\n", "permission rule 1: deny is empty"},
		{"permissions at a negative call", "permissions:\n  - {deny: [iam], from: -1}\n", "permission rule 1"},
		{"kill without pid", "kill:\n  - {nth: 1}\n", "kill rule 1"},
		{"kill at no time", "kill:\n  - {nth: 1, pid: 4242, when: later}\n", "neither before nor after"},
		{"two documents", "http: []\n---\nhttp: []\n", "more than one document"},
		{"unknown store switch", "store:\n  conditionIgnored: true\n", "line 2"},
		{"store switch of a wrong type", "store:\n  conditionsIgnored: often\n", "line 2"},
		{"duplicate key", "http:\n  - {path: /a, path: /b, drop: true}\n", "already defined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := fault.Parse([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q in it", err, c.want)
			}
		})
	}
}

func engine(t *testing.T, text string) *fault.Engine {
	t.Helper()
	s, err := fault.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	e := fault.NewEngine(clock.New(10))
	if err := e.Load(s); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestWhenARuleActs(t *testing.T) {
	for _, c := range []struct{ when, want string }{
		{"", "xxxxx"}, {"nth: 2,", ".x..."}, {"from: 3,", "..xxx"}, {"from: 2, count: 2,", ".xx.."}, {"count: 1,", "x...."},
	} {
		e, got := engine(t, "http:\n  - {path: /a, "+c.when+" drop: true}\n"), ""
		for range 5 {
			mark := "."
			if e.HTTP("GET", "/a", nil, nil) != nil {
				mark = "x"
			}
			got += mark
		}
		if got != c.want {
			t.Errorf("%q acts %s, want %s", c.when, got, c.want)
		}
	}
}

func TestWhatARuleMatches(t *testing.T) {
	for _, c := range []struct {
		rule, method, path, query string
		want                      bool
	}{
		{"path: /vpc/*/vpcs", "GET", "/vpc/v2/vpcs", "", true},
		{"path: /vpc/*/vpcs", "GET", "/vpc/v2/regions/fr-par/vpcs", "", false},
		{"path: /vpc/**", "GET", "/vpc/v2/regions/fr-par/vpcs", "", true},
		{"path: /vpc", "GET", "/vpc/v2", "", false},
		{`path: "~/vpcs$"`, "GET", "/vpc/v2/vpcs", "", true},
		{"path: /**, method: POST|PUT", "put", "/a", "", true},
		{"path: /**, method: mutating", "GET", "/a", "", false},
		{"path: /**, method: mutating", "DELETE", "/a", "", true},
		{"path: /**, query: {name: stag*}", "GET", "/a", "name=staging", true},
		{"path: /**, query: {name: stag*}", "GET", "/a", "name=prod", false},
		{"path: /**, query: {name: stag*}", "GET", "/a", "", false},
	} {
		q, _ := url.ParseQuery(c.query)
		got := engine(t, "http:\n  - {"+c.rule+", drop: true}\n").HTTP(c.method, c.path, q, nil) != nil
		if got != c.want {
			t.Errorf("%s on %s %s?%s: %v", c.rule, c.method, c.path, c.query, got)
		}
	}
}

func TestRPCRules(t *testing.T) {
	e := engine(t, `
rpc:
  - {node: "staging-cp-*", rpc: Bootstrap, nth: 2, code: Unavailable, message: not now}
  - {rpc: /machine.MachineService/Apply*, delay: 1s, dropReply: true}
`)
	if f := e.RPC("staging-cp-1", "/machine.MachineService/Bootstrap"); f != nil {
		t.Errorf("the first call passes, not %+v", f)
	}
	if f := e.RPC("staging-system-1", "Bootstrap"); f != nil {
		t.Errorf("another node's call passes, not %+v", f)
	}
	if f := e.RPC("staging-cp-2", "Bootstrap"); f == nil || f.Code != codes.Unavailable || f.Message != "not now" || f.DropReply {
		t.Errorf("%+v", f)
	}
	if f := e.RPC("any", "/machine.MachineService/ApplyConfiguration"); f == nil || !f.DropReply || f.Delay.String() != "100ms" {
		t.Errorf("a second of the region's time is a tenth at speed ten: %+v", f)
	}
	if c := e.Counts(); c.RPC[0] != (fault.Hits{Matched: 2, Acted: 1}) || c.RPC[1] != (fault.Hits{Matched: 1, Acted: 1}) {
		t.Errorf("%+v", c.RPC)
	}
}

func TestEventsAtACall(t *testing.T) {
	e := engine(t, `
events:
  - {node: cp-1, event: disk-order}
  - {node: cp-2, event: reboot, on: {rpc: Bootstrap, node: cp-*, nth: 2}}
  - {node: cp-3, event: power-loss, params: {for: 3s}, on: {rpc: /machine.MachineService/Bootstrap, when: after}}
  - {node: cp-3, event: power-on, on: {method: POST, path: /vpc/*}}
`)
	if d := e.DueAtRPC("cp-1", "/machine.MachineService/Bootstrap"); len(d.Before) != 0 || len(d.After) != 1 || d.After[0].Node != "cp-3" || d.After[0].Params["for"] != "3s" {
		t.Errorf("%+v", d)
	}
	if d := e.DueAtRPC("system-1", "/machine.MachineService/Bootstrap"); len(d.Before)+len(d.After) != 0 {
		t.Errorf("another node's call: %+v", d)
	}
	if d := e.DueAtRPC("cp-2", "Bootstrap"); len(d.Before) != 1 || d.Before[0].Event != "reboot" || len(d.After) != 0 {
		t.Errorf("%+v", d)
	}
	if d := e.DueAtHTTP("GET", "/vpc/a"); len(d.Before) != 0 {
		t.Errorf("%+v", d)
	}
	if d := e.DueAtHTTP("POST", "/vpc/a"); len(d.Before) != 1 || d.Before[0].Event != "power-on" {
		t.Errorf("%+v", d)
	}
	if c := e.Counts().Events; len(c) != 4 || c[0] != (fault.Hits{Matched: 1, Acted: 1}) || c[1] != (fault.Hits{Matched: 2, Acted: 1}) || c[3].Acted != 1 {
		t.Errorf("%+v", c)
	}
}

// JSON is YAML, and an empty script is no script.
func TestOtherForms(t *testing.T) {
	if e := engine(t, `{"http": [{"path": "/a", "status": 500, "body": {"message": "no"}}]}`); e.HTTP("GET", "/a", nil, nil) == nil {
		t.Error("a JSON rule does nothing")
	}
	if e := engine(t, "\n"); e.HTTP("GET", "/a", nil, nil) != nil {
		t.Error("no rule does something")
	}
}

// A rule whose process is gone kills nobody, says so, and lets the call pass.
func TestKillOfNobody(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"before", "after"} {
		e := engine(t, fmt.Sprintf("kill:\n  - {nth: 1, pid: %d, when: %s}\n", gone.Process.Pid, when))
		if killed, after := e.Mutating("/"); killed || after() {
			t.Errorf("%s: a process that is gone was killed", when)
		}
		if c := e.Counts(); c.Mutating != 1 || c.Killed[0] {
			t.Errorf("%s: %+v", when, c)
		}
	}
}

// A rule with a path counts the calls to paths that match, and no others.
func TestKillByPath(t *testing.T) {
	victim := exec.CommandContext(t.Context(), "sleep", "3600")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	e := engine(t, fmt.Sprintf("kill:\n  - {nth: 2, pid: %d, path: /estate/**}\n", victim.Process.Pid))
	for _, path := range []string{"/vpc/v2/regions/fr-par/vpcs", "/estate/lock.json", "/talos/a/Bootstrap"} {
		if killed, after := e.Mutating(path); killed || after() {
			t.Fatalf("killed at %s", path)
		}
	}
	if killed, _ := e.Mutating("/estate/a/b"); !killed {
		t.Error("not killed at the second call that matches")
	}
	if err := victim.Wait(); err == nil || victim.ProcessState.ExitCode() != -1 {
		t.Errorf("the process ended with %v", victim.ProcessState)
	}
	if err := engine(t, "").Load(fault.Script{Kill: []fault.KillRule{{Nth: 1, PID: 4242, Path: "~("}}}); err == nil {
		t.Error("a path that is no pattern was accepted")
	}
}
