package estate

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// decodeInto fills v from n. It is strict: a key that the type does not have,
// a key written twice, a value of another type, and a key without a value are
// all refused. What is refused stays at its zero value.
func (s *source) decodeInto(n *yaml.Node, v reflect.Value, path string) {
	if _, ok := s.at[path]; !ok {
		s.at[path] = mark{n.Line, n.Column}
	}
	if n.ShortTag() == "!!null" {
		s.refuse(path, "has no value", "an empty key could mean nothing, zero or the default", "give it a value, or remove the line to take the default")
		return
	}
	if decode, ok := scalars[v.Type()]; ok {
		decode(s, n, v, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		s.decodeStruct(n, v, path)
	case reflect.Map:
		s.decodeMap(n, v, path)
	case reflect.Slice:
		s.decodeList(n, v, path)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		s.decodeInto(n, v.Elem(), path)
	case reflect.String:
		s.decodeString(n, v, path)
	case reflect.Int:
		s.decodeInt(n, v, path)
	case reflect.Bool:
		s.decodeBool(n, v, path)
	case reflect.Interface:
		v.Set(reflect.ValueOf(s.plainValue(n, path)))
	default:
		panic(fmt.Sprintf("estate: no decoding for %s at %s", v.Type(), path)) // a new field type, caught by every test
	}
}

// entries walks a mapping's keys, refusing those that are not words or come twice.
func (s *source) entries(n *yaml.Node, path string, each func(key string, at mark, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		s.refuseType(n, path, "a mapping of keys to values", "write the keys below it, indented, or {key: value}")
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := mark{key.Line, key.Column}
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" || oldTruth(key) {
			s.refuseAt(at, path, "has a key that is "+describe(key), "keys are words", quoteHint(key))
			continue
		}
		if line, twice := first[key.Value]; twice {
			s.refuseAt(at, keyed(path, key.Value), "is written twice",
				fmt.Sprintf("the first is on line %d, and only one can hold", line), "remove one of the two")
			continue
		}
		first[key.Value] = key.Line
		each(key.Value, at, value)
	}
}

// decodeKeyed decodes the value of a key. Lists and mappings are placed at
// their key, because that is what a reader looks for.
func (s *source) decodeKeyed(n *yaml.Node, v reflect.Value, path string, key mark) {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		s.at[path] = key
	}
	s.decodeInto(n, v, path)
}

func (s *source) decodeStruct(n *yaml.Node, v reflect.Value, path string) {
	fields := fieldsOf(v.Type())
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	present := map[string]bool{}
	var meant []string
	s.entries(n, path, func(key string, at mark, value *yaml.Node) {
		present[key] = true
		for _, f := range fields {
			if f.key != key {
				continue
			}
			s.decodeKeyed(value, v.Field(f.index), keyed(path, key), at)
			s.refuseEmpty(f, v.Field(f.index), keyed(path, key))
			return
		}
		near := nearest(key, keys)
		meant = append(meant, near)
		s.refuseAt(at, keyed(path, brief(key)), "is not a key that "+placeName(path)+" has", "a key that is not known would be silently ignored",
			unknownKeyHint(near, keys))
	})
	for _, near := range meant {
		if near != "" && !present[near] {
			s.refused[keyed(path, near)] = true // misspelled, not missing: once is enough
		}
	}
	for _, f := range fields {
		if !present[f.key] {
			s.refuseMissing(f, v.Type().Field(f.index).Type, keyed(path, f.key))
		}
	}
}

func unknownKeyHint(near string, keys []string) string {
	if near != "" {
		return "did you mean " + near + "?"
	}
	return "known here: " + strings.Join(keys, ", ")
}

func placeName(path string) string {
	if path == "" {
		return "an estate"
	}
	return path
}

// refuseEmpty refuses a written-out "" or 0 or [] where a value is needed, so
// that an empty value never turns into a default behind the writer's back.
func (s *source) refuseEmpty(f field, v reflect.Value, path string) {
	zeroCounts := f.required && v.Kind() == reflect.Int // a pool may have no nodes
	if !v.IsZero() && !(v.Kind() == reflect.Slice && v.Len() == 0) || zeroCounts {
		return
	}
	switch {
	case f.fallback != "":
		s.refuse(path, "is empty", "it needs a value", "give it one, or remove the line to take the default, "+f.fallback)
	case f.required:
		s.refuse(path, "is empty", "it needs a value and none is safe to assume", fmt.Sprintf("write %s: %s, with your own value", f.key, f.example))
	}
}

// refuseMissing refuses what was not written but is required, here or further down.
func (s *source) refuseMissing(f field, t reflect.Type, path string) {
	if f.required {
		s.refuse(path, "is missing", "it needs a value and none is safe to assume", fmt.Sprintf("add %s: %s, with your own value", f.key, f.example))
		return
	}
	if _, scalar := scalars[t]; scalar || t.Kind() != reflect.Struct {
		return
	}
	for _, below := range fieldsOf(t) {
		s.refuseMissing(below, t.Field(below.index).Type, keyed(path, below.key))
	}
}

func (s *source) decodeMap(n *yaml.Node, v reflect.Value, path string) {
	v.Set(reflect.MakeMap(v.Type()))
	s.entries(n, path, func(key string, at mark, value *yaml.Node) {
		elem := reflect.New(v.Type().Elem()).Elem()
		s.decodeKeyed(value, elem, keyed(path, key), at)
		if !s.refused[keyed(path, key)] {
			v.SetMapIndex(reflect.ValueOf(key), elem)
		}
	})
}

func (s *source) decodeList(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		s.refuseType(n, path, "a list", "write it as [a, b], or one a line after a dash")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		s.decodeInto(item, v.Index(i), indexed(path, i))
	}
}

func (s *source) decodeString(n *yaml.Node, v reflect.Value, path string) {
	switch {
	case n.Kind != yaml.ScalarNode:
		s.refuseType(n, path, "text", "write one value")
	case n.ShortTag() != "!!str":
		s.refuseType(n, path, "text", quoteHint(n))
	case oldTruth(n):
		s.refuse(path, "is "+describe(n), whyOldTruth, quoteHint(n))
	case strings.TrimSpace(n.Value) != n.Value:
		s.refuse(path, "has white space around it", "it would become part of the value", "remove the spaces or line breaks at its ends")
	case strings.ContainsFunc(n.Value, unicode.IsControl):
		s.refuse(path, "holds a line break or control character", "the value is one line of text", "write it on one line")
	default:
		v.SetString(n.Value)
	}
}
