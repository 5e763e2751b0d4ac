package picture

import (
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Measures of the drawing, in pixels.
const (
	boxHeight  = 44
	rowGap     = 10
	columnGap  = 46
	laneGap    = 12
	lanePad    = 10
	laneName   = 18 // the line with the lane's name
	margin     = 20
	headHeight = 62
	charWidth  = 6.7 // of the font at 11 px, on the wide side
	boxPad     = 16
	mostChars  = 44 // longer names are cut; the whole name is in the tooltip
)

type box struct{ x, y, w float64 }

// layout puts depth in columns and groups in lanes: what comes later is further
// right, what belongs together is on one lane.
type layout struct {
	boxes         map[string]box
	lanes         []lane
	width, height float64
}

type lane struct {
	name string
	y, h float64
}

func (p *Picture) layout() layout {
	var widths []float64
	for _, n := range p.Nodes {
		for len(widths) <= n.Depth {
			widths = append(widths, 0)
		}
		widths[n.Depth] = max(widths[n.Depth], boxWidth(n))
	}
	lefts := make([]float64, len(widths))
	x := float64(margin + lanePad)
	for i, w := range widths {
		lefts[i] = x
		x += w + columnGap
	}
	l := layout{boxes: map[string]box{}, width: max(x-columnGap+lanePad+margin, 640)}
	y := float64(margin + headHeight)
	for _, g := range p.Groups() {
		rows := map[int]int{}
		most := 0
		for _, n := range g.Nodes {
			row := rows[n.Depth]
			rows[n.Depth]++
			most = max(most, rows[n.Depth])
			l.boxes[n.ID] = box{lefts[n.Depth], y + laneName + lanePad + float64(row)*(boxHeight+rowGap), widths[n.Depth]}
		}
		h := laneName + 2*lanePad + float64(most)*(boxHeight+rowGap) - rowGap
		l.lanes = append(l.lanes, lane{g.Name, y, h})
		y += h + laneGap
	}
	l.height = y - laneGap + margin
	return l
}

func boxWidth(n Node) float64 {
	chars := max(utf8.RuneCountInString(cut(n.Name)), utf8.RuneCountInString(cut(n.head())))
	return float64(chars)*charWidth + boxPad
}

// head is the first line of a box. What all have in common is in the title.
func (n Node) head() string {
	if n.State == Wanted {
		return string(n.Kind)
	}
	return string(n.Kind) + "  " + n.word()
}

func cut(s string) string {
	if utf8.RuneCountInString(s) <= mostChars {
		return s
	}
	return string([]rune(s)[:mostChars-1]) + "…"
}

const svgStyle = `
    text { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 11px; fill: #101828; }
    .title { font-size: 16px; font-weight: bold; }
    .lane { fill: #fbfcfd; stroke: #d0d5dd; }
    .lane-name { fill: #475467; font-weight: bold; }
    .kind { fill: #475467; font-size: 10px; }
    .edge { fill: none; stroke: #344054; stroke-width: 1.2; }
    .far { stroke: #98a2b3; stroke-width: 0.8; stroke-opacity: 0.55; }
`

// SVG draws the picture. It needs nothing from outside, neither fonts nor scripts.
func (p *Picture) SVG() string {
	l := p.layout()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img">`+"\n", l.width, l.height, l.width, l.height)
	fmt.Fprintf(&b, "  <title>%s</title>\n  <style>%s  </style>\n", escape(p.title()), svgStyle)
	b.WriteString("  <defs><marker id=\"tip\" viewBox=\"0 0 6 6\" refX=\"5.5\" refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\"><path d=\"M0,0 L6,3 L0,6 z\" fill=\"#667085\"/></marker></defs>\n")
	fmt.Fprintf(&b, "  <rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", l.width, l.height)
	fmt.Fprintf(&b, "  <text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", margin, margin+16, escape(p.title()))
	p.legend(&b)
	for _, s := range l.lanes {
		fmt.Fprintf(&b, "  <rect class=\"lane\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\"/>\n", margin, s.y, l.width-2*margin, s.h)
		fmt.Fprintf(&b, "  <text class=\"lane-name\" x=\"%d\" y=\"%.1f\">%s</text>\n", margin+lanePad, s.y+laneName, escape(s.name))
	}
	for _, e := range p.Edges {
		p.edge(&b, l, e)
	}
	for _, n := range p.Nodes {
		drawNode(&b, l.boxes[n.ID], n)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// legend explains the states that occur, and counts them.
func (p *Picture) legend(b *strings.Builder) {
	order, count := p.states()
	x := float64(margin)
	for _, s := range order {
		fill, border := s.shade()
		text := fmt.Sprintf("%s %s %d", s.mark(), s, count[s])
		w := float64(utf8.RuneCountInString(text))*charWidth + boxPad
		fmt.Fprintf(b, "  <rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"20\" rx=\"4\" fill=\"%s\" stroke=\"%s\"/>\n", x, margin+28, w, fill, border)
		fmt.Fprintf(b, "  <text x=\"%.1f\" y=\"%d\">%s</text>\n", x+boxPad/2, margin+42, escape(text))
		x += w + 8
	}
}

// edge leads from what comes first to what needs it. One that leaves its lane is
// faint: most go to the network and say little.
func (p *Picture) edge(b *strings.Builder, l layout, e Edge) {
	class := "edge"
	if p.Nodes[p.at[e.From]].Group != p.Nodes[p.at[e.To]].Group {
		class = "edge far"
	}
	fmt.Fprintf(b, "  <path class=\"%s\" d=\"%s\" marker-end=\"url(#tip)\"><title>%s</title></path>\n",
		class, p.way(l, e), escape(e.From+" → "+e.To))
}

// way is the path of an edge. One that would run through the boxes of its own
// row, as if it led to them, goes below them.
func (p *Picture) way(l layout, e Edge) string {
	from, to := l.boxes[e.From], l.boxes[e.To]
	x1, y1, x2, y2 := from.x+from.w, from.y+boxHeight/2, to.x, to.y+boxHeight/2
	bend := columnGap * 0.8
	if !p.blocked(l, e) {
		return fmt.Sprintf("M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f", x1, y1, x1+bend, y1, x2-bend, y2, x2, y2)
	}
	below := y1 + boxHeight/2 + rowGap/2
	half := columnGap / 2.0
	return fmt.Sprintf("M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f L%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f",
		x1, y1, x1+half, y1, x1, below, x1+columnGap, below, x2-columnGap, below, x2, below, x2-half, y2, x2, y2)
}

// blocked says whether another box stands between the two ends, on the row on
// which the edge begins.
func (p *Picture) blocked(l layout, e Edge) bool {
	from, to := p.Nodes[p.at[e.From]], p.Nodes[p.at[e.To]]
	if from.Group != to.Group || to.Depth-from.Depth < 2 {
		return false
	}
	for _, n := range p.Nodes {
		if n.Group == from.Group && n.Depth > from.Depth && n.Depth < to.Depth && l.boxes[n.ID].y == l.boxes[from.ID].y {
			return true
		}
	}
	return false
}

func drawNode(b *strings.Builder, at box, n Node) {
	fill, border := n.State.shade()
	dash := ""
	if n.State == Stray || n.State == Wanted {
		dash = " stroke-dasharray=\"4 3\""
	}
	fmt.Fprintf(b, "  <g><title>%s</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"5\" fill=\"%s\" stroke=\"%s\"%s/>",
		escape(n.tip()), at.x, at.y, at.w, boxHeight, fill, border, dash)
	fmt.Fprintf(b, "<text class=\"kind\" x=\"%.1f\" y=\"%.1f\">%s</text>", at.x+boxPad/2, at.y+17, escape(cut(n.head())))
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\">%s</text></g>\n", at.x+boxPad/2, at.y+34, escape(cut(n.Name)))
}

// escape writes text for XML; what XML cannot hold at all becomes a replacement.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}
