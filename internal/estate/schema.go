package estate

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
)

// The comments on the fields of these files are the descriptions of the schema,
// so that there is one text to keep true.
var (
	//go:embed types.go
	typesSource string
	//go:embed types_services.go
	servicesSource string
)

// Schema gives the JSON Schema (draft 2020-12) of the estate file, for editors
// and for checks in other tools. It says all that a schema can say well: keys,
// types, what is required, defaults, choices, forms and bounds. What needs more
// than one value at a time is checked by Parse and Load alone.
//
// The generator is this small one because the keys, defaults and requirements
// are in tags that the decoder reads as well; a library would need them twice.
func Schema() ([]byte, error) {
	docs, err := fieldDocs(typesSource, servicesSource)
	if err != nil {
		return nil, fmt.Errorf("reading the descriptions of the types: %w", err)
	}
	g := generator{docs: docs, definitions: map[string]any{}}
	root, err := g.object(reflect.TypeFor[Estate]())
	if err != nil {
		return nil, err
	}
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "bastide estate"
	root["$defs"] = g.definitions
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the schema: %w", err)
	}
	return append(out, '\n'), nil
}

type generator struct {
	docs        map[string]string // "Type" and "Type.Field" -> comment
	definitions map[string]any
}

// object describes a struct type.
func (g *generator) object(t reflect.Type) (map[string]any, error) {
	properties, required := map[string]any{}, []string{}
	for _, f := range fieldsOf(t) {
		name := t.Name() + "." + t.Field(f.index).Name
		p, err := g.property(t.Field(f.index).Type)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if doc := g.docs[name]; doc != "" {
			p["description"] = doc
		} else if doc := g.docs[t.Field(f.index).Type.Name()]; doc != "" {
			p["description"] = doc
		}
		for keyword, value := range constraints[name] {
			p[keyword] = value
		}
		if f.fallback != "" {
			p["default"] = g.example(t.Field(f.index).Type, f.fallback)
		}
		if f.example != "" {
			p["examples"] = []any{g.example(t.Field(f.index).Type, f.example)}
		}
		if f.required || g.needed(t.Field(f.index).Type) {
			required = append(required, f.key)
		}
		properties[f.key] = p
	}
	schema := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	if doc := g.docs[t.Name()]; doc != "" {
		schema["description"] = doc
	}
	return schema, nil
}

// needed says whether a struct holds, at any depth, something that must be written.
func (g *generator) needed(t reflect.Type) bool {
	if _, scalar := scalars[t]; scalar || t.Kind() != reflect.Struct {
		return false
	}
	for _, f := range fieldsOf(t) {
		if f.required || g.needed(t.Field(f.index).Type) {
			return true
		}
	}
	return false
}

func (g *generator) property(t reflect.Type) (map[string]any, error) {
	switch t {
	case reflect.TypeFor[Size]():
		return map[string]any{"type": "string", "pattern": writtenSize.String()}, nil
	case reflect.TypeFor[Prefix]():
		return map[string]any{"type": "string", "pattern": `^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$`}, nil
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}, nil
	case reflect.Int:
		return map[string]any{"type": "integer"}, nil
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
	case reflect.Interface: // any value, but never an empty one
		return map[string]any{"type": []string{"string", "number", "boolean", "array", "object"}}, nil
	case reflect.Pointer:
		return g.property(t.Elem())
	case reflect.Slice:
		items, err := g.property(t.Elem())
		return map[string]any{"type": "array", "items": items}, err
	case reflect.Map:
		values, err := g.property(t.Elem())
		return map[string]any{"type": "object", "additionalProperties": values}, err
	case reflect.Struct:
		if _, known := g.definitions[t.Name()]; !known {
			definition, err := g.object(t)
			if err != nil {
				return nil, err
			}
			g.definitions[t.Name()] = definition
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}, nil
	}
	return nil, fmt.Errorf("the schema has no form for %s", t)
}

// example turns the text of a tag into a JSON value of the field's type.
func (g *generator) example(t reflect.Type, text string) any {
	if list, ok := strings.CutPrefix(text, "["); ok {
		values := []any{}
		for item := range strings.SplitSeq(strings.TrimSuffix(list, "]"), ",") {
			values = append(values, strings.TrimSpace(item))
		}
		return values
	}
	if t.Kind() == reflect.Int {
		if i, err := strconv.Atoi(text); err == nil {
			return i
		}
	}
	return text
}

// fieldDocs collects the comments on types and fields, each as one line.
func fieldDocs(sources ...string) (map[string]string, error) {
	docs := map[string]string{}
	for _, source := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		documented(file, docs)
	}
	return docs, nil
}

func documented(file *ast.File, docs map[string]string) {
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		for _, spec := range group.Specs {
			typ := spec.(*ast.TypeSpec)
			docs[typ.Name.Name] = oneLine(group.Doc.Text())
			structure, ok := typ.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range structure.Fields.List {
				for _, name := range f.Names {
					docs[typ.Name.Name+"."+name.Name] = oneLine(f.Doc.Text() + " " + f.Comment.Text())
				}
			}
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
