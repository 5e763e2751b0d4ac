package fault

import (
	"errors"
	"fmt"
	"regexp"

	"bastide/internal/sim/hardware"
)

// EventRule is a node event, and the call at which it happens. Without one it
// happens when the script is loaded.
type EventRule struct {
	hardware.NodeEvent `yaml:",inline"`
	On                 *Trigger `yaml:"on" json:"on,omitempty"`
}

// Trigger names one call of a run, so that an event can happen at a moment of
// the run rather than at a time: either a call of a node's Talos API (rpc, and
// node) or one of the Scaleway API (path, and method).
type Trigger struct {
	// RPC and Node are globs, as in an rpc rule.
	RPC  string `yaml:"rpc" json:"rpc,omitempty"`
	Node string `yaml:"node" json:"node,omitempty"`
	// Path and Method are as in an http rule.
	Path   string `yaml:"path" json:"path,omitempty"`
	Method string `yaml:"method" json:"method,omitempty"`
	// Nth of the matching calls, counted from 1, which is the default.
	Nth int `yaml:"nth" json:"nth,omitempty"`
	// When is before the call takes effect (default), or after it did and
	// before its answer is sent.
	When string `yaml:"when" json:"when,omitempty"`
}

func (e EventRule) check() error {
	if e.Node == "" || e.Event == "" {
		return errors.New("node and event are both needed")
	}
	t := e.On
	switch {
	case t == nil:
		return nil
	case (t.RPC == "") == (t.Path == ""):
		return errors.New("on needs either rpc, a call of the Talos API, or path, one of the Scaleway API")
	case t.Path == "" && t.Method != "", t.RPC == "" && t.Node != "":
		return errors.New("on: node goes with rpc, and method with path")
	case t.Nth < 0:
		return errors.New("on: nth is counted from 1")
	case t.When != "" && t.When != "before" && t.When != "after":
		return fmt.Errorf("on: when is %q, neither before nor after", t.When)
	}
	_, err := compile(t.Path)
	return err
}

// Due are the events that happen at one call.
type Due struct {
	Before, After []hardware.NodeEvent
}

// DueAtRPC counts a call of a node's Talos API and tells what happens at it.
func (e *Engine) DueAtRPC(node, method string) Due {
	return e.due(func(t *Trigger, _ *regexp.Regexp) bool {
		return t.RPC != "" && servedBy(t.Node, node) && called(t.RPC, method)
	})
}

// DueAtHTTP counts a call of the Scaleway API and tells what happens at it.
func (e *Engine) DueAtHTTP(method, path string) Due {
	return e.due(func(t *Trigger, rx *regexp.Regexp) bool {
		return t.Path != "" && HTTPRule{Method: t.Method}.method(method) && rx.MatchString(path)
	})
}

func (e *Engine) due(matches func(*Trigger, *regexp.Regexp) bool) Due {
	e.mu.Lock()
	defer e.mu.Unlock()
	var d Due
	for i, r := range e.script.Events {
		if r.On == nil || !matches(r.On, e.moments[i].path) {
			continue
		}
		m := &e.moments[i]
		if m.Matched++; m.Matched != max(r.On.Nth, 1) {
			continue
		}
		m.Acted++
		if r.On.When == "after" {
			d.After = append(d.After, r.NodeEvent)
		} else {
			d.Before = append(d.Before, r.NodeEvent)
		}
	}
	return d
}

// moment counts the calls at which an event may happen.
type moment struct {
	Hits
	path *regexp.Regexp // nil for a call of the Talos API
}

func momentsOf(events []EventRule) []moment {
	out := make([]moment, len(events))
	for i, e := range events {
		if e.On == nil {
			out[i].Hits = Hits{Matched: 1, Acted: 1} // it happened when the script was loaded
		} else if e.On.Path != "" {
			out[i].path, _ = compile(e.On.Path) // checked before
		}
	}
	return out
}
