package ui

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// redraw is how often the live line moves.
const redraw = 120 * time.Millisecond

// account is the progress that people read. What began or ended is one line;
// on a terminal what runs now is the last line, redrawn.
type account struct {
	t     *text
	title string
	total int

	mu      sync.Mutex
	done    int
	failed  int
	running []running // oldest first
	frame   int
	stop    chan struct{}
	stopped sync.WaitGroup
	over    bool
}

type running struct {
	step  string
	since time.Time
	note  string
}

func (t *text) Progress(title string, total int) Progress {
	a := &account{t: t, title: title, total: total, stop: make(chan struct{})}
	if title != "" {
		t.Notice(title)
	}
	if t.o.Live {
		a.stopped.Add(1)
		go a.animate()
	}
	return a
}

func (a *account) animate() {
	defer a.stopped.Done()
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		select {
		case <-a.stop:
			return
		case <-tick.C:
			a.mu.Lock()
			a.frame++
			a.draw()
			a.mu.Unlock()
		}
	}
}

// draw shows the live line; a.mu is held.
func (a *account) draw() {
	if a.t.o.Live && !a.over {
		a.t.draw(a.line(a.t.o.Now()))
	}
}

// line is what a terminal's last line says: how far, what has run longest, how
// many more.
func (a *account) line(now time.Time) string {
	if len(a.running) == 0 {
		return ""
	}
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	if a.t.o.ASCII {
		frames = []rune(`|/-\`)
	}
	oldest := a.running[0]
	s := fmt.Sprintf("%c %s %s %s", frames[a.frame%len(frames)], a.count(), oldest.step, short(now.Sub(oldest.since)))
	if oldest.note != "" {
		s += ", " + oldest.note
	}
	if more := len(a.running) - 1; more > 0 {
		s += fmt.Sprintf(" (and %d more)", more)
	}
	// One column short: writing the last one makes some terminals wrap. The
	// text is masked before it is cut, or half a secret would be left.
	return cut(a.t.o.Redactor.String(s), a.t.o.Width-1)
}

func (a *account) count() string {
	if a.total > 0 {
		return fmt.Sprintf("%d/%d", a.done+a.failed, a.total)
	}
	return fmt.Sprint(a.done + a.failed)
}

func (a *account) say(mark, text string) {
	a.t.print(a.t.err, mark+" "+text+"\n")
	a.draw()
}

func (a *account) Start(step string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running = append(a.running, running{step: step, since: a.t.o.Now()})
	if a.t.o.Live {
		a.draw()
		return
	}
	a.say(">", step)
}

func (a *account) Note(step, waitingFor string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.running {
		if a.running[i].step == step && a.running[i].note != waitingFor {
			a.running[i].note = waitingFor
			if a.t.o.Live {
				a.draw()
			} else {
				a.say(" ", step+": "+waitingFor)
			}
		}
	}
}

func (a *account) Reading(step, text string, _ Reading) { a.Note(step, text) }

func (a *account) Done(step string, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done++
	a.forget(step)
	a.say(a.t.paint.green(a.t.tick(true)), fmt.Sprintf("%s %s", step, a.t.paint.faint(short(took))))
}

func (a *account) Failed(step string, took time.Duration, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed++
	a.forget(step)
	why := ""
	if err != nil {
		why = ": " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	a.say(a.t.paint.red(a.t.tick(false)), fmt.Sprintf("%s %s%s", step, a.t.paint.faint(short(took)), why))
}

func (a *account) Skipped(step, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(step)
	if why != "" {
		why = ": " + why
	}
	a.say("-", step+why)
}

func (a *account) forget(step string) {
	a.running = slices.DeleteFunc(a.running, func(r running) bool { return r.step == step })
}

func (a *account) End() {
	a.mu.Lock()
	if a.over {
		a.mu.Unlock()
		return
	}
	a.over = true
	close(a.stop)
	if a.t.o.Live {
		a.t.draw("")
	}
	a.mu.Unlock()
	a.stopped.Wait()
}
