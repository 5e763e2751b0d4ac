package fault

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"

	"bastide/internal/sim/clock"
)

// Engine holds the script in force and counts calls against it. It is safe for
// use by many goroutines; counting is in the order in which calls arrive.
type Engine struct {
	clock clock.Clock

	mu       sync.Mutex
	script   Script
	paths    []*regexp.Regexp
	seen     []map[string]int // per http rule: matching calls, by what the rule counts per
	httpHits []int
	rpcSeen  []int
	rpcHits  []int
	moments  []moment // per event
	rights   []Hits   // per permission rule
	mutating int
	fatal    []*regexp.Regexp // per kill rule; nil matches every path
	strokes  []int            // per kill rule: matching calls
	killed   []bool
}

// NewEngine returns an engine without a script.
func NewEngine(c clock.Clock) *Engine { return &Engine{clock: c} }

// Load replaces the script; all counts start again.
func (e *Engine) Load(s Script) error {
	if err := s.check(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set(s)
	return nil
}

func (e *Engine) set(s Script) {
	e.script, e.mutating = s, 0
	e.paths, e.seen = nil, nil
	for _, r := range s.HTTP {
		rx, _ := compile(r.Path) // checked before
		e.paths = append(e.paths, rx)
		e.seen = append(e.seen, map[string]int{})
	}
	e.httpHits = make([]int, len(s.HTTP))
	e.rpcSeen, e.rpcHits = make([]int, len(s.RPC)), make([]int, len(s.RPC))
	e.moments = momentsOf(s.Events)
	e.rights = make([]Hits, len(s.Permissions))
	e.killed, e.strokes, e.fatal = make([]bool, len(s.Kill)), make([]int, len(s.Kill)), make([]*regexp.Regexp, len(s.Kill))
	for i, k := range s.Kill {
		if k.Path != "" {
			e.fatal[i], _ = compile(k.Path) // checked before
		}
	}
}

// Clear takes the script away.
func (e *Engine) Clear() { _ = e.Load(Script{}) }

// Stale is the longest that any rule asks reads to lag behind, in real time.
func (e *Engine) Stale() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	var longest time.Duration
	for _, r := range e.script.HTTP {
		longest = max(longest, e.clock.Scale(time.Duration(r.Stale)))
	}
	return longest
}

// Store tells what is weak about object storage.
func (e *Engine) Store() Store {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.script.Store
}

// Factory tells how the Image Factory is set up.
func (e *Engine) Factory() Factory {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.script.Factory
}

// HTTP is what a rule does to one call. Its delays are in real time.
type HTTP struct {
	HTTPRule
	Delay, Stale time.Duration
}

// HTTP asks what happens to a call; nil lets it pass.
func (e *Engine) HTTP(method, path string, query url.Values, body []byte) *HTTP {
	e.mu.Lock()
	defer e.mu.Unlock()
	var hit *HTTP
	for i, r := range e.script.HTTP {
		if !r.method(method) || !e.paths[i].MatchString(path) || !r.query(query) {
			continue
		}
		key := r.key(method, path, body)
		e.seen[i][key]++
		if hit == nil && r.hits(e.seen[i][key]) {
			e.httpHits[i]++
			hit = &HTTP{r, e.clock.Scale(time.Duration(r.Delay)), e.clock.Scale(time.Duration(r.Stale))}
		}
	}
	return hit
}

// Mutating counts a mutating call, of the Scaleway API, of object storage or of a
// node. Where the
// script asks for a kill before the call takes effect, the process is ended now
// and the call must not take effect: killed is true. After is to be run when
// the call has taken effect, before its answer is sent; where it says that it
// killed, the answer must not be sent.
func (e *Engine) Mutating(path string) (killed bool, after func() bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mutating++
	after = func() bool { return false }
	for i, k := range e.script.Kill {
		if e.fatal[i] != nil && !e.fatal[i].MatchString(path) {
			continue
		}
		e.strokes[i]++
		switch {
		case k.Nth != e.strokes[i]:
		case k.When == "after":
			after = func() bool { return e.kill(i, k.PID) }
		default:
			killed = e.end(i, k.PID)
		}
	}
	return killed, after
}

// kill carries out a rule, if the script that it is of is still in force.
func (e *Engine) kill(rule, pid int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return rule < len(e.script.Kill) && e.script.Kill[rule].PID == pid && e.end(rule, pid)
}

// end ends a process, and says whether there was one to end.
func (e *Engine) end(rule, pid int) bool {
	e.killed[rule] = syscall.Kill(pid, syscall.SIGKILL) == nil
	return e.killed[rule]
}

// RPC is what a rule does to one call of a node's Talos API.
type RPC struct {
	Rule      string // the rule's name, for logs
	Code      codes.Code
	Message   string
	Delay     time.Duration // real time, before anything else
	DropReply bool
}

// RPC asks what happens to a call; nil lets it pass. Method may be the full
// gRPC method or its last part.
func (e *Engine) RPC(node, method string) *RPC {
	e.mu.Lock()
	defer e.mu.Unlock()
	var hit *RPC
	for i, r := range e.script.RPC {
		if !servedBy(r.Node, node) || !called(r.RPC, method) {
			continue
		}
		e.rpcSeen[i]++
		if hit == nil && r.hits(e.rpcSeen[i]) {
			e.rpcHits[i]++
			hit = &RPC{Rule: r.Name, Code: code(r.Code), Message: r.Message,
				Delay: e.clock.Scale(time.Duration(r.Delay)), DropReply: r.DropReply}
		}
	}
	return hit
}

// Permission asks whether a rule refuses a call for want of a right; needs says
// whether the call needs one of the rights that a rule denies. It answers with
// the rule's name.
func (e *Engine) Permission(needs func(deny []string) bool) (rule string, refused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, p := range e.script.Permissions {
		if !needs(p.Deny) {
			continue
		}
		e.rights[i].Matched++
		if !refused && p.hits(e.rights[i].Matched) {
			e.rights[i].Acted++
			rule, refused = p.Name, true
		}
	}
	return rule, refused
}

// Counts is a script with how often each rule matched and acted.
type Counts struct {
	Script      Script `json:"script"`
	HTTP        []Hits `json:"http"`
	RPC         []Hits `json:"rpc"`
	Events      []Hits `json:"events"`
	Permissions []Hits `json:"permissions"`
	Mutating    int    `json:"mutating_calls"`
	Killed      []bool `json:"killed"`
}

// Hits counts for one rule.
type Hits struct {
	Matched int `json:"matched"`
	Acted   int `json:"acted"`
}

// Counts tells how the script has fared.
func (e *Engine) Counts() Counts {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := Counts{Script: e.script, HTTP: []Hits{}, RPC: []Hits{}, Events: []Hits{}, Permissions: append([]Hits{}, e.rights...), Mutating: e.mutating, Killed: append([]bool{}, e.killed...)}
	for i := range e.script.HTTP {
		h := Hits{Acted: e.httpHits[i]}
		for _, n := range e.seen[i] {
			h.Matched += n
		}
		c.HTTP = append(c.HTTP, h)
	}
	for i := range e.script.RPC {
		c.RPC = append(c.RPC, Hits{e.rpcSeen[i], e.rpcHits[i]})
	}
	for _, m := range e.moments {
		c.Events = append(c.Events, m.Hits)
	}
	return c
}

// Cuts says whether the connection ends within a request's body of so many
// bytes; -1 is an unknown length.
func (f *HTTP) Cuts(length int64) bool { return f.CutAfter > 0 && (length < 0 || length > f.CutAfter) }

// Describe names what a rule did, for the request log.
func (f *HTTP) Describe() string {
	what := []string{}
	if f.Name != "" {
		what = append(what, f.Name+":")
	}
	if f.Delay > 0 {
		what = append(what, "delay")
	}
	for _, a := range []struct {
		name string
		on   bool
	}{{"hang", f.Hang}, {"drop", f.Drop}, {"apply then drop", f.ApplyThenDrop}, {"cut in the request", f.CutAfter > 0}, {"truncate", f.Truncate > 0},
		{"short page", f.ShortPage > 0}, {"stale", f.Stale > 0}} {
		if a.on {
			what = append(what, a.name)
		}
	}
	if f.Status != 0 {
		what = append(what, "status "+strconv.Itoa(f.Status))
	}
	return strings.Join(what, " ")
}
