package node

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// argSet renders the flags of a program: Talos's own, and those that the
// configuration adds under the rules that Talos has for them.
type argSet struct {
	values map[string][]string
	denied map[string]bool
	joined map[string]bool
	user   map[string]bool
}

func newArgs(own map[string]string) *argSet {
	a := &argSet{values: map[string][]string{}, denied: map[string]bool{}, joined: map[string]bool{}, user: map[string]bool{}}
	for k, v := range own {
		a.values[k] = []string{v}
	}
	return a
}

// deny forbids the configuration to set these flags.
func (a *argSet) deny(keys ...string) *argSet {
	for _, k := range keys {
		a.denied[k] = true
	}
	return a
}

// join lets the configuration add to the lists of these flags.
func (a *argSet) join(keys ...string) *argSet {
	for _, k := range keys {
		a.joined[k] = true
	}
	return a
}

// merge applies the configuration's extra arguments.
func (a *argSet) merge(extra map[string][]string) error {
	for k, v := range extra {
		switch {
		case a.denied[k]:
			return fmt.Errorf("extra arg %q is not allowed", k)
		case a.joined[k]:
			var list []string
			for _, part := range strings.Split(strings.Join(append(slices.Clone(a.values[k]), v...), ","), ",") {
				if part = strings.TrimSpace(part); part != "" && !slices.Contains(list, part) {
					list = append(list, part)
				}
			}
			a.values[k] = []string{strings.Join(list, ",")}
		default:
			a.values[k] = slices.Clone(v)
		}
		a.user[k] = true
	}
	return nil
}

// def sets a flag unless the configuration did.
func (a *argSet) def(key, value string) {
	if !a.user[key] {
		a.values[key] = []string{value}
	}
}

// flags returns the flags in the order of their names.
func (a *argSet) flags() []string {
	keys := make([]string, 0, len(a.values))
	for k := range a.values {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var out []string
	for _, k := range keys {
		for _, v := range a.values[k] {
			out = append(out, "--"+k+"="+v)
		}
	}
	return out
}
