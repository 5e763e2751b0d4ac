package ui

import (
	"fmt"
	"strings"
	"time"
)

func (t *text) Status(s Status) {
	var b strings.Builder
	section := func(title string, rows [][]string, ok func(int) bool) {
		if len(rows) > 0 {
			b.WriteString(t.paint.bold(title) + "\n" + t.tint(columns(rows, "  "), ok) + "\n")
		}
	}
	var cloud, nodes [][]string
	for _, c := range s.Cloud {
		cloud = append(cloud, []string{t.tick(c.OK), c.Kind, c.Name, c.State, c.Note})
	}
	section("cloud", cloud, func(i int) bool { return s.Cloud[i].OK })
	for _, n := range s.Nodes {
		nodes = append(nodes, []string{t.tick(n.OK), n.Name, n.Role, n.Address, n.Power, n.Stage, n.Talos, n.Kube, n.Note})
	}
	section("nodes", nodes, func(i int) bool { return s.Nodes[i].OK })
	t.etcd(&b, s.Etcd)
	if k := s.Kubernetes; k != nil {
		reach := "answers"
		if !k.Reachable {
			reach = "does not answer"
		}
		line := join(k.Endpoint+" "+reach, k.Version, fmt.Sprintf("%d of %s ready", k.Ready, plural(k.Nodes, "node", "nodes")), k.Note)
		ok := k.Reachable && k.Ready == k.Nodes
		section("kubernetes", [][]string{{t.tick(ok), line}}, func(int) bool { return ok })
	}
	for _, p := range s.Problems {
		b.WriteString(t.paint.red("problem: ") + p + "\n")
	}
	word := t.paint.green("healthy")
	switch {
	case !s.Healthy:
		word = t.paint.red("not healthy")
	case len(s.Cloud) == 0:
		word = "nothing of it exists at Scaleway"
	}
	b.WriteString(t.paint.bold(s.Estate+": ") + word + "\n")
	t.result(b.String())
}

func (t *text) etcd(b *strings.Builder, e *Etcd) {
	if e == nil {
		return
	}
	b.WriteString(t.paint.bold("etcd") + "\n")
	var rows [][]string
	for _, m := range e.Members {
		role := m.Role
		if m.Leader {
			role += ", leader"
		}
		size := ""
		if m.Size > 0 {
			size = fmt.Sprintf("%.1f MB", float64(m.Size)/1e6)
		}
		rows = append(rows, []string{t.tick(m.Healthy), m.Name, m.ID, role, size, m.Note})
	}
	b.WriteString(t.tint(columns(rows, "  "), func(i int) bool { return e.Members[i].Healthy }))
	for _, a := range e.Alarms {
		b.WriteString("  " + t.paint.red("alarm: ") + a + "\n")
	}
	for _, line := range strings.Split(strings.TrimRight(e.Picture, "\n"), "\n") {
		if line != "" {
			b.WriteString("    " + line + "\n")
		}
	}
	b.WriteString("\n")
}

func (t *text) Timeline(l Timeline) {
	var b strings.Builder
	if l.Title != "" {
		b.WriteString(t.paint.bold(l.Title) + "\n")
	}
	var end time.Duration
	label := 0
	for _, bar := range l.Bars {
		end = max(end, bar.To)
		label = max(label, len([]rune(bar.Label)))
	}
	label = min(label, t.o.Width/3)
	room := max(t.o.Width-label-2-2-9, 10) // indent, gaps, duration
	full, failed := "█", "▒"
	if t.o.ASCII {
		full, failed = "#", "x"
	}
	for _, bar := range l.Bars {
		glyph, shade := full, t.paint.green
		if bar.Failed {
			glyph, shade = failed, t.paint.red
		}
		from, to := scale(bar.From, end, room), scale(bar.To, end, room)
		to = max(to, from+1) // what happened is seen, however short
		if to > room {
			from, to = room-1, room
		}
		drawn := strings.Repeat(" ", from) + shade(strings.Repeat(glyph, to-from)) + strings.Repeat(" ", room-to)
		name := cut(bar.Label, label)
		line := fmt.Sprintf("  %s%s %s %7s", name, strings.Repeat(" ", label-len([]rune(name))), drawn, short(bar.To-bar.From))
		if bar.Note != "" {
			line += "  " + bar.Note
		}
		b.WriteString(line + "\n")
	}
	fmt.Fprintf(&b, "  total %s\n", short(end))
	t.result(b.String())
}

// scale places a moment on a line of so many columns.
func scale(at, end time.Duration, room int) int {
	if end <= 0 {
		return 0
	}
	return int(int64(at) * int64(room) / int64(end))
}
