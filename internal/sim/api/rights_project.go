package api

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// projectAskedFor is the project that a call is about: the one that it names, or
// that of the thing that its path names. Empty where it names neither, as in a
// listing of all that a key may see.
func (c *call) projectAskedFor() string {
	q := c.req.URL.Query()
	for _, name := range []string{"project_id", "project"} {
		if p := q.Get(name); p != "" {
			return p
		}
	}
	var body struct {
		ProjectID json.RawMessage `json:"project_id"`
		Project   json.RawMessage `json:"project"`
	}
	_ = json.Unmarshal(c.body, &body) // the handler refuses what is no JSON
	for _, text := range []json.RawMessage{body.ProjectID, body.Project} {
		var p string
		if json.Unmarshal(text, &p) == nil && p != "" {
			return p
		}
	}
	segments := strings.Split(c.req.URL.Path, "/")
	slices.Reverse(segments) // the innermost thing decides
	for _, s := range segments {
		if p := c.projectOf(s); p != "" {
			return p
		}
	}
	return ""
}

// homes is what can tell the project of something that it holds.
type homes interface{ home(id string) string }

func (t *table[T]) home(id string) string {
	if v, ok := t.get(id); ok {
		return v.meta().Project
	}
	return ""
}

// projectOf is the project of anything that exists; empty for what does not, or
// belongs to none.
func (c *call) projectOf(id string) string {
	if !uuidPattern.MatchString(id) {
		return ""
	}
	tables := reflect.ValueOf(c.world.State)
	for i := range tables.NumField() {
		if t, ok := tables.Field(i).Interface().(homes); ok {
			if p := t.home(id); p != "" {
				return p
			}
		}
	}
	return ""
}

// visible leaves out of a listing what is in projects in which the call's key
// lacks the right to read it.
func visible[T resource](c *call, items []T) []T {
	if !c.granted.bound {
		return items
	}
	r := c.right()
	return slices.DeleteFunc(slices.Clone(items), func(v T) bool {
		r.project = v.meta().Project
		return !c.granted.may(r)
	})
}
