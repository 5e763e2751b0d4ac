package stories

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"bastide/internal/estate"
	"bastide/internal/rehearsal"
)

var whole = flag.Bool("whole", false, "kill at every call instead of a sample of them; takes an hour or two")

// The two estates that are tortured. The small one, with one control plane node
// and one worker, has a life in a third of the time and is killed at each of its
// calls. What it does not have are steps that several control plane nodes take part
// in, and an image that is made: the example is killed at those calls.
const (
	small   = "testdata/small"
	example = "../examples/private"
)

// sampled is how many lives are tortured without -whole.
const sampled = 4

// A chain of kills on one region: every up is killed at its first change of the
// estate, before it and after it by turns, until one gets through; then destroy in
// the same way. It meets an estate in every stage of its growth with seconds for
// each, and piles up what kills leave behind: every run takes the lock over from
// the one before.
func TestKilledAtTheFirstChangeAgainAndAgain(t *testing.T) {
	t.Parallel()
	p, e := perform(t)
	empty := census(t, p)
	ups := chain(t, p, "up", p.Stage.Env, "--yes")
	play(t, p, 0, "plan", p.Stage.Env, "--exit-code")
	wholeOnce(t, p, e)
	oneBootstrap(t, p)
	report(t, p, "up", ups)
	if ups == 0 || hits(changes(t, p))["RPC /talos/*/Bootstrap"] == 0 {
		t.Error("no kill hit the Bootstrap")
	}
	seen := len(changes(t, p))
	downs := chain(t, p, wipe(p, e)...)
	nothingLeft(t, p, empty)
	report(t, p, "destroy", downs, seen)
	if downs == 0 {
		t.Error("no kill hit destroy")
	}
}

// ofTheEstate are the calls of the Scaleway API and of nodes, which leaves out
// those about lock and journal: every run begins with some of them.
const ofTheEstate = "~^/([a-z-]+/v[0-9]|talos/)"

// chain kills a command at its first change of the estate, again and again, until
// it gets through. A kill before a change alone would never get anywhere. Nor
// would one after a change that every run repeats until the next is through, such
// as a password that is set before it is noted: where a kill is the same as an
// earlier one, the next is one change later.
func chain(t *testing.T, p *rehearsal.Play, args ...string) (kills int) {
	t.Helper()
	const most = 250 // no estate of a test has so many changes
	nth, been := 1, map[string]bool{}
	for ; kills < most; kills++ {
		k := kill{nth, []string{"before", "after"}[kills%2], ofTheEstate}
		if s := strike(t, p, k, args...); !s.killed {
			return kills
		}
		where := fmt.Sprint(k, lastKilled(t, p))
		nth = 1
		if been[where] {
			nth = 2
		}
		been[where] = true
	}
	log := changes(t, p)
	t.Fatalf("bastide %s still has something to change after %d kills; the last were of %v", args[0], most, log[max(0, len(log)-8):])
	return 0
}

// lastKilled is the call at which the last kill happened.
func lastKilled(t *testing.T, p *rehearsal.Play) string {
	t.Helper()
	log := changes(t, p)
	for _, l := range slices.Backward(log) {
		if strings.HasPrefix(l.Fault, "killed") {
			return l.Method + " " + l.Path
		}
	}
	t.Fatal("nothing was killed")
	return ""
}

// report prints how many kills were survived and which operations they hit.
func report(t *testing.T, p *rehearsal.Play, command string, kills int, from ...int) {
	t.Helper()
	log := changes(t, p)
	for _, n := range from {
		log = log[n:]
	}
	struck, all := hits(log), map[string]bool{}
	for _, l := range log {
		all[l.operation()] = true
	}
	var missed []string
	for op := range all {
		if struck[op] == 0 {
			missed = append(missed, op)
		}
	}
	slices.Sort(missed)
	t.Logf("%s: %d kills survived (in a chain, %d of %d operations hit; landed on their own: %s)", command, kills, len(struck), len(all), strings.Join(missed, ", "))
}

func nothingLeft(t *testing.T, p *rehearsal.Play, empty string) {
	t.Helper()
	if left, err := p.Owned(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left over: %v (%v)", left, err)
	}
	if now := census(t, p); now != empty {
		t.Errorf("the region is not as it was before; it holds\n%s\nand held\n%s", now, empty)
	}
}

// A life of its own for every kill: up is killed at its nth change and run
// again, the estate is compared with one that was never killed, then destroy is
// killed at its mth change and run again. Without -whole a few are drawn by seed.
func TestKilledAtEveryChange(t *testing.T) {
	t.Parallel()
	little := untouched(t, small)
	lives := little.lives(func(string) bool { return true })
	if *whole {
		large := untouched(t, example)
		known := map[string]bool{}
		for _, op := range slices.Concat(little.up.operations, little.destroy.operations) {
			known[op] = true
		}
		lives = append(lives, large.lives(func(op string) bool { return strings.HasPrefix(op, "RPC ") || !known[op] })...)
	}
	all := len(lives)
	if !*whole {
		lives = draw(t, lives)
	}
	var ups, downs atomic.Int64
	t.Run("lives", func(t *testing.T) {
		for _, l := range lives {
			t.Run(fmt.Sprintf("%s up %s, destroy %s", l.of.estate.Name, l.up, l.destroy), func(t *testing.T) {
				t.Parallel()
				up, down := l.live(t)
				ups.Add(int64(up))
				downs.Add(int64(down))
			})
		}
	})
	if ups.Load() == 0 || downs.Load() == 0 {
		t.Errorf("%d kills hit up and %d destroy", ups.Load(), downs.Load())
	}
	t.Logf("up: %d kills survived, destroy: %d kills survived (a life for each, %d of %d)", ups.Load(), downs.Load(), len(lives), all)
}

// tortured is an estate and what an undisturbed life of it was like.
type tortured struct {
	dir         string
	estate      *estate.Estate
	raised      string // the census when it stood
	up, destroy span
}

// span is what a command changes, call by call, and how many changes it makes at
// least, because they were not refused.
type span struct {
	operations []string
	least      int
}

func spanOf(calls int, log []logged) span {
	s := span{least: calls}
	seen := map[string]int{}
	for _, l := range log {
		op := l.operation()
		s.operations = append(s.operations, op)
		seen[op]++
		// How often a lock is renewed and a journal written goes by the clock.
		again := seen[op] > 1 && (strings.HasSuffix(op, " /bucket/lock.json") || strings.HasSuffix(op, " /bucket/journal/*"))
		if l.refused() || again {
			s.least--
		}
	}
	return s
}

// untouched plays an undisturbed life.
func untouched(t *testing.T, dir string) (x *tortured) {
	t.Helper()
	if !t.Run("untouched", func(t *testing.T) { x = measure(t, dir) }) {
		t.FailNow()
	}
	return x
}

func measure(t *testing.T, dir string) *tortured {
	p, e := performOn(t, dir)
	empty := census(t, p)
	x := &tortured{dir: dir, estate: e}
	calls := strike(t, p, kill{}, "up", p.Stage.Env, "--yes").changes
	log := changes(t, p)
	x.up = spanOf(calls, log)
	x.raised = census(t, p)
	calls = strike(t, p, kill{}, wipe(p, e)...).changes
	x.destroy = spanOf(calls, changes(t, p)[len(log):])
	nothingLeft(t, p, empty)
	t.Logf("%s: up makes %d changes, destroy %d", e.Name, len(x.up.operations), len(x.destroy.operations))
	return x
}

// life is one life of an estate with a kill in its up and one in its destroy.
type life struct {
	of          *tortured
	up, destroy kill
}

// lives are the lives with a kill at each change of up and of destroy that is
// chosen, before it and after it. The fewer of the two come round again.
func (x *tortured) lives(chosen func(operation string) bool) []life {
	kills := func(s span) (out []kill) {
		for i, op := range s.operations {
			if chosen(op) {
				out = append(out, kill{nth: i + 1, when: "before"}, kill{nth: i + 1, when: "after"})
			}
		}
		return out
	}
	ups, downs := kills(x.up), kills(x.destroy)
	var out []life
	for i := range max(len(ups), len(downs)) {
		out = append(out, life{x, ups[i%len(ups)], downs[i%len(downs)]})
	}
	return out
}

// draw takes a sample by the seed, which is printed.
func draw(t *testing.T, from []life) []life {
	t.Helper()
	t.Logf("seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 1))
	var out []life
	for _, i := range r.Perm(len(from))[:min(sampled, len(from))] {
		out = append(out, from[i])
	}
	return out
}

// live plays a life and returns how many kills hit up and destroy.
func (l life) live(t *testing.T) (ups, downs int) {
	p, e := performOn(t, l.of.dir)
	empty := census(t, p)
	if l.hit(t, p, l.up, l.of.up, "up", p.Stage.Env, "--yes") {
		ups++
	}
	play(t, p, 0, "up", p.Stage.Env, "--yes")
	play(t, p, 0, "plan", p.Stage.Env, "--exit-code")
	wholeOnce(t, p, e)
	oneBootstrap(t, p)
	if now := census(t, p); now != l.of.raised {
		t.Errorf("the region holds\n%s\nand without a kill\n%s", now, l.of.raised)
	}
	if l.hit(t, p, l.destroy, l.of.destroy, wipe(p, e)...) {
		downs++
	}
	play(t, p, 0, wipe(p, e)...)
	nothingLeft(t, p, empty)
	return ups, downs
}

// hit kills a command and says whether the kill came. It may stay out only
// where the undisturbed command got so far because calls of it were refused.
func (l life) hit(t *testing.T, p *rehearsal.Play, k kill, usual span, command ...string) bool {
	t.Helper()
	s := strike(t, p, k, command...)
	switch {
	case s.killed:
	case k.nth > usual.least:
		t.Logf("%s was through after %d changes, fewer being refused: no kill %s", command[0], s.changes, k)
	default:
		t.Errorf("%s was through after %d changes and was not killed %s", command[0], s.changes, k)
	}
	return s.killed
}
