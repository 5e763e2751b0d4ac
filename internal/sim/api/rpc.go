package api

import (
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bastide/internal/sim/fault"
)

// RPC is a call of a node's Talos API on its way.
type RPC struct {
	Fault  *fault.RPC // what the script does to it; nil lets it pass
	Killed bool       // the caller was killed, and the call must have no effect

	log   *requestLog
	entry *Request
	start time.Time
	after func() bool
}

// RPC notes a call of a node's Talos API beside the HTTP calls, so that one log
// and one count of changes hold everything that a client did, and asks the fault
// script about it.
func (r *Region) RPC(node, method string, changes bool) *RPC {
	c := &RPC{Fault: r.faults.RPC(node, method), log: r.log, start: time.Now(), after: func() bool { return false }}
	c.entry = r.log.rpc(node, method, changes)
	if changes {
		c.Killed, c.after = r.faults.Mutating()
	}
	return c
}

// Served notes how a call ended, before its answer is sent. It says whether the
// caller was killed just now, so that nobody is there to answer.
func (c *RPC) Served(node string, err error) (silent bool) {
	refused := c.Fault != nil && c.Fault.Code != codes.OK
	silent = c.Killed || !refused && c.after()
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	e := c.entry
	if e.Code = status.Code(err).String(); e.Mutating && err == nil {
		e.Effects = []Effect{{Verb: "changed", Kind: "node", ID: node}}
	}
	e.Millis = float64(time.Since(c.start).Microseconds()) / 1000
	switch {
	case c.Killed:
		e.Fault = killedBefore
	case silent:
		e.Fault = killedAfter
	case c.Fault != nil:
		e.Fault = "rpc " + c.Fault.Rule
	}
	if dropped := c.Fault != nil && c.Fault.DropReply; !silent && !dropped {
		e.Status = http.StatusOK // of gRPC, whatever its code
	}
	return silent
}

func (l *requestLog) rpc(node, method string, changes bool) *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &Request{Seq: len(l.entries) + 1, Time: now(), Method: "RPC", Path: "/talos/" + node + "/" + method, Mutating: changes}
	l.entries = append(l.entries, e)
	return e
}
