package session

import (
	"fmt"
	"sync"
	"time"
)

// telling is how often a step says how far it is. Where every word is a line of
// its own, more would only fill the screen.
const telling = 2 * time.Second

// pace tells how far a step's reading is, how fast it goes and how long it will
// take, from what it is told of bytes.
func (s *Session) pace(step string) func(read, total int64) {
	return Pace(func(text string) { s.say(step, text) })
}

// Pace turns numbers of bytes into words, not more often than anybody reads them.
func Pace(say func(text string)) func(read, total int64) { return pace(time.Now, say) }

func pace(now func() time.Time, say func(string)) func(read, total int64) {
	var mu sync.Mutex
	var begun, last time.Time
	var first int64 // what was there when the clock began to run
	told := int64(-1)
	return func(read, total int64) {
		mu.Lock()
		defer mu.Unlock()
		at := now()
		if begun.IsZero() { // what passed before the first byte says nothing of the rate
			begun, last, first = at, at, read
		}
		if at.Sub(last) < telling || read == told {
			return
		}
		last, told = at, read
		say(far(read, total, read-first, at.Sub(begun)))
	}
}

// From little that was read nobody can tell how long the rest will take.
const enough = 1_000_000

// far is such as "120 of 210 MB, 34.0 MB/s, 3s left". some is how many of the bytes
// that were read came in the time that it took.
func far(read, total, some int64, took time.Duration) string {
	const mega = 1_000_000
	rate := float64(some) / max(took.Seconds(), 0.001)
	text := fmt.Sprintf("%d MB", read/mega)
	if total > 0 {
		text = fmt.Sprintf("%d of %d MB", read/mega, total/mega)
	}
	if some < enough || took < telling {
		return text
	}
	text += fmt.Sprintf(", %.1f MB/s", rate/mega)
	if total > 0 {
		text += fmt.Sprintf(", %s left", time.Duration(float64(total-read)/rate*float64(time.Second)).Round(time.Second))
	}
	return text
}
