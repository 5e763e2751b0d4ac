package ui

import (
	"bytes"
	"strings"
	"testing"
)

// Programs get numbers; people the words that say the same.
func TestHowFarAReadingIs(t *testing.T) {
	var out, err bytes.Buffer
	p := New(Options{Out: &out, Err: &err, JSON: true, Stream: true}).Progress("image of staging", 2)
	p.Start("image")
	p.Reading("image", "0 of 210 MB", Reading{Total: 210_000_000})
	p.Reading("image", "120 of 210 MB, 34.0 MB/s, 3s left", Reading{120_000_000, 210_000_000, 34_000_000})
	p.End()
	for _, part := range []string{`"total":2}`, `"total":210000000,"read":0}`, `"total":210000000,"read":120000000,"bytesPerSecond":34000000}`} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%s is not in %s", part, &out)
		}
	}
	p = New(Options{Out: &out, Err: &err}).Progress("", 1)
	p.Start("image")
	p.Reading("image", "120 of 210 MB", Reading{Read: 120_000_000})
	p.End()
	if !strings.Contains(err.String(), "image: 120 of 210 MB") {
		t.Errorf("%s", &err)
	}
}
