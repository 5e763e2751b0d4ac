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
	begun := now()
	last, told := begun, int64(-1)
	return func(read, total int64) {
		mu.Lock()
		defer mu.Unlock()
		at := now()
		if at.Sub(last) < telling || read == told {
			return
		}
		last, told = at, read
		say(far(read, total, at.Sub(begun)))
	}
}

// far is such as "120 of 210 MB, 34.0 MB/s, 3s left".
func far(read, total int64, took time.Duration) string {
	const mega = 1_000_000
	rate := float64(read) / max(took.Seconds(), 0.001)
	if total <= 0 {
		return fmt.Sprintf("%d MB, %.1f MB/s", read/mega, rate/mega)
	}
	left := "a while"
	if rate >= 1 {
		left = time.Duration(float64(total-read) / rate * float64(time.Second)).Round(time.Second).String()
	}
	return fmt.Sprintf("%d of %d MB, %.1f MB/s, %s left", read/mega, total/mega, rate/mega, left)
}
