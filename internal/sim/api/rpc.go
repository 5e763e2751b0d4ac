package api

import (
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bastide/internal/sim/fault"
)

// RPC is a call of a node's Talos API on its way.
type RPC struct {
	Fault  *fault.RPC // what the script does to it; nil lets it pass
	Killed bool       // the caller was killed, and the call must have no effect

	region *Region
	entry  *Request
	start  time.Time
	due    fault.Due
	lost   bool // the node lost its power before it served the call
	after  func() bool
}

// RPC notes a call of a node's Talos API beside the HTTP calls, so that one log
// and one count of changes hold everything that a client did, asks the fault
// script about it, and lets happen what is bound to it.
func (r *Region) RPC(node, method string, changes bool) *RPC {
	c := &RPC{Fault: r.faults.RPC(node, method), region: r, start: time.Now(), due: r.faults.DueAtRPC(node, method),
		after: func() bool { return false }}
	c.entry = r.log.rpc(node, method, changes)
	for _, b := range c.due.Before {
		c.lost = c.lost || b.Node == node && endsBoot[b.Event]
	}
	r.happen(c.due.Before)
	if changes {
		c.Killed, c.after = r.faults.Mutating(c.entry.Path)
	}
	return c
}

// endsBoot are the events after which a machine does not serve the call that it
// was about to serve.
var endsBoot = map[string]bool{"power-loss": true, "reboot": true}

// Served notes how a call ended, before its answer is sent. It says whether the
// caller was killed just now, so that nobody is there to answer.
func (c *RPC) Served(node string, err error) (silent bool) {
	silent = c.Killed
	if refused := c.Fault != nil && c.Fault.Code != codes.OK; !refused && !c.Killed && !c.lost {
		c.region.happen(c.due.After)
		silent = c.after()
	}
	log := c.region.log
	log.mu.Lock()
	defer log.mu.Unlock()
	e := c.entry
	if e.Code = status.Code(err).String(); e.Mutating && err == nil {
		e.Effects = []Effect{{Verb: "changed", Kind: "node", ID: node}}
	}
	e.Millis = float64(time.Since(c.start).Microseconds()) / 1000
	e.Fault = c.describe(silent)
	if dropped := c.Fault != nil && c.Fault.DropReply; !silent && !dropped && !c.lost {
		e.Status = http.StatusOK // of gRPC, whatever its code
	}
	return silent
}

// describe names what the script did, for the request log.
func (c *RPC) describe(silent bool) string {
	switch {
	case c.Killed:
		return killedBefore
	case silent:
		return killedAfter
	}
	var what []string
	if c.Fault != nil {
		what = append(what, strings.TrimSpace("rpc "+c.Fault.Rule))
	}
	for _, b := range c.due.Before {
		what = append(what, "before it: "+b.Event+" of "+b.Node)
	}
	for _, a := range c.due.After {
		what = append(what, "after it: "+a.Event+" of "+a.Node)
	}
	return strings.Join(what, ", ")
}

func (l *requestLog) rpc(node, method string, changes bool) *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &Request{Seq: len(l.entries) + 1, Time: now(), Method: "RPC", Path: "/talos/" + node + "/" + method, Mutating: changes}
	l.entries = append(l.entries, e)
	return e
}
