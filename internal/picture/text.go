package picture

import (
	"encoding/json"
	"fmt"
	"strings"
)

// JSON is the model itself.
func (p *Picture) JSON() (string, error) {
	text, err := json.MarshalIndent(p, "", "  ")
	return string(text) + "\n", err
}

// DOT is the picture in the language of Graphviz.
func (p *Picture) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotQuote(p.Estate))
	fmt.Fprintf(&b, "  label=%s; labelloc=t; rankdir=LR; fontname=\"Helvetica\";\n", dotQuote(p.title()))
	b.WriteString("  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=10];\n  edge [color=\"#667085\"];\n")
	for i, g := range p.Groups() {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s;\n", i, dotQuote(g.Name))
		for _, n := range g.Nodes {
			fill, border := n.State.shade()
			fmt.Fprintf(&b, "    %s [label=%s, tooltip=%s, fillcolor=\"%s\", color=\"%s\"];\n",
				dotQuote(n.ID), dotQuote(string(n.Kind)+"\n"+n.Name+"\n"+n.word()), dotQuote(n.tip()), fill, border)
		}
		b.WriteString("  }\n")
	}
	for _, e := range p.Edges {
		fmt.Fprintf(&b, "  %s -> %s;\n", dotQuote(e.From), dotQuote(e.To))
	}
	b.WriteString("}\n")
	return b.String()
}

// dotQuote writes a string of DOT. A backslash in a label would begin an escape.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", " ", "\x00", " ").Replace(s) + `"`
}

// Mermaid is the picture in the language of Mermaid, as GitHub and GitLab draw it
// inside Markdown. They draw no more than 500 edges.
func (p *Picture) Mermaid() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%%%% %s\nflowchart LR\n", oneLine(p.title()))
	names := map[string]string{}
	for i, n := range p.Nodes {
		names[n.ID] = fmt.Sprintf("n%d", i)
	}
	for i, g := range p.Groups() {
		fmt.Fprintf(&b, "  subgraph g%d[\"%s\"]\n", i, mermaidText(g.Name))
		for _, n := range g.Nodes {
			fmt.Fprintf(&b, "    %s[\"%s<br/>%s<br/>%s\"]:::%s\n", names[n.ID], mermaidText(string(n.Kind)), mermaidText(n.Name), mermaidText(n.word()), n.State)
		}
		b.WriteString("  end\n")
	}
	for _, e := range p.Edges {
		fmt.Fprintf(&b, "  %s --> %s\n", names[e.From], names[e.To])
	}
	order, _ := p.states()
	for _, s := range order {
		fill, border := s.shade()
		fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:%s,color:#101828\n", s, fill, border)
	}
	return b.String()
}

// mermaidText writes text inside a quoted label. Everything that has a meaning in
// Mermaid, in Markdown or in HTML becomes a numbered character.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range oneLine(s) {
		if strings.ContainsRune("\"#&<>`\\*_[]{}|;%~", r) {
			fmt.Fprintf(&b, "#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
}

// title names the picture.
func (p *Picture) title() string {
	switch p.Of {
	case "plan":
		return p.Estate + ": what up would do"
	case "live":
		return p.Estate + ": what there is"
	}
	return p.Estate + ": what the file asks for"
}

// tip is what there is to say about a node.
func (n Node) tip() string {
	text := n.ID + ": " + n.word()
	if n.Note != "" {
		text += "; " + n.Note
	}
	if n.CloudID != "" {
		text += "; " + n.CloudID
	}
	return text
}
