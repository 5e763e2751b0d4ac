package clock

import (
	"slices"
	"sync"
	"time"
)

// Delay is a stretch of time in which the region waited on purpose.
type Delay struct {
	What  string    `json:"what"` // the region's time that passed, such as 30s, or what was waited for
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
	// Real says that a real process made the region wait, so that it does not
	// scale with the speed.
	Real bool `json:"real,omitempty"`
}

// most bounds the ledger of a region that runs for days.
const most = 20000

// ledger remembers the delays that are over, so that how long something took can
// be held against the longest chain of them.
type ledger struct {
	mu     sync.Mutex
	delays []Delay
}

func (l *ledger) note(d Delay) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.delays) == most {
		l.delays = slices.Delete(l.delays, 0, most/2)
	}
	l.delays = append(l.delays, d)
}

// Passed notes a delay that has just ended and was waited for elsewhere.
func (c Clock) Passed(d time.Duration, begin time.Time) {
	c.ledger.note(Delay{What: d.String(), Begin: begin, End: time.Now()})
}

// Held notes that a real process made the region wait until now.
func (c Clock) Held(what string, begin time.Time) {
	c.ledger.note(Delay{What: what, Begin: begin, End: time.Now(), Real: true})
}

// Delays are those that are over, in the order in which they ended.
func (c Clock) Delays() []Delay {
	if c.ledger == nil {
		return nil
	}
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	return slices.Clone(c.ledger.delays)
}
