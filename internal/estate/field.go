package estate

import (
	"reflect"
	"strings"
)

// field is what the tags of a struct field say: its key in the file, whether
// it must be written, the value it takes otherwise, and an example. Decoder,
// defaults and schema all read it, so they cannot disagree.
type field struct {
	index    int
	key      string
	required bool
	fallback string // the default, as it would be written in the file
	example  string
}

// fieldsOf lists the fields of a struct type that stand in the file. The
// estate tag is a comma-separated list; example, which may hold commas, is last.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := field{index: i, key: t.Field(i).Tag.Get("yaml")}
		if f.key == "-" || f.key == "" {
			continue
		}
		tag, example, _ := strings.Cut(t.Field(i).Tag.Get("estate"), "example=")
		f.example = example
		for part := range strings.SplitSeq(tag, ",") {
			if part == "required" {
				f.required = true
			} else if value, ok := strings.CutPrefix(part, "default="); ok {
				f.fallback = value
			}
		}
		fields = append(fields, f)
	}
	return fields
}
