package main

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func at(what string, begin, end int) span {
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return span{what, day.Add(time.Duration(begin) * time.Millisecond), day.Add(time.Duration(end) * time.Millisecond)}
}

func TestChainIsTheSlowestSequence(t *testing.T) {
	for name, c := range map[string]struct {
		spans []span
		links string
		took  int
	}{
		"nothing":               {nil, "", 0},
		"side by side":          {[]span{at("a", 0, 100), at("b", 0, 130), at("c", 5, 90)}, "b", 130},
		"one after the other":   {[]span{at("b", 110, 210), at("a", 0, 100), at("c", 210, 300)}, "abc", 290},
		"two lanes":             {[]span{at("a", 0, 100), at("b", 0, 150), at("c", 120, 220), at("d", 160, 200)}, "ac", 200},
		"a long one beats many": {[]span{at("a", 0, 100), at("b", 100, 200), at("long", 50, 400)}, "long", 350},
		"gaps do not count":     {[]span{at("a", 0, 100), at("b", 900, 1000)}, "ab", 200},
	} {
		links, took := chain(c.spans)
		var names strings.Builder
		for _, l := range links {
			names.WriteString(l.what)
		}
		if names.String() != c.links || took != time.Duration(c.took)*time.Millisecond {
			t.Errorf("%s: %s in %s, want %s in %d ms", name, names.String(), took, c.links, c.took)
		}
	}
}

// The quick way and the obvious one find chains of the same length.
func TestChainAgainstBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var spans []span
		for range random.IntN(9) {
			begin := random.IntN(50)
			spans = append(spans, at("x", begin, begin+1+random.IntN(30)))
		}
		links, took := chain(spans)
		if want := longest(spans, time.Time{}); took != want {
			t.Fatalf("%v: %s, want %s", spans, took, want)
		}
		var sum time.Duration
		for i, l := range links {
			sum += l.took()
			if i > 0 && l.begin.Before(links[i-1].end) {
				t.Fatalf("%v begins before %v has ended", l, links[i-1])
			}
		}
		if sum != took {
			t.Fatalf("the links take %s, the chain %s", sum, took)
		}
	}
}

func longest(spans []span, from time.Time) time.Duration {
	var best time.Duration
	for _, s := range spans {
		if !s.begin.Before(from) {
			best = max(best, s.took()+longest(spans, s.end))
		}
	}
	return best
}
