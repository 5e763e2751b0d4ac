package estate

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// The manual names every field, and gives the default that the types have.
func TestManualNamesEveryField(t *testing.T) {
	text, err := os.ReadFile("../../docs/estate-file.md")
	if err != nil {
		t.Fatal(err)
	}
	eachLeaf(reflect.TypeFor[Estate](), "", func(path string, f field) {
		row := ""
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "| `") && strings.Contains(line, "`"+path+"`") {
				row = line
				break
			}
		}
		switch {
		case row == "":
			t.Errorf("docs/estate-file.md does not name %s", path)
		case f.fallback != "" && !strings.Contains(row, f.fallback):
			t.Errorf("docs/estate-file.md: the row of %s does not give its default, %s", path, f.fallback)
		case f.required && !strings.Contains(row, "required"):
			t.Errorf("docs/estate-file.md: the row of %s does not say that it is required", path)
		}
	})
}

// The message that the manual shows is the one that is given.
func TestManualShowsARealMessage(t *testing.T) {
	text, err := os.ReadFile("../../docs/estate-file.md")
	if err != nil {
		t.Fatal(err)
	}
	message, err := os.ReadFile("testdata/invalid/control-plane-even.txt")
	if err != nil {
		t.Fatal(err)
	}
	if shown := strings.Replace(string(message), "control-plane-even.yaml", FileName, 1); !strings.Contains(string(text), shown) {
		t.Errorf("docs/estate-file.md does not show %s", shown)
	}
}

func eachLeaf(t reflect.Type, path string, visit func(string, field)) {
	for _, f := range fieldsOf(t) {
		inner, below := t.Field(f.index).Type, strings.TrimPrefix(path+"."+f.key, ".")
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct && inner.Elem() != reflect.TypeFor[Prefix]() {
				below += "[]"
			}
			inner = inner.Elem()
		}
		if _, scalar := scalars[inner]; scalar || inner.Kind() != reflect.Struct {
			visit(below, f)
			continue
		}
		eachLeaf(inner, below, visit)
	}
}
