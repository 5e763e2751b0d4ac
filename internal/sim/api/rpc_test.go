package api_test

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"bastide/internal/sim/api"
)

// One count holds the changes of the Scaleway API and of the nodes, so that a
// kill can be named by its place in everything that a client did.
func TestKillAtACallOfANode(t *testing.T) {
	for _, c := range []struct {
		when   string
		effect bool
	}{{"before", false}, {"after", true}} {
		t.Run(c.when, func(t *testing.T) {
			victim := exec.Command("sleep", "600")
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			r := newRegion(t)
			r.script(fmt.Sprintf("kill:\n  - {nth: 2, pid: %d, when: %s}\n", victim.Process.Pid, c.when))
			r.do("POST", vpcs, x)
			if read := r.RPC("cp-1", "Version", false); read.Killed || read.Served("cp-1", nil) {
				t.Error("a reading call counts")
			}
			call := r.RPC("cp-1", "Bootstrap", true)
			if call.Killed == c.effect {
				t.Errorf("killed before it took effect: %v", call.Killed)
			}
			var err error
			if call.Killed {
				err = errors.New("cut")
			}
			if !call.Served("cp-1", err) {
				t.Error("somebody is answered who is dead")
			}
			err = victim.Wait()
			exit, _ := err.(*exec.ExitError)
			if exit == nil || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Errorf("the process ended with %v", err)
			}
			last := r.Requests(0)[2]
			if (len(last.Effects) > 0) != c.effect || last.Status != 0 || last.Fault == "" || !last.Mutating {
				t.Errorf("the log says %+v", last)
			}
			if counts := r.do("GET", "/sim/faults", nil); str(counts, "killed", 0) != "true" || str(counts, "mutating_calls") != "2" {
				t.Errorf("%v", counts)
			}
		})
	}
}

// What a call came to shows in the log: a refused Bootstrap is not one.
func TestCallsOfNodesInTheLog(t *testing.T) {
	r := newRegion(t)
	r.RPC("cp-1", "Bootstrap", true).Served("cp-1", errors.New("not ready"))
	r.RPC("cp-1", "Bootstrap", true).Served("cp-1", nil)
	log := r.Requests(0)
	if len(log[0].Effects) != 0 || log[0].Code != "Unknown" || log[0].Status != 200 {
		t.Errorf("refused: %+v", log[0])
	}
	if len(log[1].Effects) != 1 || log[1].Effects[0] != (api.Effect{Verb: "changed", Kind: "node", ID: "cp-1"}) || log[1].Code != "OK" {
		t.Errorf("done: %+v", log[1])
	}
}
