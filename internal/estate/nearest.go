package estate

import "strings"

// Nearest is the word of a list that was most likely meant; "" when none is close.
func Nearest(word string, known []string) string { return nearest(word, known) }

// nearest is the word of the list that was most likely meant, or "" when none
// is close: at most a third of the letters wrong. Case is not held against it.
func nearest(word string, known []string) string {
	if len(word) > 64 { // no known word is that long; also bounds the work on hostile input
		return ""
	}
	best, bestDistance := "", len(word)/3+1
	for _, k := range known {
		d := editDistance(strings.ToLower(word), strings.ToLower(k))
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, substitutions and swaps of
// neighbours that turn a into b.
func editDistance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
