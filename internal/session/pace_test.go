package session

import (
	"testing"
	"time"
)

func TestHowFarAndHowFast(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var said []string
	tell := pace(func() time.Time { return now }, func(text string) { said = append(said, text) })
	tell(1_000_000, 210_000_000) // too soon
	now = now.Add(4 * time.Second)
	tell(140_000_000, 210_000_000)
	now = now.Add(time.Second)
	tell(150_000_000, 210_000_000) // too soon
	now = now.Add(5 * time.Second)
	tell(210_000_000, 210_000_000)
	now = now.Add(5 * time.Second)
	tell(210_000_000, 210_000_000) // nothing new
	if len(said) != 2 || said[0] != "140 of 210 MB, 35.0 MB/s, 2s left" || said[1] != "210 of 210 MB, 21.0 MB/s, 0s left" {
		t.Errorf("%q", said)
	}
	if text := far(5_000_000, -1, time.Second); text != "5 MB, 5.0 MB/s" {
		t.Error(text)
	}
	if text := far(0, 100, 0); text != "0 of 0 MB, 0.0 MB/s, a while left" {
		t.Error(text)
	}
}
