package api

import (
	"time"
)

// record is what every resource has.
type record struct {
	ID      string
	Project string
	Name    string
	Tags    []string
	Created time.Time
	Updated time.Time
}

func (r *record) meta() *record { return r }

// touch marks a change.
func (r *record) touch() { r.Updated = now() }

type resource interface{ meta() *record }

func newRecord(project, name string, tags []string) record {
	t := now()
	return record{ID: newID(), Project: project, Name: name, Tags: list(tags), Created: t, Updated: t}
}

// table holds the resources of one kind in the order in which they were made.
// Changes made through it are told to the world, which remembers them as the
// effect of the call.
type table[T resource] struct {
	Kind  string
	Items map[string]T
	Order []string
}

func newTable[T resource](kind string) *table[T] {
	return &table[T]{Kind: kind, Items: map[string]T{}}
}

func (t *table[T]) get(id string) (T, bool) {
	v, ok := t.Items[id]
	return v, ok
}

func (t *table[T]) all() []T {
	out := make([]T, 0, len(t.Order))
	for _, id := range t.Order {
		out = append(out, t.Items[id])
	}
	return out
}

func (t *table[T]) where(keep func(T) bool) []T {
	out := []T{}
	for _, id := range t.Order {
		if v := t.Items[id]; keep(v) {
			out = append(out, v)
		}
	}
	return out
}

func (t *table[T]) any(keep func(T) bool) bool {
	for _, id := range t.Order {
		if keep(t.Items[id]) {
			return true
		}
	}
	return false
}

// add puts a resource in and tells the world.
func add[T resource](w *world, t *table[T], v T) T {
	id := v.meta().ID
	t.Items[id] = v
	t.Order = append(t.Order, id)
	w.effect("created", t.Kind, id)
	return v
}

// silently adds what exists by itself, so that no call is said to have made it.
func silently[T resource](w *world, t *table[T], v T) T {
	before := w.touched
	add(w, t, v)
	w.touched = before
	return v
}

// remove takes a resource out and tells the world.
func remove[T resource](w *world, t *table[T], id string) {
	if _, ok := t.Items[id]; !ok {
		return
	}
	delete(t.Items, id)
	for i, o := range t.Order {
		if o == id {
			t.Order = append(t.Order[:i:i], t.Order[i+1:]...)
			break
		}
	}
	w.effect("deleted", t.Kind, id)
}

// change marks a resource as changed and tells the world.
func change[T resource](w *world, t *table[T], v T) {
	v.meta().touch()
	w.effect("changed", t.Kind, v.meta().ID)
}

// anyTag says whether a resource has one of the tags.
func anyTag(have, want []string) bool {
	for _, t := range want {
		for _, h := range have {
			if h == t {
				return true
			}
		}
	}
	return len(want) == 0
}

// allTags says whether a resource has every one of the tags.
func allTags(have, want []string) bool {
	for _, t := range want {
		if !anyTag(have, []string{t}) {
			return false
		}
	}
	return true
}
