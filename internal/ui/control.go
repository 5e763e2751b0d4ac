package ui

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// colour is what paint writes; it is the only control sequence in a text.
var colour = regexp.MustCompile("\x1b\\[(0|1|2|31|32|33)m")

// visible writes out the control characters in a text, as names, tags and locks
// that others made may hold them: a terminal would obey them. Line breaks and tabs
// stay, and so do colours where painted says that there are any. What it writes,
// \u001b, means the same inside a JSON string.
func visible(s string, painted bool) string {
	if !strings.ContainsFunc(s, obeyed) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	from := 0
	if painted {
		for _, at := range colour.FindAllStringIndex(s, -1) {
			spell(&b, s[from:at[0]])
			b.WriteString(s[at[0]:at[1]])
			from = at[1]
		}
	}
	spell(&b, s[from:])
	return b.String()
}

func spell(b *strings.Builder, s string) {
	for i, r := range s {
		if _, size := utf8.DecodeRuneInString(s[i:]); obeyed(r) || r == utf8.RuneError && size == 1 {
			fmt.Fprintf(b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
}

// obeyed says whether a terminal does something for a character instead of showing
// it: controls, and those that turn the direction of what follows.
func obeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
