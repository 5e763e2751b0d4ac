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
	return Pace(func(text string, r Reading) {
		if s.config.Reading != nil {
			s.config.Reading(step, text, r)
		}
	})
}

// Reading is how far a step's reading is, in bytes.
type Reading struct {
	Read           int64
	Total          int64 // 0 where it is not known
	BytesPerSecond int64 // 0 until it can be told
}

// Pace turns numbers of bytes into words, not more often than anybody reads them.
func Pace(say func(text string, r Reading)) func(read, total int64) { return pace(time.Now, say) }

func pace(now func() time.Time, say func(string, Reading)) func(read, total int64) {
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
		r := Reading{Read: read, Total: max(total, 0)}
		if took := at.Sub(begun); read-first >= enough && took >= telling {
			r.BytesPerSecond = int64(float64(read-first) / took.Seconds())
		}
		say(r.String(), r)
	}
}

// From little that was read nobody can tell how long the rest will take.
const enough = 1_000_000

// String is such as "120 of 210 MB, 34.0 MB/s, 3s left".
func (r Reading) String() string {
	const mega = 1_000_000
	text := fmt.Sprintf("%d MB", r.Read/mega)
	if r.Total > 0 {
		text = fmt.Sprintf("%d of %d MB", r.Read/mega, r.Total/mega)
	}
	if r.BytesPerSecond == 0 {
		return text
	}
	text += fmt.Sprintf(", %.1f MB/s", float64(r.BytesPerSecond)/mega)
	if r.Total > 0 {
		left := float64(r.Total-r.Read) / float64(r.BytesPerSecond)
		text += fmt.Sprintf(", %s left", time.Duration(left*float64(time.Second)).Round(time.Second))
	}
	return text
}
