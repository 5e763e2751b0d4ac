package session

import (
	"slices"
	"testing"
	"time"
)

func TestHowFarAndHowFast(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var said []string
	tell := pace(func() time.Time { return now }, func(text string, r Reading) { said = append(said, text) })
	now = now.Add(5 * time.Minute) // in which the Factory makes the image
	tell(1_000_000, 210_000_000)   // the clock begins to run
	now = now.Add(4 * time.Second)
	tell(1_010_000, 210_000_000) // too little for an estimate
	now = now.Add(4 * time.Second)
	tell(161_000_000, 210_000_000)
	now = now.Add(time.Second)
	tell(170_000_000, 210_000_000) // too soon
	now = now.Add(time.Second)
	tell(210_000_000, 210_000_000)
	now = now.Add(5 * time.Second)
	tell(210_000_000, 210_000_000) // nothing new
	want := []string{"1 of 210 MB", "161 of 210 MB, 20.0 MB/s, 2s left", "210 of 210 MB, 20.9 MB/s, 0s left"}
	if !slices.Equal(said, want) {
		t.Errorf("%q", said)
	}
	if text := (Reading{Read: 25_000_000, BytesPerSecond: 5_000_000}).String(); text != "25 MB, 5.0 MB/s" {
		t.Error(text)
	}
}
