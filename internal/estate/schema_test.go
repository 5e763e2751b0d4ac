package estate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("estate.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("estate.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// asJSON reads YAML the way an editor's language server would.
func asJSON(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	value, err = jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func validTexts(t *testing.T) map[string][]byte {
	t.Helper()
	texts := map[string][]byte{}
	for _, file := range []string{"testdata/valid/minimal.yaml", "testdata/valid/full.yaml", filepath.Join(example, FileName)} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = text
	}
	return texts
}

func TestSchemaAcceptsValidExamples(t *testing.T) {
	schema := compiledSchema(t)
	for file, text := range validTexts(t) {
		if err := schema.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Schema and decoder know the same keys: each key of the full example,
// misspelled, is refused by both.
func TestSchemaAndDecoderRefuseUnknownKeys(t *testing.T) {
	schema := compiledSchema(t)
	full := asJSON(t, validTexts(t)["testdata/valid/full.yaml"])
	misspelled := 0
	eachObject(full, func(object map[string]any, open bool) {
		for key, value := range object {
			if open {
				return // labels, arguments: any key may stand there
			}
			delete(object, key)
			object[key+"Zz"] = value
			text, err := yaml.Marshal(full)
			if err != nil {
				t.Fatal(err)
			}
			if schema.Validate(asJSON(t, text)) == nil {
				t.Errorf("the schema accepts %sZz", key)
			}
			if _, err := Parse("x", text); err == nil {
				t.Errorf("the decoder accepts %sZz", key)
			}
			delete(object, key+"Zz")
			object[key] = value
			misspelled++
		}
	}, "")
	if misspelled < 60 {
		t.Errorf("only %d keys were tried; the full example has more", misspelled)
	}
}

func eachObject(value any, visit func(map[string]any, bool), key string) {
	switch v := value.(type) {
	case map[string]any:
		open := strings.HasPrefix(key, "extra") || key == "labels" || key == "pools" || key == "nodes"
		visit(v, open)
		if strings.HasPrefix(key, "extra") {
			return
		}
		for k, below := range v {
			eachObject(below, visit, k)
		}
	case []any:
		for _, item := range v {
			eachObject(item, visit, "")
		}
	}
}

// What the schema refuses, the decoder refuses: an editor never underlines what
// would have worked.
func TestSchemaIsNoStricterThanTheDecoder(t *testing.T) {
	schema := compiledSchema(t)
	refused := 0
	files, _ := filepath.Glob("testdata/invalid/*.yaml")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		var value any
		if yaml.Unmarshal(text, &value) != nil {
			continue
		}
		if _, err := json.Marshal(value); err != nil {
			continue // a key that is not a word has no form in JSON
		}
		if schema.Validate(asJSON(t, text)) == nil {
			continue
		}
		refused++
		if _, err := Load(file); err == nil {
			t.Errorf("%s: refused by the schema only", file)
		}
	}
	if refused < 50 {
		t.Errorf("the schema refuses %d of the invalid examples, want at least 50", refused)
	}
}

// Each constraint is on a field that exists, each field has a description.
func TestSchemaCoversTheTypes(t *testing.T) {
	docs, err := fieldDocs(typesSource, servicesSource)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	collect(reflect.TypeFor[Estate](), fields, func(name, typeName string) {
		if docs[name] == "" && docs[typeName] == "" {
			t.Errorf("%s has no comment, so the schema has no description", name)
		}
	})
	for name := range constraints {
		if !fields[name] {
			t.Errorf("a constraint is on %s, which is no field", name)
		}
	}
}

func collect(t reflect.Type, fields map[string]bool, visit func(name, typeName string)) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if _, scalar := scalars[t]; scalar || t.Kind() != reflect.Struct {
		return
	}
	for _, f := range fieldsOf(t) {
		name := t.Name() + "." + t.Field(f.index).Name
		if fields[name] {
			continue
		}
		fields[name] = true
		visit(name, t.Field(f.index).Type.Name())
		collect(t.Field(f.index).Type, fields, visit)
	}
}
