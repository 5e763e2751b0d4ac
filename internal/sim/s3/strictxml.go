package s3

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"strings"
)

const namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

const xmlHeader = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

// element is one XML element as it stands.
type element struct {
	name     xml.Name
	children []element
}

// decodeXML reads a body into v, a pointer to a struct, and refuses what the
// schema does not know: another root, an element without a field, text behind
// the end. encoding/xml alone would pass over all of these.
func decodeXML(body []byte, root string, v any) error {
	tree, err := parseTree(body)
	if err != nil || tree.name.Local != root || (tree.name.Space != "" && tree.name.Space != namespace) {
		return malformedXML()
	}
	if !known(tree, reflect.TypeOf(v).Elem()) {
		return malformedXML()
	}
	if err := xml.Unmarshal(body, v); err != nil {
		return malformedXML()
	}
	return nil
}

// deepest is how far elements may be nested; no body of S3 comes near.
const deepest = 16

func parseTree(body []byte) (element, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	stack := []element{{}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return element{}, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(stack) > deepest {
				return element{}, errors.New("nested too deeply")
			}
			stack = append(stack, element{name: t.Name})
		case xml.EndElement:
			last := len(stack) - 1
			stack[last-1].children = append(stack[last-1].children, stack[last])
			stack = stack[:last]
		case xml.Directive:
			return element{}, errors.New("document type definitions are not accepted")
		case xml.CharData:
			if len(stack) == 1 && len(bytes.TrimSpace(t)) > 0 {
				return element{}, errors.New("text outside the root")
			}
		}
	}
	if len(stack) != 1 || len(stack[0].children) != 1 {
		return element{}, errors.New("not one root")
	}
	return stack[0].children[0], nil
}

// known says whether every child of an element, at any depth, has a field, and
// those that may stand once do.
func known(e element, t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return len(e.children) == 0
	}
	seen := map[string]bool{}
	for _, child := range e.children {
		f, ok := field(t, child.name.Local)
		repeated := ok && f.Kind() == reflect.Slice
		if !ok || (seen[child.name.Local] && !repeated) || !known(child, f) {
			return false
		}
		seen[child.name.Local] = true
	}
	return true
}

// field finds the type of a struct's field by its element name.
func field(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("xml"), ",")
		if f.Anonymous {
			if inner, ok := field(f.Type, name); ok {
				return inner, true
			}
			continue
		}
		if f.Name == "XMLName" || tag == "-" || strings.Contains(f.Tag.Get("xml"), ",attr") {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		if tag == name {
			return f.Type, true
		}
	}
	return nil, false
}

// encodeXML writes an answer as the recordings have it.
func encodeXML(v any) ([]byte, error) {
	body, err := xml.Marshal(v)
	return append([]byte(xmlHeader), body...), err
}
