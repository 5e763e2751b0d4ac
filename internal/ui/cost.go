package ui

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"bastide/internal/price"
)

// CostDocument is a bill: {"type":"cost"}. Amounts are exact numbers of euros,
// excluding tax.
type CostDocument struct {
	Type string `json:"type"`
	PriceDocument
}

// PriceDocument is a bill with its total.
type PriceDocument struct {
	price.Bill
	Total price.Cost `json:"total"` // what is billed once the file is carried out
}

func priceDocument(b price.Bill) *PriceDocument {
	b.Lines = append([]price.Line{}, b.Lines...)
	return &PriceDocument{b, b.After()}
}

func (j *jsonPrinter) Cost(b price.Bill) { j.document(CostDocument{"cost", *priceDocument(b)}) }

// foot is a bill at the foot of a plan.
func foot(b price.Bill) string {
	text := b.Sentence() + "\n"
	for _, n := range b.Notes {
		text += "note: " + n + "\n"
	}
	return text
}

// Cost prints a line for each thing that is billed, then the totals, then what
// is not in them.
func (t *text) Cost(b price.Bill) {
	var out strings.Builder
	out.WriteString(t.paint.bold("price of "+b.Estate+" in euros, excluding tax") + "\n")
	if block := costLines(b); block != "" {
		out.WriteString(block + "\n")
	}
	out.WriteString(totals(b))
	if open := b.NotPriced(); len(open) > 0 {
		out.WriteString("\n" + t.paint.bold("not in the total") + "\n")
		var rows [][]string
		for _, l := range open {
			rows = append(rows, []string{string(l.Kind) + " " + l.Name, l.What, l.NotPriced})
		}
		out.WriteString(columns(rows, "  "))
	}
	out.WriteString("\n")
	for _, n := range b.Notes {
		out.WriteString("note: " + n + "\n")
	}
	out.WriteString(t.paint.faint("a month is 730 hours; networks, private addresses, filters and placement are free") + "\n")
	t.result(out.String())
}

// costLines is the table of what has a price.
func costLines(b price.Bill) string {
	head := []string{"KIND", "NAME", "WHAT", "HOUR", "MONTH"}
	if b.Have != nil {
		head = append(head, "NOW", "CHANGE")
	}
	rows := [][]string{append(head, "PRICE FROM")}
	for _, l := range b.Lines {
		if l.NotPriced != "" {
			continue
		}
		after := l.Want
		if l.Stray {
			after = *l.Have // it goes on as it is
		}
		row := []string{string(l.Kind), l.Name, l.What, after.Hour.Euros(5), after.Month.Euros(2)}
		switch {
		case b.Have != nil && l.Have != nil:
			row = append(row, l.Have.Month.Euros(2), price.Signed(after.Month-l.Have.Month, 2))
		case b.Have != nil:
			row = append(row, "", "")
		}
		row = append(row, lineNote(l))
		rows = append(rows, row)
	}
	if len(rows) == 1 {
		return ""
	}
	rightAlign(rows, 3, len(rows[0])-2)
	return columns(rows, "  ")
}

func lineNote(l price.Line) string {
	text := l.Source
	if l.Was != "" {
		text += "; now " + l.Was
	}
	if l.Want.Once > 0 {
		text += fmt.Sprintf("; and %s once", l.Want.Once.Euros(2))
	}
	if l.Note != "" {
		text += "; " + l.Note
	}
	return text
}

// rightAlign pads the cells of columns from to last on the left.
func rightAlign(rows [][]string, from, last int) {
	for c := from; c <= last; c++ {
		width := 0
		for _, r := range rows {
			width = max(width, utf8.RuneCountInString(r[c]))
		}
		for _, r := range rows {
			r[c] = strings.Repeat(" ", width-utf8.RuneCountInString(r[c])) + r[c]
		}
	}
}

func totals(b price.Bill) string {
	rows := [][]string{{"", "HOUR", "DAY", "MONTH"}}
	add := func(name string, c price.Cost, write func(price.Amount, int) string) {
		rows = append(rows, []string{name, write(c.Hour, 5), write(c.Day(), 2), write(c.Month, 2)})
	}
	add("total", b.After(), price.Amount.Euros)
	if b.Left != (price.Cost{}) {
		add("of it not in the file", b.Left, price.Amount.Euros)
	}
	if b.Have != nil {
		add("what runs now", *b.Have, price.Amount.Euros)
		add("change", *b.Delta, price.Signed)
	}
	rightAlign(rows, 1, 3)
	text := columns(rows, "  ")
	if b.Want.Once > 0 {
		text += fmt.Sprintf("  and %s once, for setting up\n", b.Want.Once.Euros(2))
	}
	return text
}
