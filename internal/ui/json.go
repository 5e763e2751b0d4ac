package ui

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/price"
)

// jsonPrinter prints documents for scripts. What people read on standard error
// stays text, plain.
type jsonPrinter struct{ *text }

// PlanDocument is a plan: {"type":"plan"}.
type PlanDocument struct {
	Type    string           `json:"type"`
	Estate  string           `json:"estate"`
	Summary PlanSummary      `json:"summary"`
	Actions []ActionDocument `json:"actions"` // in the order of the run; what is as wanted included
	Strays  []StrayDocument  `json:"strays"`
	Notes   []string         `json:"notes,omitempty"` // what a reader could take for granted and must not
	Price   *PriceDocument   `json:"price,omitempty"` // what it costs, where that was asked
}

// ActionDocument is one action of a plan.
type ActionDocument struct {
	Step       string          `json:"step"` // kind/name
	Kind       string          `json:"kind"`
	Name       string          `json:"name"`
	Node       string          `json:"node,omitempty"`
	Op         plan.Op         `json:"op"`
	Reason     string          `json:"reason,omitempty"`
	Disruption plan.Disruption `json:"disruption"`
	Needs      []string        `json:"needs"`
	Changes    []plan.Change   `json:"changes"`
	Detail     []string        `json:"detail,omitempty"` // the difference in lines; secrets are masked
}

// StrayDocument is something with the estate's mark that the file does not explain.
type StrayDocument struct {
	Kind string `json:"kind"`
	Step string `json:"step,omitempty"`
	ID   string `json:"id"`
	Name string `json:"name"`
	Why  string `json:"why"`
}

// StatusDocument is a status: {"type":"status"}.
type StatusDocument struct {
	Type string `json:"type"`
	Status
}

// VerdictDocument is a verdict: {"type":"verdict"}.
type VerdictDocument struct {
	Type string `json:"type"`
	Verdict
}

// DiagnosisDocument is what doctor found: {"type":"diagnosis"}.
type DiagnosisDocument struct {
	Type string `json:"type"`
	Diagnosis
}

// TableDocument is any list; its type is the table's kind.
type TableDocument struct {
	Type string              `json:"type"`
	Rows []map[string]string `json:"rows"` // keys are the columns, in lower camel case
}

// TimelineDocument is a timeline: {"type":"timeline"}. Times are in milliseconds.
type TimelineDocument struct {
	Type  string        `json:"type"`
	Title string        `json:"title,omitempty"`
	Bars  []BarDocument `json:"bars"`
}

// BarDocument is one span of a timeline.
type BarDocument struct {
	Label  string `json:"label"`
	From   int64  `json:"fromMs"`
	To     int64  `json:"toMs"`
	Failed bool   `json:"failed"`
	Note   string `json:"note,omitempty"`
}

// ResultDocument wraps what a command gave to Result.
type ResultDocument struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// RevealDocument holds secret text: a kubeconfig, a talosconfig, a machine's
// configuration, exports for a shell.
type RevealDocument struct {
	Type string `json:"type"`
	Name string `json:"name"`
	Text string `json:"text"`
}

// EventDocument is one line of a run: {"type":"event"}.
type EventDocument struct {
	Type  string `json:"type"`
	At    string `json:"at"`    // RFC 3339
	Phase string `json:"phase"` // begin, started, waiting, finished, failed, skipped, end
	Step  string `json:"step,omitempty"`
	Text  string `json:"text,omitempty"` // title, what is waited for, why
	Took  int64  `json:"tookMs,omitempty"`
	Total int64  `json:"total,omitempty"` // with begin, steps; with read, bytes, where that is known

	Read           *int64 `json:"read,omitempty"`           // bytes, while a step reads
	BytesPerSecond int64  `json:"bytesPerSecond,omitempty"` // with read, where it can be told already
}

// ErrorDocument ends the output of a command that failed: {"type":"error"}.
type ErrorDocument struct {
	Type     string            `json:"type"`
	Code     int               `json:"code"` // the exit code
	Errors   []failure         `json:"errors"`
	Problems []outcome.Mistake `json:"problems,omitempty"` // in files, each with its place
	Resume   string            `json:"resume,omitempty"`
}

func (j *jsonPrinter) document(v any) {
	line, err := json.Marshal(v)
	if err != nil {
		j.text.Error(err, "") // a value that a command made up; the run itself goes on
		return
	}
	j.result(string(line) + "\n")
}

func (j *jsonPrinter) Plan(p plan.Plan, bill *price.Bill) {
	d := PlanDocument{Type: "plan", Estate: p.Estate, Summary: count(p), Actions: []ActionDocument{}, Strays: []StrayDocument{}, Notes: p.Notes}
	for _, a := range p.Actions {
		if a.Disruption == "" {
			a.Disruption = plan.None // what is refused disturbs nothing
		}
		d.Actions = append(d.Actions, ActionDocument{Step: a.Step.ID, Kind: string(a.Step.Kind), Name: a.Step.Name, Node: a.Step.Node,
			Op: a.Op, Reason: a.Reason, Disruption: a.Disruption, Needs: append([]string{}, a.Step.Needs...),
			Changes: append([]plan.Change{}, a.Changes...), Detail: a.Detail})
	}
	for _, s := range p.Strays {
		d.Strays = append(d.Strays, StrayDocument{string(s.Kind), s.Step, s.CloudID, s.Name, s.Why})
	}
	if bill != nil {
		d.Price = priceDocument(*bill)
	}
	j.document(d)
}

func (j *jsonPrinter) Status(s Status) {
	// Lists are never null, so that a script may iterate without asking.
	s.Cloud, s.Nodes, s.Problems = append([]CloudItem{}, s.Cloud...), append([]NodeItem{}, s.Nodes...), append([]string{}, s.Problems...)
	if s.Etcd != nil {
		e := *s.Etcd
		e.Members, e.Alarms = append([]EtcdMember{}, e.Members...), append([]string{}, e.Alarms...)
		s.Etcd = &e
	}
	j.document(StatusDocument{"status", s})
}

func (j *jsonPrinter) Verdict(v Verdict) {
	v.Checks = append([]Check{}, v.Checks...)
	j.document(VerdictDocument{"verdict", v})
}

func (j *jsonPrinter) Diagnosis(d Diagnosis) {
	checks := append([]Examined{}, d.Checks...)
	for i := range checks {
		checks[i].Findings = append([]Finding{}, checks[i].Findings...)
	}
	d.Checks = checks
	j.document(DiagnosisDocument{"diagnosis", d})
}

func (j *jsonPrinter) Table(t Table) {
	d := TableDocument{Type: t.Kind, Rows: []map[string]string{}}
	for _, r := range t.Rows {
		row := map[string]string{}
		for i, cell := range r {
			row[camel(t.Columns[i])] = cell
		}
		d.Rows = append(d.Rows, row)
	}
	j.document(d)
}

func (j *jsonPrinter) Tables(kind string, v any, _ ...Table) { j.document(ResultDocument{kind, v}) }

func (j *jsonPrinter) Timeline(l Timeline) {
	d := TimelineDocument{Type: "timeline", Title: l.Title, Bars: []BarDocument{}}
	for _, b := range l.Bars {
		d.Bars = append(d.Bars, BarDocument{b.Label, b.From.Milliseconds(), b.To.Milliseconds(), b.Failed, b.Note})
	}
	j.document(d)
}

func (j *jsonPrinter) Result(kind, _ string, v any) { j.document(ResultDocument{kind, v}) }

// Reveal wraps the text in a document, or it would be the one command whose
// output a script cannot read. The text is not masked.
func (j *jsonPrinter) Reveal(kind, name, text string) error {
	line, err := json.Marshal(RevealDocument{kind, name, text})
	if err != nil {
		return err
	}
	return j.text.Reveal(kind, name, string(line)+"\n")
}

// Error says it twice: as a document, and in words for whoever watches.
func (j *jsonPrinter) Error(err error, resume string) {
	j.text.Error(err, resume)
	failures, code := explain(err)
	j.document(ErrorDocument{"error", int(code), failures, outcome.Mistakes(err), resume})
}

func (j *jsonPrinter) Progress(title string, total int) Progress {
	if !j.o.Stream {
		return j.text.Progress(title, total)
	}
	e := &events{j: j, notes: map[string]string{}}
	e.event(EventDocument{Phase: "begin", Text: title, Total: int64(total)})
	return e
}

// events is the progress of a command whose result is its events.
type events struct {
	j     *jsonPrinter
	mu    sync.Mutex
	notes map[string]string // what each running step waited for last
	end   sync.Once
}

func (e *events) event(d EventDocument) {
	d.Type, d.At = "event", e.j.o.Now().UTC().Format(time.RFC3339Nano)
	e.j.document(d)
}

func (e *events) Start(step string) { e.event(EventDocument{Phase: "started", Step: step}) }

func (e *events) Note(step, waitingFor string) {
	e.note(EventDocument{Phase: "waiting", Step: step, Text: waitingFor})
}

func (e *events) Reading(step, text string, r Reading) {
	e.note(EventDocument{Phase: "waiting", Step: step, Text: text, Read: &r.Read, Total: r.Total, BytesPerSecond: r.BytesPerSecond})
}

// note prints what a step waits for, unless it was said just before.
func (e *events) note(d EventDocument) {
	e.mu.Lock()
	same := e.notes[d.Step] == d.Text
	e.notes[d.Step] = d.Text
	e.mu.Unlock()
	if !same {
		e.event(d)
	}
}

func (e *events) Done(step string, took time.Duration) {
	e.event(EventDocument{Phase: "finished", Step: step, Took: took.Milliseconds()})
}

func (e *events) Failed(step string, took time.Duration, err error) {
	d := EventDocument{Phase: "failed", Step: step, Took: took.Milliseconds()}
	if err != nil {
		d.Text = err.Error()
	}
	e.event(d)
}

func (e *events) Skipped(step, why string) {
	e.event(EventDocument{Phase: "skipped", Step: step, Text: why})
}

func (e *events) End() { e.end.Do(func() { e.event(EventDocument{Phase: "end"}) }) }

// camel makes a key of a column title.
func camel(title string) string {
	words := strings.Fields(strings.ToLower(title))
	for i := 1; i < len(words); i++ {
		words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
	}
	return strings.Join(words, "")
}
