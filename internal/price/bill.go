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
	// Have is what runs now; nil where that was not looked at or has no price.
	Have *Cost `json:"have,omitempty"`
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

	unread string // why it is not known what all that runs costs
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
		want, billed := book.parts(s.Spec)
		if !billed {
			b.record(s, zones)
			continue
		}
		b.step(s, want, observed(s, live, book), book)
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

// sight is what was seen of a step's resource.
type sight struct {
	parts  []Part // what it is billed for now
	looked bool
	unread string // why it could not be read
}

func observed(s blueprint.Step, live *plan.Live, book Book) sight {
	if live == nil {
		return sight{}
	}
	o, there := live.Steps[s.ID]
	if !there {
		why := live.Unreachable[s.ID]
		return sight{looked: why == "", unread: why}
	}
	parts, _ := book.parts(o.Spec)
	if s.Kind == blueprint.KindServer && off(s.Name, *live) {
		for i := range parts {
			parts[i].Count = 0
			parts[i].Note = "powered off now: the machine is not billed, its volumes are"
		}
	}
	return sight{parts: parts, looked: true}
}

// off says that an Instance is powered off in the way that ends its billing. One
// that was stopped in place keeps its machine and is billed.
func off(name string, live plan.Live) bool {
	power, ok := live.Steps[string(blueprint.KindPower)+"/"+name].Spec.(blueprint.Power)
	return ok && power.State == "stopped"
}

func (b *Bill) step(s blueprint.Step, want []Part, seen sight, book Book) {
	was := map[string]Part{}
	for _, p := range seen.parts {
		was[p.Role] = p
	}
	for _, p := range want {
		l := Line{Step: s.ID, Kind: s.Kind, Name: s.Name, Node: s.Node, What: p.What, Note: p.Note}
		l.Want, l.Source, l.NotPriced = book.cost(p)
		if seen.looked && l.NotPriced == "" {
			l.Have = &Cost{}
		}
		if h, ok := was[p.Role]; ok {
			b.beside(&l, h, book)
			delete(was, p.Role)
		}
		if seen.unread != "" {
			b.unread = s.ID + " could not be read"
			l.Note = "it could not be read, so what it costs now is not known: " + seen.unread
		}
		b.add(l)
	}
	for _, h := range seen.parts {
		if _, gone := was[h.Role]; gone {
			l := Line{Step: s.ID, Kind: s.Kind, Name: s.Name, Node: s.Node, What: "none", Was: h.What}
			var have Cost
			if have, l.Source, l.NotPriced = book.cost(h); l.NotPriced == "" {
				l.Have = &have
			}
			b.add(l)
		}
	}
}

// beside adds to a line what runs now.
func (b *Bill) beside(l *Line, h Part, book Book) {
	if h.What != l.What {
		l.Was = h.What
	}
	if h.Note != "" {
		l.Note = h.Note
	}
	have, _, why := book.cost(h)
	switch {
	case l.NotPriced != "":
	case why != "": // such as a type that is no longer sold
		l.Have, l.Note = nil, "what it costs now is not known: "+why
		b.unread = l.Step + " has no price as it is now"
	default:
		l.Have = &have
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
		var have Cost
		if have, l.Source, l.NotPriced = book.cost(p); l.NotPriced == "" {
			l.Have, b.Left = &have, b.Left.plus(have)
		}
		b.Lines = append(b.Lines, l)
	}
}

// settle sums up what runs. Where a part of it could not be read there is no
// sum, since what is unknown is not nothing.
func (b *Bill) settle() {
	if b.unread != "" {
		b.Notes = append(b.Notes, "what runs now has no total, because "+b.unread)
		return
	}
	var have Cost
	for _, l := range b.Lines {
		if l.Have != nil {
			have = have.plus(*l.Have)
		}
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
