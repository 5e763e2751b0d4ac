package ui

import (
	"io"
	"strings"
)

// text prints for people, on a terminal or into a log.
type text struct {
	*screen
	o     Options
	paint paint
	raw   io.Writer // standard output without the redactor, for Reveal
}

const prefix = "bastide: "

func (t *text) result(s string) { t.print(t.out, s) }

func (t *text) Result(_, s string, _ any) {
	if !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	t.result(s)
}

func (t *text) Reveal(_, _, s string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := io.WriteString(t.raw, s)
	return err
}

func (t *text) Redact(secrets ...string) { t.o.Redactor.Add(secrets...) }

func (t *text) Notice(s string) { t.print(t.err, prefix+s+"\n") }

func (t *text) Warn(s string) { t.print(t.err, prefix+t.paint.yellow("warning: ")+s+"\n") }

func (t *text) Error(err error, resume string) {
	var b strings.Builder
	failures, code := explain(err)
	for _, f := range failures {
		for i, line := range strings.Split(f.What, "\n") {
			head := prefix + t.paint.red("error: ")
			if i > 0 && strings.HasPrefix(line, " ") {
				head = ""
			}
			b.WriteString(head + line + "\n")
		}
		for _, part := range []struct{ label, text string }{{"why:   ", f.Why}, {"do:    ", f.Do}} {
			if part.text != "" {
				b.WriteString("  " + part.label + strings.ReplaceAll(part.text, "\n", "\n         ") + "\n")
			}
		}
	}
	if resume != "" && code != 0 {
		b.WriteString("  resume: " + resume + "\n")
	}
	t.print(t.err, b.String())
}

func (t *text) Tables(_ string, _ any, tables ...Table) {
	for _, table := range tables {
		t.Table(table)
	}
}

func (t *text) Table(table Table) {
	var b strings.Builder
	if table.Title != "" {
		b.WriteString(t.paint.bold(table.Title) + "\n")
	}
	if len(table.Rows) == 0 {
		if table.Empty != "" {
			b.WriteString(table.Empty + "\n")
		}
		t.result(b.String())
		return
	}
	head := make([]string, len(table.Columns))
	for i, c := range table.Columns {
		head[i] = strings.ToUpper(c)
	}
	b.WriteString(columns(append([][]string{head}, table.Rows...), ""))
	t.result(b.String())
}

func (t *text) Verdict(v Verdict) {
	var b strings.Builder
	var rows [][]string
	for _, c := range v.Checks {
		rows = append(rows, []string{t.tick(c.Passed), c.Name, c.Detail})
	}
	if len(rows) > 0 {
		b.WriteString(t.tint(columns(rows, "  "), func(i int) bool { return v.Checks[i].Passed }))
	}
	word := t.paint.green("passed")
	if !v.Passed {
		word = t.paint.red("failed")
	}
	b.WriteString(t.paint.bold("verdict: ") + word + ", " + v.Sentence + "\n")
	t.result(b.String())
}

// tick is the mark of how something ended.
func (t *text) tick(ok bool) string {
	switch {
	case ok && t.o.ASCII:
		return "*"
	case ok:
		return "✓"
	case t.o.ASCII:
		return "x"
	}
	return "✗"
}

// tint colours whole lines after they were aligned, since colour has no width.
func (t *text) tint(block string, ok func(int) bool) string {
	if !t.paint.on {
		return block
	}
	lines := strings.SplitAfter(block, "\n")
	for i, l := range lines {
		if l != "" && !ok(i) {
			lines[i] = t.paint.red(strings.TrimSuffix(l, "\n")) + "\n"
		}
	}
	return strings.Join(lines, "")
}
