// Package clock gives the simulated region its time: recorded delays, divided
// by the speed that the user chose.
package clock

import (
	"context"
	"time"
)

// Clock scales delays. The zero value runs at real speed and remembers nothing.
type Clock struct {
	speed  float64
	ledger *ledger
}

// New returns a clock that runs speed times faster than the real one; speeds of
// zero or less mean 1.
func New(speed float64) Clock {
	if speed <= 0 {
		speed = 1
	}
	return Clock{speed, &ledger{}}
}

// Speed says how many times faster than real time the region runs.
func (c Clock) Speed() float64 {
	if c.speed <= 0 {
		return 1
	}
	return c.speed
}

// Scale turns a delay of the real region into one of the simulated region.
func (c Clock) Scale(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.Speed())
}

// After runs f once the scaled delay has passed, in a goroutine of its own.
func (c Clock) After(d time.Duration, f func()) *time.Timer {
	begin := time.Now()
	return time.AfterFunc(c.Scale(d), func() {
		c.Passed(d, begin)
		f()
	})
}

// Wait sleeps for the scaled delay or until the context ends.
func (c Clock) Wait(ctx context.Context, d time.Duration) error {
	begin := time.Now()
	t := time.NewTimer(c.Scale(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		c.Passed(d, begin)
		return nil
	}
}
