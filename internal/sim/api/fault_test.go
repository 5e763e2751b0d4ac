package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"
)

// script loads a fault script through the page.
func (r *region) script(text string) {
	r.Helper()
	status, _, b, err := r.call("POST", "/sim/faults", text)
	if err != nil || status != http.StatusOK {
		r.Fatalf("fault script: %d %s %v", status, b, err)
	}
}

func (r *region) countVPCs() int {
	r.Helper()
	return int(r.do("GET", vpcs+"?name=x", nil)["total_count"].(float64))
}

var x = body{"name": "x", "project_id": project}

// Each fault, on a creation: what the client sees, and whether the change was made.
func TestFaultsOnChanges(t *testing.T) {
	for _, c := range []struct {
		name, rule string
		status     int // 0 for a connection that ends without an answer
		made       int
	}{
		{"status with a body", "status: 503, body: {message: internal error}", 503, 0},
		{"rate limit without a body", "status: 429", 429, 0},
		{"cut before the change", "drop: true", 0, 0},
		{"cut after the change", "applyThenDrop: true", 0, 1},
		{"truncated answer", "truncate: 10", 200, 1},
		{"delayed", "delay: 20ms", 200, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRegion(t)
			r.script("http:\n  - {method: POST, path: /vpc/v2/regions/*/vpcs, nth: 1, " + c.rule + "}\n")
			status, h, b, err := r.call("POST", vpcs, x)
			switch {
			case c.status == 0 && err == nil:
				t.Errorf("answered %d %s", status, b)
			case c.rule == "truncate: 10" && (err == nil || len(b) != 10):
				t.Errorf("got %q, %v", b, err)
			case c.rule == "status: 429" && (len(b) != 0 || h.Get("Content-Type") != "" || h.Get("X-Envoy-Ratelimited") != "true"):
				t.Errorf("headers %v, body %q", h, b)
			case c.status > 0 && err == nil && status != c.status:
				t.Errorf("answered %d %s", status, b)
			}
			if n := r.countVPCs(); n != c.made {
				t.Errorf("%d were made, want %d", n, c.made)
			}
			r.do("POST", vpcs, x) // the rule is spent
		})
	}
}

func TestHangAnswersNever(t *testing.T) {
	r := newRegion(t)
	r.script("http:\n  - {path: /vpc/**, hang: true}\n")
	r.client.Timeout = 30 * time.Millisecond
	if status, _, _, err := r.call("POST", vpcs, x); err == nil {
		t.Errorf("answered %d", status)
	}
	r.do("DELETE", "/sim/faults", nil)
	r.client.Timeout = 0
	if n := r.countVPCs(); n != 0 {
		t.Errorf("%d were made", n)
	}
}

func TestShortPageKeepsTheTotal(t *testing.T) {
	r := newRegion(t)
	r.do("POST", vpcs, x)
	r.do("POST", vpcs, x)
	r.script("http:\n  - {method: GET, path: '~/vpcs$', query: {name: x}, shortPage: 1}\n")
	got := r.do("GET", vpcs+"?name=x", nil)
	if n := len(got["vpcs"].([]any)); n != 1 || got["total_count"] != 2.0 {
		t.Errorf("%d items of %v", n, got["total_count"])
	}
}

// A stale read shows the region as it was, whole: also what hangs together.
func TestStaleReads(t *testing.T) {
	r := newRegion(t, func(o *api.Options) { o.Clock = clock.New(1) })
	before := str(r.do("POST", vpcs, x), "id")
	r.script("http:\n  - {method: GET, path: /**, stale: 1h}\n")
	r.do("POST", vpcs, x)
	r.do("DELETE", vpcs+"/"+before, nil)
	got := r.do("GET", vpcs+"?name=x", nil)
	if got["total_count"] != 1.0 || str(got, "vpcs", 0, "id") != before {
		t.Errorf("an hour ago there was %v", got)
	}
	r.do("DELETE", "/sim/faults", nil)
	if got := r.do("GET", vpcs+"?name=x", nil); got["total_count"] != 1.0 || str(got, "vpcs", 0, "id") == before {
		t.Errorf("now there is %v", got)
	}
}

// "Every mutating call once" is one rule: it counts for each call on its own.
func TestOncePerRequest(t *testing.T) {
	r := newRegion(t)
	r.script("http:\n  - {method: mutating, path: /**, per: request, nth: 1, status: 500, body: {message: internal error}}\n")
	for _, name := range []string{"a", "b"} {
		in := body{"name": name, "project_id": project}
		if status, _ := r.refused("POST", vpcs, in); status != 500 {
			t.Errorf("%s: %d", name, status)
		}
		r.do("POST", vpcs, in)
	}
	counts := r.do("GET", "/sim/faults", nil)
	if str(counts, "http", 0, "matched") != "4" || str(counts, "http", 0, "acted") != "2" || str(counts, "mutating_calls") != "4" {
		t.Errorf("%v", counts)
	}
}

// A process is killed at the nth mutating call, before it takes effect or after.
func TestKill(t *testing.T) {
	for _, c := range []struct {
		when string
		made int
	}{{"before", 1}, {"after", 2}} {
		t.Run(c.when, func(t *testing.T) {
			victim := exec.Command("sleep", "600")
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			r := newRegion(t)
			r.script(fmt.Sprintf("kill:\n  - {nth: 2, pid: %d, when: %s}\n", victim.Process.Pid, c.when))
			r.do("POST", vpcs, x)
			_, _, _, _ = r.call("POST", vpcs, x) // its answer, if any, finds nobody
			err := victim.Wait()
			exit, _ := err.(*exec.ExitError)
			if exit == nil || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Errorf("the process ended with %v", err)
			}
			if n := r.countVPCs(); n != c.made {
				t.Errorf("%d were made, want %d", n, c.made)
			}
		})
	}
}

func TestNodeEventsReachTheNodes(t *testing.T) {
	r := newRegion(t)
	r.script("events:\n  - {node: cp-2, event: power-loss, params: {for: 3s}}\n")
	r.hall.with(func() {
		if len(r.hall.events) != 1 || r.hall.events[0].Node != "cp-2" || r.hall.events[0].Params["for"] != "3s" {
			t.Errorf("%+v", r.hall.events)
		}
	})
	bare := newRegion(t, func(o *api.Options) { o.Trouble = nil })
	if status, _, b, _ := bare.call("POST", "/sim/faults", "events:\n  - {node: a, event: b}\n"); status != 400 {
		t.Errorf("a region without nodes accepts an event: %d %s", status, b)
	}
}

// An event that is bound to a call happens then and only then, before the call
// takes effect or after; one that nobody can act out is refused at once.
func TestEventsAtACall(t *testing.T) {
	r := newRegion(t)
	r.script("events:\n" +
		"  - {node: cp-1, event: power-loss, on: {method: POST, path: /vpc/**, nth: 2}}\n" +
		"  - {node: cp-2, event: reboot, on: {rpc: Bootstrap, node: cp-1, when: after}}\n" +
		"  - {node: cp-1, event: power-loss, on: {rpc: Bootstrap, node: cp-1, nth: 2}}\n")
	happened := func(want string) {
		t.Helper()
		r.hall.with(func() {
			var got []string
			for _, e := range r.hall.events {
				got = append(got, e.Event+" of "+e.Node)
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("happened: %v, want %s", got, want)
			}
		})
	}
	r.do("GET", vpcs, nil)
	r.do("POST", vpcs, body{"name": "a", "project_id": project})
	happened("")
	r.do("POST", vpcs, body{"name": "b", "project_id": project})
	r.do("POST", vpcs, body{"name": "c", "project_id": project})
	happened("power-loss of cp-1")
	r.RPC("cp-2", "Bootstrap", true).Served("cp-2", nil)
	happened("power-loss of cp-1")
	first := r.RPC("cp-1", "Bootstrap", true)
	happened("power-loss of cp-1")
	first.Served("cp-1", nil)
	happened("power-loss of cp-1, reboot of cp-2")
	r.RPC("cp-1", "Bootstrap", true).Served("cp-1", status.Error(codes.Unavailable, "no power"))
	happened("power-loss of cp-1, reboot of cp-2, power-loss of cp-1")
	log := r.Requests(0)
	if last := log[len(log)-1]; last.Status != 0 || last.Fault != "before it: power-loss of cp-1" {
		t.Errorf("a call that a node without power was to serve is logged as %+v", last)
	}
	if counts := r.do("GET", "/sim/faults", nil); str(counts, "events", 0, "matched") != "3" || str(counts, "events", 0, "acted") != "1" {
		t.Errorf("%v", counts)
	}
	if status, _, b, _ := r.call("POST", "/sim/faults", "events:\n  - {node: a, event: meteor, on: {rpc: Bootstrap}}\n"); status != 400 || !strings.Contains(string(b), "meteor") {
		t.Errorf("an unknown event is accepted: %d %s", status, b)
	}
}

func TestBadScriptIsRefused(t *testing.T) {
	r := newRegion(t)
	status, _, b, err := r.call("POST", "/sim/faults", "http:\n  - path: /a\n    stauts: 500\n")
	if err != nil || status != http.StatusBadRequest || !strings.Contains(string(b), "3") || !strings.Contains(string(b), "stauts") {
		t.Errorf("%d %s %v", status, b, err)
	}
}

// The log tells who called what and what it did; secrets are not in it.
func TestRequestLog(t *testing.T) {
	r := newRegion(t)
	id := str(r.do("POST", vpcs, body{"name": "x", "project_id": project, "tags": []string{"hush-hush"}}), "id")
	r.do("GET", vpcs+"/"+id, nil)
	r.script("http:\n  - {name: rain, method: DELETE, path: /**, status: 500}\n")
	_, _, _, _ = r.call("DELETE", vpcs+"/"+id, nil)
	_, _, text, err := r.call("GET", "/sim/requests", nil)
	if err != nil {
		t.Fatal(err)
	}
	var log []api.Request
	if err := json.Unmarshal(text, &log); err != nil {
		t.Fatal(err)
	}
	if len(log) != 3 {
		t.Fatalf("%d calls: %s", len(log), text)
	}
	first := log[0]
	if first.Seq != 1 || first.Method != "POST" || first.Path != vpcs || first.Status != 200 || !first.Mutating || first.Caller != "story/1" ||
		len(first.Effects) != 1 || first.Effects[0] != (api.Effect{Verb: "created", Kind: "vpc", ID: id}) {
		t.Errorf("%+v", first)
	}
	if log[1].Mutating || len(log[1].Effects) != 0 {
		t.Errorf("%+v", log[1])
	}
	if log[2].Status != 500 || !strings.Contains(log[2].Fault, "rain") || len(log[2].Effects) != 0 {
		t.Errorf("%+v", log[2])
	}
	for _, secret := range []string{token, "hush-hush"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	if since := r.Requests(2); len(since) != 1 || since[0].Seq != 3 {
		t.Errorf("since 2: %+v", since)
	}
}

func TestStatePages(t *testing.T) {
	r := newRegion(t)
	r.do("POST", "/sim/seed", body{"snapshots": []body{{"name": "talos", "zone": zone, "size_bytes": 5e9, "tags": []string{"prepared"},
		"image": body{"Version": "v1.13.5"}}}})
	r.do("POST", vpcs, body{"name": "<x>", "project_id": project, "tags": []string{"bastide:estate=a"}})
	state := r.do("GET", "/sim/state", nil)
	if str(state, "owned", "bastide:estate=a", 0, "kind") != "vpc" || str(state, "owned", "prepared", 0, "name") != "talos" {
		t.Errorf("owned: %v", state["owned"])
	}
	_, _, page, _ := r.call("GET", "/sim/", nil)
	if !strings.Contains(string(page), "&lt;x&gt;") {
		t.Errorf("the page does not show the VPC:\n%s", page)
	}
	if status, _, b, _ := r.call("POST", "/sim/seed", body{"snapshot": nil}); status != 400 {
		t.Errorf("a misspelt seed is accepted: %d %s", status, b)
	}
	r.do("POST", "/sim/reset", nil)
	if n := r.do("GET", snapshots, nil)["total_count"]; n != 0.0 {
		t.Errorf("%v snapshots after a reset", n)
	}
	if n := len(r.Requests(0)); n != 1 {
		t.Errorf("%d calls in the log after a reset and one call", n)
	}
}

// What the code seeded is there again after a reset, and hardware is not.
func TestReset(t *testing.T) {
	r := newRegion(t)
	if err := r.Seed(api.Seed{SSHKeys: []api.SeedSSHKey{{Name: "admin", PublicKey: sshKey}}}); err != nil {
		t.Fatal(err)
	}
	server := str(r.do("POST", servers, body{"name": "s", "project": project, "commercial_type": "DEV1-S", "image": r.image("instance_sbs")}), "server", "id")
	r.do("POST", servers+"/"+server+"/action", body{"action": "poweron"})
	r.untilStatus(servers+"/"+server, "running")
	r.do("POST", lbs, body{"name": "l", "project_id": project, "type": "LB-S"})
	r.Reset()
	r.hall.with(func() {
		if len(r.hall.machines) != 0 {
			t.Errorf("machines still run: %v", r.hall.machines)
		}
	})
	if n := r.do("GET", keys, nil)["total_count"]; n != 1.0 {
		t.Errorf("%v keys", n)
	}
	r.untilGone(servers + "/" + server)
}

// The API's own clients meet a plain 404 where nothing is served.
func TestUnservedIsLogged(t *testing.T) {
	r := newRegion(t)
	res, err := r.client.Get(r.url + "/nowhere")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if log := r.Requests(0); len(log) != 1 || log[0].Path != "/nowhere" {
		t.Errorf("%+v", log)
	}
}
