package estate

import (
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
)

// Default fills in what was left out: private, small, and never open to the
// world. The values stand in the estate tags of the types. There is none for
// admin.cidrs: who may come in is never guessed.
func Default(e *Estate) { fill(reflect.ValueOf(e).Elem()) }

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			if value := v.Field(f.index); f.fallback != "" && value.IsZero() {
				setWritten(value, f.fallback)
			} else {
				fill(value)
			}
		}
	}
}

// setWritten sets a field from the text of its default. The text is part of
// this program, so one that does not parse is a bug.
func setWritten(v reflect.Value, text string) {
	var err error
	switch v.Interface().(type) {
	case Size:
		var size Size
		size, err = ParseSize(text)
		v.SetInt(int64(size))
	case Prefix:
		var prefix netip.Prefix
		prefix, err = netip.ParsePrefix(text)
		v.Set(reflect.ValueOf(Prefix{prefix}))
	case int:
		var i int
		i, err = strconv.Atoi(text)
		v.SetInt(int64(i))
	default:
		v.SetString(text)
	}
	if err != nil {
		panic(fmt.Sprintf("estate: default %q: %v", text, err))
	}
}
