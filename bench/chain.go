package main

import (
	"cmp"
	"slices"
	"time"
)

// span is something that took time: a call, or a delay of the region.
type span struct {
	what       string
	begin, end time.Time
}

func (s span) took() time.Duration { return s.end.Sub(s.begin) }

// chain is the slowest single chain among spans: of all sequences in which each
// begins after the one before it has ended, the one that takes longest in sum.
// No order that respects what waits for what could be faster than its longest
// chain of dependent spans, and a dependent span always begins after what it
// depends on has ended, so the chain found here is never shorter than that. The
// time between its links is not counted.
func chain(spans []span) (links []span, took time.Duration) {
	byEnd := slices.Clone(spans)
	slices.SortFunc(byEnd, func(a, b span) int { return a.end.Compare(b.end) })
	best := make([]time.Duration, len(byEnd)) // the longest chain among the first i+1 spans
	with := make([]int, len(byEnd))           // the last link of that chain
	before := make([]int, len(byEnd))         // what precedes span i in the longest chain that ends with it
	for i, s := range byEnd {
		// The spans that ended when s began are the first n.
		n, _ := slices.BinarySearchFunc(byEnd[:i], s.begin, func(e span, t time.Time) int {
			if e.end.After(t) {
				return 1
			}
			return -1
		})
		length := s.took()
		before[i] = -1
		if n > 0 {
			length += best[n-1]
			before[i] = with[n-1]
		}
		best[i], with[i] = length, i
		if i > 0 && best[i-1] >= length {
			best[i], with[i] = best[i-1], with[i-1]
		}
	}
	if len(byEnd) == 0 {
		return nil, 0
	}
	for i := with[len(with)-1]; i >= 0; i = before[i] {
		links = append(links, byEnd[i])
	}
	slices.Reverse(links)
	return links, best[len(best)-1]
}

// median of at least one duration.
func median[T cmp.Ordered](values []T) T {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}
