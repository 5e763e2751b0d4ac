// Package fault is the fault script of the simulated region: what is to go
// wrong, where and when. A script is YAML (or JSON, which is YAML too), decoded
// strictly, and counts calls rather than time or chance, so that a run with a
// script repeats exactly.
//
//	http:
//	  - {method: POST, path: /vpc/v2/regions/*/vpcs, nth: 1, status: 503, body: {message: internal error}}
//	  - {method: mutating, path: /**, per: request, nth: 1, applyThenDrop: true}
//	  - {method: GET, path: "~/servers$", shortPage: 1}
//	rpc:
//	  - {node: staging-cp-1, rpc: ApplyConfiguration, nth: 1, dropReply: true}
//	events:
//	  - {node: staging-cp-2, event: power-loss}
//	  - {node: staging-cp-3, event: reboot, on: {rpc: Bootstrap, node: staging-cp-1, nth: 1, when: after}}
//	permissions:
//	  - {deny: [SecretManagerSecretAccess, iam], count: 3}
//	kill:
//	  - {nth: 7, pid: 4242, when: after}
//	store:
//	  conditionsIgnored: true
package fault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Script is a whole fault script.
type Script struct {
	HTTP   []HTTPRule  `yaml:"http" json:"http,omitempty"`
	RPC    []RPCRule   `yaml:"rpc" json:"rpc,omitempty"`
	Events []EventRule `yaml:"events" json:"events,omitempty"`
	// Permissions take rights from every key.
	Permissions []PermissionRule `yaml:"permissions" json:"permissions,omitempty"`
	Kill        []KillRule       `yaml:"kill" json:"kill,omitempty"`
	Store       Store            `yaml:"store" json:"store,omitzero"`
	Factory     Factory          `yaml:"factory" json:"factory,omitzero"`
}

// Factory makes the Image Factory one that somebody runs without a storage
// behind it.
type Factory struct {
	// Direct answers GET itself and whole, without ranges and ETags.
	Direct bool `yaml:"direct" json:"direct,omitempty"`
}

// Store makes object storage one of the weaker stores that also call themselves
// compatible with S3.
type Store struct {
	// ConditionsIgnored lets every conditional write succeed, as stores do that
	// do not know the headers.
	ConditionsIgnored bool `yaml:"conditionsIgnored" json:"conditionsIgnored,omitempty"`
	// RejectChecksumHeaders answers 400 to x-amz-checksum-*,
	// x-amz-sdk-checksum-algorithm, x-amz-trailer and STREAMING-*-TRAILER bodies.
	RejectChecksumHeaders bool `yaml:"rejectChecksumHeaders" json:"rejectChecksumHeaders,omitempty"`
}

// When says which of the matching calls, counted from 1, a rule acts on: the
// nth, or count of them beginning with from, or without any of these every one.
// Nth and from exclude each other.
type When struct {
	Nth   int `yaml:"nth" json:"nth,omitempty"`
	From  int `yaml:"from" json:"from,omitempty"`
	Count int `yaml:"count" json:"count,omitempty"`
}

// HTTPRule acts on calls of the Scaleway API and of object storage; there the
// path is /bucket/key, whichever way the client wrote it. Several of its actions
// may be given together where that makes sense, such as delay and status; where
// two rules act on one call, the first in the script does.
type HTTPRule struct {
	Name string `yaml:"name" json:"name,omitempty"`
	// Method is one, several joined by "|", "mutating" for all but GET and
	// HEAD, or empty for any.
	Method string `yaml:"method" json:"method,omitempty"`
	// Path is a glob (* within a segment, ** across segments) for the whole
	// path or, after a "~", a regular expression for any part of it.
	Path string `yaml:"path" json:"path"`
	// Query holds globs for query fields that must be there.
	Query map[string]string `yaml:"query" json:"query,omitempty"`
	// Per "path" counts for every method and path on its own, "request" also
	// for every body; empty counts all matching calls together.
	Per  string `yaml:"per" json:"per,omitempty"`
	When `yaml:",inline"`

	// Status answers with it, and nothing is changed. Body may be a string or
	// any value, which is sent as JSON.
	Status  int               `yaml:"status" json:"status,omitempty"`
	Body    any               `yaml:"body" json:"body,omitempty"`
	Headers map[string]string `yaml:"headers" json:"headers,omitempty"`
	// Delay, in the region's time, comes before anything else.
	Delay Duration `yaml:"delay" json:"delay,omitempty"`
	// Hang never answers and changes nothing; Drop cuts the connection before
	// the change; ApplyThenDrop makes the change and cuts it then.
	Hang          bool `yaml:"hang" json:"hang,omitempty"`
	Drop          bool `yaml:"drop" json:"drop,omitempty"`
	ApplyThenDrop bool `yaml:"applyThenDrop" json:"applyThenDrop,omitempty"`
	// CutAfter reads that many bytes of the request's body and cuts the
	// connection then; nothing is changed. A body that is shorter passes.
	CutAfter int64 `yaml:"cutAfter" json:"cutAfter,omitempty"`
	// Truncate sends only that many bytes of the body, announced as whole.
	Truncate int `yaml:"truncate" json:"truncate,omitempty"`
	// ShortPage leaves that many items off the end of a listing, while its
	// total stays as it is.
	ShortPage int `yaml:"shortPage" json:"shortPage,omitempty"`
	// Stale answers reads as the region was that long ago, in its time.
	Stale Duration `yaml:"stale" json:"stale,omitempty"`
}

// RPCRule acts on calls of a node's Talos API.
type RPCRule struct {
	Name string `yaml:"name" json:"name,omitempty"`
	// Node is a glob for the machine's name; empty for any.
	Node string `yaml:"node" json:"node,omitempty"`
	// RPC is a glob for the method, with or without its service, such as
	// Bootstrap or /machine.MachineService/Bootstrap.
	RPC  string `yaml:"rpc" json:"rpc"`
	When `yaml:",inline"`

	// Code answers with a gRPC code by name, such as Unavailable, and the call
	// does nothing.
	Code    string   `yaml:"code" json:"code,omitempty"`
	Message string   `yaml:"message" json:"message,omitempty"`
	Delay   Duration `yaml:"delay" json:"delay,omitempty"`
	// DropReply lets the call do its work and cuts the connection then.
	DropReply bool `yaml:"dropReply" json:"dropReply,omitempty"`
}

// PermissionRule refuses calls as for a key that lacks a right. When counts the
// calls that need one of the rights.
type PermissionRule struct {
	Name string `yaml:"name" json:"name,omitempty"`
	// Deny names products (iam), products with an action (lb:write) and IAM's
	// permission sets (SecretManagerSecretAccess), which are checked when the
	// script is loaded into a region.
	Deny []string `yaml:"deny" json:"deny"`
	When `yaml:",inline"`
}

// KillRule ends a process with SIGKILL at the nth mutating call of the script,
// before or after the call takes effect.
type KillRule struct {
	// Path, in the form of an HTTP rule's, counts only calls to matching paths;
	// those of nodes are /talos/NODE/METHOD. Empty counts all.
	Path string `yaml:"path" json:"path,omitempty"`
	Nth  int    `yaml:"nth" json:"nth"`
	PID  int    `yaml:"pid" json:"pid"`
	When string `yaml:"when" json:"when,omitempty"` // before (default) or after
}

// Duration is written as 2s or 150ms.
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	var s string
	if err := n.Decode(&s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("line %d: %q is no duration such as 2s", n.Line, s)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes a duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Parse reads a script. Unknown keys and wrong values are errors that name the
// line or the rule.
func Parse(text []byte) (Script, error) {
	var s Script
	if strings.TrimSpace(string(text)) == "" {
		return s, nil
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return Script{}, fmt.Errorf("fault script: %w", err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return Script{}, errors.New("fault script: it holds more than one document, and only the first would act")
	}
	if err := s.check(); err != nil {
		return Script{}, fmt.Errorf("fault script: %w", err)
	}
	return s, nil
}

func (s Script) check() error {
	for i, r := range s.HTTP {
		if err := r.check(); err != nil {
			return fmt.Errorf("http rule %d: %w", i+1, err)
		}
	}
	for i, r := range s.RPC {
		if err := r.check(); err != nil {
			return fmt.Errorf("rpc rule %d: %w", i+1, err)
		}
	}
	for i, e := range s.Events {
		if err := e.check(); err != nil {
			return fmt.Errorf("event %d: %w", i+1, err)
		}
	}
	for i, p := range s.Permissions {
		if len(p.Deny) == 0 {
			return fmt.Errorf("permission rule %d: deny is empty, and the rule does nothing", i+1)
		}
		if err := p.When.check(); err != nil {
			return fmt.Errorf("permission rule %d: %w", i+1, err)
		}
	}
	for i, k := range s.Kill {
		if k.Nth < 1 || k.PID < 2 {
			return fmt.Errorf("kill rule %d: nth must be 1 or more and pid a process id", i+1)
		}
		if _, err := compile(k.Path); k.Path != "" && err != nil {
			return fmt.Errorf("kill rule %d: %w", i+1, err)
		}
		if k.When != "" && k.When != "before" && k.When != "after" {
			return fmt.Errorf("kill rule %d: when is %q, neither before nor after", i+1, k.When)
		}
	}
	return nil
}

func (w When) check() error {
	if w.Nth < 0 || w.From < 0 || w.Count < 0 {
		return fmt.Errorf("nth, from and count are counted from 1")
	}
	if w.Nth > 0 && (w.From > 0 || w.Count > 0) {
		return fmt.Errorf("nth excludes from and count")
	}
	return nil
}

// hits says whether a rule acts on the nth matching call.
func (w When) hits(n int) bool {
	if w.Nth > 0 {
		return n == w.Nth
	}
	from := max(w.From, 1)
	return n >= from && (w.Count == 0 || n < from+w.Count)
}

func (r HTTPRule) check() error {
	if r.Path == "" {
		return fmt.Errorf("path is missing; /** means every path")
	}
	if _, err := compile(r.Path); err != nil {
		return err
	}
	if r.Per != "" && r.Per != "path" && r.Per != "request" {
		return fmt.Errorf("per is %q, neither path nor request", r.Per)
	}
	if r.Status != 0 && (r.Status < 100 || r.Status > 599) {
		return fmt.Errorf("status %d is no HTTP status", r.Status)
	}
	if r.CutAfter < 0 || r.Truncate < 0 || r.ShortPage < 0 || r.Delay < 0 || r.Stale < 0 {
		return fmt.Errorf("cutAfter, truncate, shortPage, delay and stale cannot be negative")
	}
	ends := 0
	for _, b := range []bool{r.Status != 0, r.Hang, r.Drop, r.ApplyThenDrop, r.CutAfter > 0} {
		if b {
			ends++
		}
	}
	if ends > 1 {
		return fmt.Errorf("status, hang, drop, applyThenDrop and cutAfter exclude each other")
	}
	if ends == 0 && r.Delay == 0 && r.Truncate == 0 && r.ShortPage == 0 && r.Stale == 0 {
		return fmt.Errorf("the rule does nothing: give it a status, delay, hang, drop, applyThenDrop, cutAfter, truncate, shortPage or stale")
	}
	return r.When.check()
}

func (r RPCRule) check() error {
	if r.RPC == "" {
		return fmt.Errorf("rpc is missing; * means every method")
	}
	if r.Code == "" && r.Delay == 0 && !r.DropReply {
		return fmt.Errorf("the rule does nothing: give it a code, delay or dropReply")
	}
	if r.Code != "" && r.DropReply {
		return fmt.Errorf("code and dropReply exclude each other")
	}
	if r.Code != "" && !knownCode(r.Code) {
		return fmt.Errorf("code %q is no gRPC code such as Unavailable", r.Code)
	}
	return r.When.check()
}
