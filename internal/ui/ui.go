// Package ui is everything that a person or a script reads. Its rules:
//
//   - Results go to standard output: plans, status, tables, timelines,
//     verdicts, rendered files. Everything about the run goes to standard
//     error: progress, notices, warnings, questions, errors. A pipe never
//     catches a progress line, a log never hides a result.
//   - Lines about the run begin with "bastide: ", then for a warning "warning: "
//     and for a failure "error: ". An error is what, why, do and how to resume,
//     one line each. Progress lines begin with a mark instead.
//   - Sentences start in lower case and end without a full stop, since they
//     follow a prefix. Names are written as in the file or at Scaleway, never
//     in quotes or upper case for effect. Plural is written out: "1 node", "2 nodes".
//   - The marks are + create, ~ update, … wait, ! refuse, and for what happened
//     > began, ✓ done, ✗ failed, - skipped. Without UTF-8: . wait, * done,
//     x failed. No emoji, no exclamation, no "please".
//   - Colour repeats what the text already says, never more: green made, yellow
//     changed or slow, red refused or failed, faint for detail. It is on only
//     for a terminal, and off with --no-color, NO_COLOR or TERM=dumb.
//   - Only a terminal is redrawn, and only its last line. Elsewhere progress is
//     one plain line for each thing that began or ended.
//   - Durations are 850ms, 3.2s, 2m05s. Times are RFC 3339 and in JSON only.
//   - With --output json standard output holds JSON documents only, one a line,
//     each with a "type". A command with one result prints one document. A
//     command that runs (up, destroy, rehearse) prints one event a line, and a
//     failure is the last line. Standard error stays text. Fields are only ever
//     added; see the types ending in Document.
//   - Control characters in what is printed are written out, since names and tags
//     come from others and a terminal would obey them.
//   - Whatever is printed goes through a Redactor first. Output that is secret
//     by purpose (kubeconfig, talosconfig, render) goes through Reveal, the one
//     way around it.
//
// Nothing outside this package writes to a stream.
package ui

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"bastide/internal/plan"
	"bastide/internal/price"
)

// Printer is how a command speaks. It is chosen once, from the flags; no
// command knows which one it talks to. It is safe for concurrent use.
type Printer interface {
	// Results, on standard output.
	Plan(plan.Plan, *price.Bill) // with what it costs; nil where that was not asked
	Cost(price.Bill)
	Status(Status)
	Table(Table)
	// Tables prints tables that are one result, or the one document that says the
	// same; kind is the document's type.
	Tables(kind string, document any, tables ...Table)
	Timeline(Timeline)
	Verdict(Verdict)
	Diagnosis(Diagnosis)
	// Result prints a sentence or a block of text, or the document that says
	// the same; kind is the document's type.
	Result(kind, text string, document any)
	// Reveal writes secret text as it is, to standard output; kind and name are
	// what a document says of it.
	Reveal(kind, name, text string) error

	// The run, on standard error.
	Notice(sentence string)
	Warn(sentence string)
	// Error explains a failure. resume is the command that goes on from here;
	// empty where there is none.
	Error(err error, resume string)

	// Progress begins a new account of steps.
	Progress(title string, total int) Progress
	// Redact adds secrets that were learnt after the start.
	Redact(secrets ...string)
}

// Progress is told about steps as they happen. It is safe for concurrent use.
type Progress interface {
	Start(step string)
	// Note says what a running step waits for.
	Note(step, waitingFor string)
	// Reading says how far a step's reading is, in words and in numbers.
	Reading(step, text string, r Reading)
	Done(step string, took time.Duration)
	Failed(step string, took time.Duration, err error)
	Skipped(step, why string)
	// End stops redrawing. Nothing may be reported after it.
	End()
}

// Reading is how far something is read, in bytes.
type Reading struct {
	Read           int64
	Total          int64 // 0 where it is not known
	BytesPerSecond int64 // 0 until it can be told
}

// Options choose a printer.
type Options struct {
	Out, Err io.Writer
	JSON     bool
	// Stream says that the command is one that runs: in JSON its progress is
	// its result, one event a line, instead of text on standard error.
	Stream bool
	Colour bool
	// Live says that Err is a terminal whose last line may be redrawn.
	Live  bool
	ASCII bool // draw without UTF-8
	Width int  // columns; 80 when 0
	Now   func() time.Time
	// Redactor is shared with logs where there are any; nil makes a new one.
	Redactor *Redactor
}

// Detect fills in what the streams and the environment decide.
func Detect(stdout, stderr *os.File, getenv func(string) string, noColour bool) Options {
	outTerm, errTerm := term.IsTerminal(int(stdout.Fd())), term.IsTerminal(int(stderr.Fd()))
	dumb := getenv("TERM") == "dumb"
	o := Options{Out: stdout, Err: stderr, Live: errTerm && !dumb,
		// One switch for both streams: a line that is coloured in one place and
		// plain in the other reads as two programs.
		Colour: outTerm && errTerm && !dumb && !noColour && getenv("NO_COLOR") == "",
		ASCII:  !utf8Locale(getenv)}
	if w, _, err := term.GetSize(int(stderr.Fd())); err == nil {
		o.Width = w
	}
	return o
}

func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// New makes the printer that the options ask for.
func New(o Options) Printer {
	if o.Width <= 0 {
		o.Width = 80
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Redactor == nil {
		o.Redactor = Redact(nil)
	}
	s := &screen{out: o.Redactor.Writer(o.Out), err: o.Redactor.Writer(o.Err), painted: o.Colour && !o.JSON}
	t := &text{screen: s, o: o, paint: paint{on: o.Colour}, raw: o.Out}
	if !o.JSON {
		return t
	}
	t.o.Live, t.paint.on = false, false
	return &jsonPrinter{text: t}
}

// screen serialises what is written to the two streams and keeps the live line
// out of their way: it is wiped before anything else is written.
type screen struct {
	mu   sync.Mutex
	out  io.Writer
	err  io.Writer
	live string // what the last line of a terminal shows now

	painted bool // colours are the only control sequences in a text
}

const wipe = "\r\x1b[2K"

func (s *screen) print(to io.Writer, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live != "" {
		_, _ = io.WriteString(s.err, wipe)
	}
	// The command's streams remember that they could not be written to.
	_, _ = io.WriteString(to, visible(text, s.painted))
	if s.live != "" {
		_, _ = io.WriteString(s.err, s.live)
	}
}

// draw replaces the live line; empty removes it.
func (s *screen) draw(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line = visible(line, s.painted); line == s.live {
		return
	}
	_, _ = io.WriteString(s.err, wipe+line)
	s.live = line
}
