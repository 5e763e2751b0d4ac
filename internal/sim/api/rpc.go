package api

import (
	"net/http"

	"bastide/internal/sim/fault"
)

// changing are the calls of the Talos API that change a node. Everything else
// only reads.
var changing = map[string]bool{
	"ApplyConfiguration": true, "Bootstrap": true, "Reboot": true, "Reset": true, "Shutdown": true, "Upgrade": true, "Rollback": true,
	"EtcdRecover": true, "EtcdLeaveCluster": true, "EtcdForfeitLeadership": true, "EtcdRemoveMemberByID": true,
	"EtcdAlarmDisarm": true, "EtcdDefragment": true, "ServiceStart": true, "ServiceStop": true, "ServiceRestart": true,
	"MetaWrite": true, "MetaDelete": true, "BlockDeviceWipe": true, "Install": true, "Pull": true,
}

// RPC notes a call of a node's Talos API beside the HTTP calls, so that one log
// holds everything that a client did, and asks the fault script about it.
func (r *Region) RPC(node, method string) *fault.RPC {
	f := r.faults.RPC(node, method)
	r.log.rpc(node, method, f)
	return f
}

func (l *requestLog) rpc(node, method string, f *fault.RPC) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &Request{Seq: len(l.entries) + 1, Time: now(), Method: "RPC", Path: "/talos/" + node + "/" + method, Status: http.StatusOK, Mutating: changing[method]}
	if f != nil {
		e.Fault = "rpc " + f.Rule
	}
	l.entries = append(l.entries, e)
}
