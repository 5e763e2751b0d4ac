package stories

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
)

var seed = flag.Uint64("seed", 0, "seed of the random moments and of the sample of kills; 0 draws one")

// A SIGKILL at ten random moments of up, each time run again: the same estate,
// nothing doubled, nothing left over, one Bootstrap ever.
func TestKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	p, e := perform(t)
	t.Logf("seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 0))
	kills := 0
	for kills < 10 {
		moment := 1 + r.IntN(18)
		code := until(t, p.Command(t.Context(), "up", p.Stage.Env, "--yes", "--output", "json"), moment, func(up *os.Process) {
			if err := up.Signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		})
		if code == 0 {
			break // it was through before that moment: the rest of the kills has nothing to hit
		}
		if code != -1 {
			t.Fatalf("up number %d ended by itself with exit code %d", kills+1, code)
		}
		kills++
	}
	if kills < 5 {
		t.Errorf("only %d kills hit a run; the moments lie too far apart", kills)
	}
	t.Logf("%d kills", kills)
	play(t, p, 0, "up", p.Stage.Env, "--yes")
	play(t, p, 0, "plan", p.Stage.Env, "--exit-code")
	wholeOnce(t, p, e)
	oneBootstrap(t, p)
	play(t, p, 0, wipe(p, e)...)
	if left, err := p.Owned(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left over: %v (%v)", left, err)
	}
}

// An interrupt stops up cleanly, says so with its exit code, and prints how to
// go on.
func TestInterruptedSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	p, _ := perform(t)
	cmd := p.Command(t.Context(), "up", p.Stage.Env, "--yes", "--output", "json")
	var words bytes.Buffer
	cmd.Stderr = &words
	code := until(t, cmd, 20, func(up *os.Process) { _ = up.Signal(os.Interrupt) })
	if code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if want := "bastide up " + p.Stage.Env; !strings.Contains(words.String(), want) {
		t.Errorf("the output does not say %q:\n%s", want, &words)
	}
	if said := play(t, p, 0, "unlock", p.Stage.Env); !strings.Contains(said, "is not locked") {
		t.Errorf("the interrupted run kept its lock: %s", said)
	}
	play(t, p, 0, "up", p.Stage.Env, "--yes")
}
