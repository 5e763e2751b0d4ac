package estate

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// Each row of the table puts one value at one path of the full example, and
// names the paths that must be refused: exactly these, each with a place. A few
// rows, marked -, are just within a limit and accepted. A path of " " stands for
// the file as a whole.
func TestMutations(t *testing.T) {
	text, err := os.ReadFile("testdata/valid/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(mutations) < 200 {
		t.Errorf("the table has %d rows, want at least 200", len(mutations))
	}
	seen := map[string]bool{}
	for _, m := range mutations {
		if seen[m.at+"="+m.value] {
			t.Errorf("row %s: %s is there twice", m.at, m.value)
		}
		seen[m.at+"="+m.value] = true
		want := m.at
		if m.refused != "" {
			want = m.refused
		}
		if want == "-" { // a neighbour of the refused that must be accepted
			want = ""
		}
		if got := strings.Join(refusedPaths(t, mutate(t, text, m.at, m.value)), " "); got != strings.TrimSpace(want) {
			t.Errorf("%s: %s\n got %q\nwant %q", m.at, m.value, got, want)
		}
	}
}

func refusedPaths(t *testing.T, text []byte) []string {
	t.Helper()
	_, err := Parse("x.yaml", text)
	if err == nil {
		return nil
	}
	var problems Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %T, want Problems", err)
	}
	var paths []string
	for _, p := range problems {
		if lines := strings.Count(string(text), "\n"); p.Line < 1 || p.Line > lines+1 || p.Column < 1 {
			t.Errorf("%s: no place in the file", p)
		}
		if p.What == "" || p.Why == "" || p.Hint == "" {
			t.Errorf("%s: not whole", p)
		}
		if !strings.HasPrefix(p.Error(), fmt.Sprintf("x.yaml:%d:%d: ", p.Line, p.Column)) {
			t.Errorf("%s: does not begin with its place", p)
		}
		wantPlace(t, text, p)
		paths = append(paths, p.Path)
	}
	return paths
}

// wantPlace looks the problem's path up in the text, by the YAML library alone:
// the place must be that of the key or of the value there, or, for what is not
// in the text, of the nearest thing above it.
func wantPlace(t *testing.T, text []byte, p Problem) {
	t.Helper()
	if p.Path == "" {
		return // the file as a whole, such as a private key somewhere in it
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	value := doc.Content[0]
	places := []mark{{value.Line, value.Column}}
	for _, step := range pathSteps(p.Path) {
		var next []mark
		value, next = below(value, step)
		if value == nil {
			break
		}
		places = next
	}
	if strings.HasPrefix(p.What, "has a key") { // which, by being no word, is not in the path
		for i := 0; i < len(value.Content); i += 2 {
			places = append(places, mark{value.Content[i].Line, value.Content[i].Column})
		}
	}
	if !slices.Contains(places, mark{p.Line, p.Column}) {
		t.Errorf("%s: is placed at %d:%d, want one of %v", p, p.Line, p.Column, places)
	}
}

var stepForm = regexp.MustCompile(`\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[]+)`)

// pathSteps takes a path such as a.b["x/y"][2] apart; elements of lists are #2.
func pathSteps(path string) []string {
	var steps []string
	for _, m := range stepForm.FindAllStringSubmatch(path, -1) {
		switch {
		case strings.HasPrefix(m[0], `["`):
			steps = append(steps, m[1])
		case m[2] != "":
			steps = append(steps, "#"+m[2])
		default:
			steps = append(steps, m[3])
		}
	}
	return steps
}

// below is the value one step down, and where it may be said to be: every key
// of that name with its value, or the element of a list.
func below(n *yaml.Node, step string) (*yaml.Node, []mark) {
	if index, ok := strings.CutPrefix(step, "#"); ok {
		i, _ := strconv.Atoi(index)
		if n.Kind != yaml.SequenceNode || i >= len(n.Content) {
			return nil, nil
		}
		return n.Content[i], []mark{{n.Content[i].Line, n.Content[i].Column}}
	}
	var found *yaml.Node
	var places []mark
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == step {
			found = n.Content[i+1]
			places = append(places, mark{n.Content[i].Line, n.Content[i].Column}, mark{found.Line, found.Column})
		}
	}
	return found, places
}

// mutate puts a YAML value at a path, adding keys and elements as needed; the
// value "(removed)" takes the key away.
func mutate(t testing.TB, text []byte, at, value string) []byte {
	t.Helper()
	var doc, replacement yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(value), &replacement); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	parent, steps := doc.Content[0], strings.Split(strings.NewReplacer("[", ".#", "]", "").Replace(at), ".")
	for i, step := range steps {
		slot := slotOf(parent, step)
		if i < len(steps)-1 {
			parent = parent.Content[slot]
			continue
		}
		if value == "(removed)" {
			parent.Content = append(parent.Content[:slot-1], parent.Content[slot+1:]...)
			continue
		}
		parent.Content[slot] = replacement.Content[0]
	}
	out, err := yaml.Marshal(&doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// slotOf is the index in Content of the value of a key or element, made if new.
func slotOf(n *yaml.Node, step string) int {
	if index, ok := strings.CutPrefix(step, "#"); ok {
		i, _ := strconv.Atoi(index)
		for len(n.Content) <= i {
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"})
		}
		return i
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == step {
			return i + 1
		}
	}
	n.Content = append(n.Content,
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: step}, &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"})
	return len(n.Content) - 1
}
