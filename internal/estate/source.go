package estate

import (
	"fmt"
	"regexp"
	"strings"
)

// mark is a place in the text, both 1-based.
type mark struct{ line, column int }

// source remembers, while a file is read, where each path stands in the text
// and what has been refused, so that every later pass can name a place and none
// complains twice about the same thing.
type source struct {
	file     string
	at       map[string]mark // path -> where its value is (its key, for a list or mapping)
	refused  map[string]bool
	problems Problems
}

func newSource(file string) *source {
	return &source{file: file, at: map[string]mark{"": {1, 1}}, refused: map[string]bool{}}
}

// refuse records a problem at a path, unless that path or something above it
// has been refused already: a second complaint would only follow from the first.
func (s *source) refuse(path, what, why, hint string) {
	if s.silenced(path) {
		return
	}
	s.refused[path] = true
	s.refuseAt(s.placeOf(path), path, what, why, hint)
}

// refuseAt records a problem at a place of its own, such as that of an unknown
// key, and silences nothing.
func (s *source) refuseAt(m mark, path, what, why, hint string) {
	s.problems = append(s.problems, Problem{
		File: s.file, Line: m.line, Column: m.column, Path: path, What: what, Why: why, Hint: hint,
	})
}

func (s *source) silenced(path string) bool {
	for p, more := path, true; more && p != ""; p, more = parentOf(p) {
		if s.refused[p] {
			return true
		}
	}
	return false
}

// placeOf is where the path stands, or the nearest thing above it that is in the text.
func (s *source) placeOf(path string) mark {
	for p, more := path, true; more; p, more = parentOf(p) {
		if m, ok := s.at[p]; ok {
			return m
		}
	}
	return s.at[""]
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// keyed is the path of a key below a path: a.b, or a["x/y"] where the key is not a plain word.
func keyed(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return fmt.Sprintf("%s[%q]", path, key)
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// indexed is the path of an element of a list.
func indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// parentOf is the path without its last step; more is false once there is none.
// A quoted key may hold dots and brackets, so it is cut as a whole.
func parentOf(path string) (parent string, more bool) {
	if path == "" {
		return "", false
	}
	if strings.HasSuffix(path, `"]`) {
		if i := strings.LastIndex(path, `["`); i >= 0 {
			return path[:i], true
		}
	}
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i], true
	}
	return "", true
}
