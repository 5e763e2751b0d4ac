package picture

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/plan"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the pictures in testdata; review the diff")

func full(t testing.TB) *blueprint.Graph {
	t.Helper()
	e, err := estate.Load("../estate/testdata/valid/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g, err := blueprint.Build(e, nil, e.Admin.PublicKeys)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// small has each state once.
func small() plan.Plan {
	step := func(kind blueprint.Kind, name, node string, needs ...string) blueprint.Step {
		return blueprint.Step{ID: string(kind) + "/" + name, Kind: kind, Name: name, Node: node, Needs: needs}
	}
	return plan.Plan{Estate: "small", Actions: []plan.Action{
		{Step: step("vpc", "small", ""), Op: plan.Keep, Disruption: plan.None},
		{Step: step("private-network", "small", "", "vpc/small"), Op: plan.Keep, Disruption: plan.None},
		{Step: step("gateway", "small-gateway", ""), Op: plan.Update, Disruption: plan.Brief, Reason: "bastion ranges not as in the file"},
		{Step: step("volume", "small-cp-1", "small-cp-1"), Op: plan.Create, Disruption: plan.None, Reason: "it does not exist"},
		{Step: step("server", "small-cp-1", "small-cp-1", "volume/small-cp-1"), Op: plan.Wait, Disruption: plan.None, Reason: "it is starting"},
		{Step: step("address", "small-cp-1", "small-cp-1", "private-network/small"), Op: plan.Refuse, Reason: "it is held by <something> & \"someone\""},
		{Step: step("private-nic", "small-cp-1", "small-cp-1", "server/small-cp-1", "address/small-cp-1"), Op: plan.Create, Disruption: plan.None},
		{Step: step("machine", "small-cp-1", "small-cp-1", "private-nic/small-cp-1"), Op: plan.Unknown, Reason: "it could not be read"},
		{Step: step("bucket", "small-app", ""), Op: plan.Create, Disruption: plan.None},
	}, Strays: []plan.Stray{{Kind: "server", Name: "small-old-1", CloudID: "8a1d", Why: "the file does not ask for it"}}}
}

func TestGolden(t *testing.T) {
	p := Plan(small())
	text, err := p.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"small.svg": p.SVG(), "small.dot": p.DOT(), "small.mmd": p.Mermaid(), "small.json": text} {
		file := filepath.Join("testdata", name)
		if *rewrite {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs (go test -rewrite to accept); got:\n%s", file, got)
		}
	}
}

// drawn is what a reader of a format finds in it.
type drawn struct{ nodes, edges []string }

func (d drawn) sorted() drawn {
	slices.Sort(d.nodes)
	slices.Sort(d.edges)
	return d
}

func wanted(p *Picture) drawn {
	var d drawn
	for _, n := range p.Nodes {
		d.nodes = append(d.nodes, n.ID)
	}
	for _, e := range p.Edges {
		d.edges = append(d.edges, e.From+" → "+e.To)
	}
	return d.sorted()
}

// readSVG reads with a strict parser: whatever is no XML is an error.
func readSVG(t failer, text string) (d drawn, texts []string) {
	dec := xml.NewDecoder(strings.NewReader(text))
	var path []string
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return d.sorted(), texts
		}
		if err != nil {
			t.Fatalf("the SVG is no XML: %v", err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			path = append(path, tok.Name.Local)
			if tok.Name.Local == "script" || tok.Name.Local == "a" || tok.Name.Local == "image" {
				t.Fatalf("the SVG has an element %s", tok.Name.Local)
			}
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			switch at := strings.Join(path, " "); {
			case at == "svg g title":
				id, _, _ := strings.Cut(string(tok), ": ")
				d.nodes = append(d.nodes, id)
			case at == "svg path title":
				d.edges = append(d.edges, string(tok))
			case strings.HasSuffix(at, "text"):
				texts = append(texts, string(tok))
			}
		}
	}
}

type failer interface{ Fatalf(string, ...any) }

var dotString = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)

// readDOT reads the lines that a node or an edge has.
func readDOT(t failer, text string) drawn {
	var d drawn
	unquote := strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		var parts []string
		for _, m := range dotString.FindAllStringSubmatch(line, -1) {
			parts = append(parts, unquote.Replace(m[1]))
		}
		rest := dotString.ReplaceAllString(line, "S")
		switch rest {
		case "S [label=S, tooltip=S, fillcolor=S, color=S];":
			d.nodes = append(d.nodes, parts[0])
		case "S -> S;":
			d.edges = append(d.edges, parts[0]+" → "+parts[1])
		case "", "}", "digraph S {", "label=S; labelloc=t; rankdir=LR; fontname=S;", "label=S;",
			"node [shape=box, style=S, fontname=S, fontsize=10];", "edge [color=S];":
		default:
			if !regexp.MustCompile(`^subgraph cluster_\d+ \{$`).MatchString(rest) {
				t.Fatalf("the DOT has a line %q", line)
			}
		}
	}
	return d.sorted()
}

var (
	mermaidNode = regexp.MustCompile(`^    (n\d+)\["([^"]*)<br/>([^"]*)<br/>([^"]*)"\]:::[a-z]+$`)
	mermaidEdge = regexp.MustCompile(`^  (n\d+) --> (n\d+)$`)
	mermaidRest = regexp.MustCompile(`^(%% .*|flowchart LR|  subgraph g\d+\["[^"]*"\]|  end|  classDef [a-z]+ fill:#[0-9a-f]{6},stroke:#[0-9a-f]{6},color:#101828|)$`)
	numbered    = regexp.MustCompile(`#(\d+);`)
)

func readMermaid(t failer, text string) (nodes int, edges []string, labels []string) {
	plain := func(s string) string {
		return numbered.ReplaceAllStringFunc(s, func(m string) string {
			n, _ := strconv.Atoi(m[1 : len(m)-1])
			return string(rune(n))
		})
	}
	names := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if m := mermaidNode.FindStringSubmatch(line); m != nil {
			names[m[1]] = plain(m[2]) + "/" + plain(m[3])
			labels = append(labels, names[m[1]])
			continue
		}
		if m := mermaidEdge.FindStringSubmatch(line); m != nil {
			edges = append(edges, names[m[1]]+" → "+names[m[2]])
			continue
		}
		if !mermaidRest.MatchString(line) {
			t.Fatalf("the Mermaid has a line %q", line)
		}
	}
	slices.Sort(labels)
	slices.Sort(edges)
	return len(names), edges, labels
}

// check reads a picture back from all formats.
func check(t failer, p *Picture) {
	want := wanted(p)
	svg, _ := readSVG(t, p.SVG())
	dot := readDOT(t, p.DOT())
	for name, got := range map[string]drawn{"SVG": svg, "DOT": dot} {
		if !slices.Equal(got.nodes, want.nodes) || !slices.Equal(got.edges, want.edges) {
			t.Fatalf("%s has %d nodes and %d edges, want %d and %d, or others", name, len(got.nodes), len(got.edges), len(want.nodes), len(want.edges))
		}
	}
	n, edges, _ := readMermaid(t, p.Mermaid())
	if n != len(want.nodes) || len(edges) != len(want.edges) {
		t.Fatalf("Mermaid has %d nodes and %d edges, want %d and %d", n, len(edges), len(want.nodes), len(want.edges))
	}
	text, err := p.JSON()
	var back Picture
	if err != nil || json.Unmarshal([]byte(text), &back) != nil || !slices.Equal(back.Edges, p.Edges) || len(back.Nodes) != len(p.Nodes) {
		t.Fatalf("JSON does not hold the picture: %v", err)
	}
}

func TestEveryStepAndEveryNeedIsInEachFormat(t *testing.T) {
	g := full(t)
	needs := 0
	for _, s := range g.Steps {
		needs += len(s.Needs)
	}
	for of, p := range map[string]*Picture{"file": File(g), "plan": Plan(plan.Make(g, plan.Live{}))} {
		if len(p.Nodes) != len(g.Steps) || len(p.Edges) != needs || p.Of != of {
			t.Errorf("of %s: %d nodes and %d edges, want %d and %d", of, len(p.Nodes), len(p.Edges), len(g.Steps), needs)
		}
		check(t, p)
		_, edges, labels := readMermaid(t, p.Mermaid())
		if want := wanted(p); !slices.Equal(labels, want.nodes) || !slices.Equal(edges, want.edges) {
			t.Errorf("of %s: Mermaid has other nodes or edges", of)
		}
	}
}

// Any graph with any names gives pictures that can be read back, the same each
// time, with boxes that do not overlap and edges that lead to the right.
func TestAnyGraph(t *testing.T) {
	kinds := []blueprint.Kind{"vpc", "server", "volume", "machine", "bucket", "lb-backend", "dns-record"}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringMatching(`[a-z0-9./@*-]{1,60}`), rapid.String(), rapid.SampledFrom([]string{
			`"></text><script>alert(1)</script>`, `a"b`, `a\`, `end`, `]:::x`, "a\nb", "#quot;", "%% c", "<br/>", "😀", "\x00", "]]>", "&amp;", "é"}))
		made := plan.Plan{Estate: name.Draw(t, "estate")}
		var ids []string
		for i := range rapid.IntRange(0, 25).Draw(t, "steps") {
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			s := blueprint.Step{Kind: kind, Name: fmt.Sprintf("%d%s", i, name.Draw(t, "name"))}
			s.ID = string(kind) + "/" + s.Name
			if rapid.Bool().Draw(t, "of a node") {
				s.Node = rapid.SampledFrom([]string{"a", "b", "c\"d"}).Draw(t, "node")
			}
			if len(ids) > 0 {
				s.Needs = rapid.SliceOfN(rapid.SampledFrom(ids), 0, 4).Draw(t, "needs")
			}
			ids = append(ids, s.ID)
			made.Actions = append(made.Actions, plan.Action{Step: s, Reason: name.Draw(t, "reason"), Op: rapid.SampledFrom([]plan.Op{plan.Keep, plan.Create,
				plan.Update, plan.Wait, plan.Refuse, plan.Unknown}).Draw(t, "op"), Disruption: rapid.SampledFrom([]plan.Disruption{plan.None, plan.Reboot}).Draw(t, "disruption")})
		}
		for range rapid.IntRange(0, 3).Draw(t, "strays") {
			made.Strays = append(made.Strays, plan.Stray{Kind: "server", Name: "old", CloudID: name.Draw(t, "id")})
		}
		p := Plan(made)
		if len(p.Nodes) != len(made.Actions)+len(made.Strays) {
			t.Fatalf("%d nodes of %d steps and %d strays", len(p.Nodes), len(made.Actions), len(made.Strays))
		}
		readSVG(t, p.SVG())
		readDOT(t, p.DOT())
		readMermaid(t, p.Mermaid())
		if again := Plan(made); again.SVG() != p.SVG() || again.DOT() != p.DOT() || again.Mermaid() != p.Mermaid() {
			t.Fatal("the same plan gives other bytes")
		}
		layOut(t, p)
	})
}

// layOut checks the drawing's geometry.
func layOut(t failer, p *Picture) {
	l := p.layout()
	for i, a := range p.Nodes {
		at := l.boxes[a.ID]
		if at.x < margin || at.y < margin+headHeight || at.x+at.w > l.width-margin || at.y+boxHeight > l.height-margin {
			t.Fatalf("%s is outside", a.ID)
		}
		for _, b := range p.Nodes[:i] {
			o := l.boxes[b.ID]
			if at.x < o.x+o.w && o.x < at.x+at.w && at.y < o.y+boxHeight && o.y < at.y+boxHeight {
				t.Fatalf("%s and %s overlap", a.ID, b.ID)
			}
		}
	}
	for _, e := range p.Edges {
		if from, to := l.boxes[e.From], l.boxes[e.To]; from.x+from.w >= to.x {
			t.Fatalf("%v does not lead to the right", e)
		}
	}
}

func TestTextIsEscapedAndReadsBackAsItWas(t *testing.T) {
	nasty := `<b>&"'` + "`#quot;%%"
	made := plan.Plan{Estate: nasty, Actions: []plan.Action{{Step: blueprint.Step{ID: "bucket/" + nasty, Kind: "bucket", Name: nasty}, Op: plan.Create}}}
	p := Plan(made)
	check(t, p)
	_, texts := readSVG(t, p.SVG())
	if !slices.Contains(texts, nasty) {
		t.Errorf("the name is not among the texts %q", texts)
	}
	if _, _, labels := readMermaid(t, p.Mermaid()); !slices.Contains(labels, "bucket/"+nasty) {
		t.Errorf("Mermaid says %q", labels)
	}
}

func TestRealityShowsWhatThereIs(t *testing.T) {
	g := full(t)
	live := plan.Live{Steps: map[string]plan.Observed{
		"vpc/staging":             {Status: "present", Settled: true},
		"private-network/staging": {Status: "present", Settled: true, CloudID: "pn-1"},
		"address/staging-cp-1":    {Status: "present", Settled: true},
		"server/staging-cp-1":     {Status: "stopping"},
		"gateway/staging-gateway": {Status: "error", Broken: "it is in error"},
	}, Unreachable: map[string]string{"machine/staging-cp-1": "it does not answer"},
		Strays: []plan.Stray{{Kind: "server", Name: "staging-cp-1", CloudID: "twin", Why: "an older one claims the same step"}}}
	p := Reality(g, live)
	states := map[string]State{}
	for _, n := range p.Nodes {
		states[n.ID] = n.State
	}
	for id, want := range map[string]State{"vpc/staging": Live, "server/staging-cp-1": Changing, "gateway/staging-gateway": Broken,
		"machine/staging-cp-1": "unknown", "server/staging-cp-1 twin": Stray} {
		if states[id] != want {
			t.Errorf("%s is %q, want %q", id, states[id], want)
		}
	}
	if len(p.Nodes) != 7 {
		t.Errorf("%d nodes", len(p.Nodes))
	}
	want := []Edge{{"vpc/staging", "private-network/staging"}, {"private-network/staging", "address/staging-cp-1"}}
	if !slices.Equal(p.Edges, want) {
		t.Errorf("edges %v, want %v", p.Edges, want)
	}
	check(t, p)
}
