package stories

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"bastide/internal/rehearsal"
)

var lockID = regexp.MustCompile(`the lock ([0-9a-f]{16})`)

// held runs up with JSON events and does something in the middle of it, while it
// holds the lock. It returns up's exit code and last words.
func held(t *testing.T, p *rehearsal.Play, then func(up *os.Process)) (int, string) {
	t.Helper()
	cmd := p.Command(t.Context(), "up", p.Stage.Env, "--yes", "--output", "json")
	var words bytes.Buffer
	cmd.Stderr = &words
	code := until(t, cmd, 6, then)
	return code, words.String()
}

// locked is the id of the lock, as unlock without an id tells it.
func locked(t *testing.T, p *rehearsal.Play) string {
	t.Helper()
	said := play(t, p, 0, "unlock", p.Stage.Env)
	m := lockID.FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("unlock does not tell the lock's id: %s", said)
	}
	return m[1]
}

// Of two ups at once one wins and the other is refused with the winner's name;
// so is a destroy. Afterwards there is one estate and no lock.
func TestTwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	p, e := performOn(t, small)
	code, words := held(t, p, func(up *os.Process) {
		id := locked(t, p)
		for _, command := range []string{"up", "destroy"} {
			said := play(t, p, 3, command, p.Stage.Env, "--yes")
			for _, part := range []string{"small is locked", id, "bastide up " + p.Stage.Env, "bastide unlock " + p.Stage.Env + " " + id} {
				if !strings.Contains(said, part) {
					t.Errorf("%s does not say %q:\n%s", command, part, said)
				}
			}
		}
		play(t, p, 0, "plan", p.Stage.Env) // looking is not in anybody's way
	})
	if code != 0 {
		t.Fatalf("the winner ended with %d:\n%s", code, words)
	}
	play(t, p, 0, "plan", p.Stage.Env, "--exit-code")
	wholeOnce(t, p, e)
	if said := play(t, p, 0, "unlock", p.Stage.Env); !strings.Contains(said, "is not locked") {
		t.Error(said)
	}
}

// A run whose lock is removed stops before its next change; the next one goes on.
func TestUnlockStopsARun(t *testing.T) {
	t.Parallel()
	p, e := performOn(t, small)
	code, words := held(t, p, func(*os.Process) {
		play(t, p, 0, "unlock", p.Stage.Env, locked(t, p))
	})
	if code != 1 || !strings.Contains(words, "the lock of small was lost") || !strings.Contains(words, "bastide up "+p.Stage.Env) {
		t.Fatalf("up ended with %d:\n%s", code, words)
	}
	play(t, p, 0, "up", p.Stage.Env, "--yes")
	wholeOnce(t, p, e)
}

// Field report 60: the run after a kill -9 on the same machine begins at once,
// and says whose lock it took over.
func TestFieldReport60TheNextRunTakesTheLockOver(t *testing.T) {
	t.Parallel()
	p, e := performOn(t, small)
	var id string
	if code, words := held(t, p, func(up *os.Process) {
		id = locked(t, p)
		if err := up.Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}); code != -1 {
		t.Fatalf("up ended with %d:\n%s", code, words)
	}
	if said := play(t, p, 0, "unlock", p.Stage.Env); !strings.Contains(said, id) || !strings.Contains(said, "that process has ended") {
		t.Errorf("unlock does not say that the holder is gone: %s", said)
	}
	said := play(t, p, 0, "up", p.Stage.Env, "--yes")
	if !strings.Contains(said, "the lock "+id) || !strings.Contains(said, "was taken over") {
		t.Errorf("up does not say whose lock it took over:\n%s", said)
	}
	wholeOnce(t, p, e)
}

// Killed at every change that is about the lock, its bucket or the journal, one
// after the other on one region: the next run always gets the lock, and when
// destroy gets through neither bucket nor lock is left.
func TestKilledAtEveryChangeOfTheLock(t *testing.T) {
	t.Parallel()
	p, e := performOn(t, small)
	empty := census(t, p)
	kills := 0
	for _, args := range [][]string{{"up", p.Stage.Env, "--yes"}, wipe(p, e)} {
		command, through := args[0], false
		for n := 1; !through; n++ {
			for _, when := range []string{"before", "after"} {
				k := kill{nth: n, when: when, of: "~^/bastide-"}
				s := strike(t, p, k, args...)
				through = through || !s.killed
				if s.killed {
					kills++
				}
			}
		}
		if command == "up" {
			play(t, p, 0, "plan", p.Stage.Env, "--exit-code")
			wholeOnce(t, p, e)
			oneBootstrap(t, p)
		}
	}
	nothingLeft(t, p, empty)
	if kills < 20 {
		t.Errorf("only %d kills hit", kills)
	}
	t.Logf("%d kills survived at %d operations: %v", kills, len(hits(changes(t, p))), hits(changes(t, p)))
}
