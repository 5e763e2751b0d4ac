package price

import (
	"fmt"
	"maps"
	"slices"

	"bastide/internal/blueprint"
	"bastide/internal/plan"
)

// Line is one position of a bill.
type Line struct {
	Step string         `json:"step"` // as in a plan
	Kind blueprint.Kind `json:"kind"`
	Name string         `json:"name"`
	Node string         `json:"node,omitempty"`
	What string         `json:"what"`          // in words, as the file wants it, or as it is where the file does not
	Was  string         `json:"was,omitempty"` // what runs now, where that is something else
	Want Cost           `json:"want"`          // as the file has it
	Have Cost           `json:"have"`          // what runs now; zero where nothing was looked at
	// NotPriced is why the line has no price; it is in no total then.
	NotPriced string `json:"notPriced,omitempty"`
	Source    string `json:"source,omitempty"` // of the price
	Note      string `json:"note,omitempty"`
	Stray     bool   `json:"stray,omitempty"` // not in the file, and left alone
}

// Bill is what an estate costs.
type Bill struct {
	Estate string `json:"estate"`
	Lines  []Line `json:"lines"`
	Want   Cost   `json:"want"` // all that the file asks for
	Left   Cost   `json:"left"` // what is not in the file, runs, and is left alone
	// Have is what runs now; nil where nothing was looked at.
	Have  *Cost    `json:"have,omitempty"`
	Delta *Cost    `json:"delta,omitempty"` // what up adds to Have
	Notes []string `json:"notes,omitempty"`

	unread string // a step of which it is not known whether it exists
}

// After is what is billed once the file is carried out.
func (b Bill) After() Cost { return b.Want.plus(b.Left) }

// NotPriced are the lines that are in no total.
func (b Bill) NotPriced() []Line {
	var out []Line
	for _, l := range b.Lines {
		if l.NotPriced != "" {
			out = append(out, l)
		}
	}
	return out
}

// Make prices a graph, and with it what is live; live is nil where nothing was
// looked at.
func Make(g *blueprint.Graph, live *plan.Live, book Book) Bill {
	b := Bill{Estate: g.Estate}
	if book.Note != "" {
		b.Notes = append(b.Notes, book.Note)
	}
	zones := map[string]bool{}
	for _, s := range g.Steps {
		want, billed := Parts(s.Spec)
		if !billed {
			b.record(s, zones)
			continue
		}
		have, unread := observed(s, live)
		b.step(s, want, have, unread, book)
	}
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		b.zone(zone, book)
	}
	if live != nil {
		for _, stray := range live.Strays {
			b.stray(stray, book)
		}
		b.settle()
	}
	return b
}

// record remembers the zone of a DNS record. A record is free; its zone is not
// the estate's, and may cost something.
func (b *Bill) record(s blueprint.Step, zones map[string]bool) {
	if r, ok := s.Spec.(blueprint.DNSRecord); ok {
		zones[r.Zone] = true
	}
}

func (b *Bill) zone(name string, book Book) {
	unit, _ := book.Find("dns-zone")
	b.Lines = append(b.Lines, Line{Step: "dns-zone/" + name, Kind: "dns-zone", Name: name, What: "zone", Source: unit.Source,
		NotPriced: "the zone is not the estate's; " + rate(unit) + " if the domain is registered elsewhere"})
}

// observed is what a step's resource is billed for now. unread is why it could
// not be read.
func observed(s blueprint.Step, live *plan.Live) (parts []Part, unread string) {
	if live == nil {
		return nil, ""
	}
	o, there := live.Steps[s.ID]
	if !there {
		return nil, live.Unreachable[s.ID]
	}
	parts, _ = Parts(o.Spec)
	if s.Kind == blueprint.KindServer && off(s.Name, *live) {
		for i := range parts {
			parts[i].Count = 0
			parts[i].Note = "powered off now: the machine is not billed, its volumes are"
		}
	}
	return parts, ""
}

// off says that an Instance is powered off in the way that ends its billing. One
// that was stopped in place keeps its machine and is billed.
func off(name string, live plan.Live) bool {
	power, ok := live.Steps[string(blueprint.KindPower)+"/"+name].Spec.(blueprint.Power)
	return ok && power.State == "stopped"
}

func (b *Bill) step(s blueprint.Step, want, have []Part, unread string, book Book) {
	was := map[string]Part{}
	for _, p := range have {
		was[p.Role] = p
	}
	for _, p := range want {
		l := Line{Step: s.ID, Kind: s.Kind, Name: s.Name, Node: s.Node, What: p.What, Note: p.Note}
		l.Want, l.Source, l.NotPriced = book.cost(p)
		if h, ok := was[p.Role]; ok {
			var why string
			l.Have, _, why = book.cost(h)
			if l.NotPriced == "" && why != "" {
				l.Note = "what it costs now is not known: " + why
			}
			if h.What != p.What {
				l.Was = h.What
			}
			if h.Note != "" {
				l.Note = h.Note
			}
			delete(was, p.Role)
		}
		if unread != "" {
			b.unread = s.ID
			l.Note = "it could not be read, so what it costs now is not known: " + unread
		}
		b.add(l)
	}
	for _, h := range have {
		if _, gone := was[h.Role]; gone {
			l := Line{Step: s.ID, Kind: s.Kind, Name: s.Name, Node: s.Node, What: "none", Was: h.What}
			l.Have, l.Source, l.NotPriced = book.cost(h)
			b.add(l)
		}
	}
}

func (b *Bill) add(l Line) {
	b.Want = b.Want.plus(l.Want)
	b.Lines = append(b.Lines, l)
}

func (b *Bill) stray(s plan.Stray, book Book) {
	if s.Spec == nil {
		return
	}
	parts, _ := Parts(s.Spec)
	for _, p := range parts {
		l := Line{Step: s.Step, Kind: s.Kind, Name: s.Name, What: p.What, Note: "not in the file, left alone", Stray: true}
		l.Have, l.Source, l.NotPriced = book.cost(p)
		b.Left = b.Left.plus(l.Have)
		b.Lines = append(b.Lines, l)
	}
}

// settle sums up what runs. Where a part of it could not be read there is no
// sum, since what is unknown is not nothing.
func (b *Bill) settle() {
	if b.unread != "" {
		b.Notes = append(b.Notes, "what runs now has no total, because "+b.unread+" could not be read")
		return
	}
	var have Cost
	for _, l := range b.Lines {
		have = have.plus(l.Have)
	}
	delta := b.After().minus(have)
	b.Have, b.Delta = &have, &delta
}

// Ask is something to be priced that is in no file.
type Ask struct {
	Name string
	Part
}

// List prices a list of things.
func List(name string, asks []Ask, book Book) Bill {
	b := Bill{Estate: name}
	for _, a := range asks {
		l := Line{Name: a.Name, What: a.What, Note: a.Note}
		l.Want, l.Source, l.NotPriced = book.cost(a.Part)
		b.add(l)
	}
	return b
}

// Sentence is the bill in one line: "price: 190.12 euros a month, 0.26044 an
// hour, +20.10 a month against what runs now".
func (b Bill) Sentence() string {
	total := b.After()
	text := fmt.Sprintf("price: %s euros a month, %s an hour", total.Month.Euros(2), total.Hour.Euros(5))
	switch {
	case b.Delta == nil:
	case *b.Delta == Cost{}:
		text += ", as what runs now"
	default:
		text += fmt.Sprintf(", %s a month against what runs now", Signed(b.Delta.Month, 2))
	}
	if open := len(b.NotPriced()); open > 0 {
		text += fmt.Sprintf("; %d not priced", open)
	}
	return text
}

// Signed writes a difference with its sign.
func Signed(a Amount, decimals int) string {
	if a > 0 {
		return "+" + a.Euros(decimals)
	}
	return a.Euros(decimals)
}
