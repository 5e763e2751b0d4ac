package api

import (
	"sync"

	"bastide/internal/sim/hardware"
)

// effects carries changes from the world to the hardware. Calls for one key (a
// server, a balancer, a gateway) run in order, calls for different keys at the
// same time, and none of them under the region's lock: powering a machine off
// may take as long as its processes need to end.
type effects struct {
	machines  hardware.Machines
	balancers hardware.Balancers
	gateways  hardware.Gateways
	databases hardware.Databases

	mu      sync.Mutex
	changed *sync.Cond
	queues  map[string][]func()
}

func newEffects(o Options) *effects {
	e := &effects{machines: o.Machines, balancers: o.Balancers, gateways: o.Gateways, databases: o.Databases, queues: map[string][]func(){}}
	e.changed = sync.NewCond(&e.mu)
	if e.machines == nil {
		e.machines = noMachines{}
	}
	if e.balancers == nil {
		e.balancers = noBalancers{}
	}
	if e.gateways == nil {
		e.gateways = noGateways{}
	}
	if e.databases == nil {
		e.databases = noDatabases{}
	}
	return e
}

// do queues a call for a key. A key is in the map for as long as its queue runs.
func (e *effects) do(key string, call func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, running := e.queues[key]
	e.queues[key] = append(e.queues[key], call)
	if !running {
		go e.drain(key)
	}
}

func (e *effects) drain(key string) {
	for {
		e.mu.Lock()
		if len(e.queues[key]) == 0 {
			delete(e.queues, key)
			e.changed.Broadcast()
			e.mu.Unlock()
			return
		}
		call := e.queues[key][0]
		e.queues[key] = e.queues[key][1:]
		e.mu.Unlock()
		call()
	}
}

// idle returns when no call for the key is queued or running.
func (e *effects) idle(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if _, running := e.queues[key]; !running {
			return
		}
		e.changed.Wait()
	}
}

// wait returns when nothing is queued or running at all.
func (e *effects) wait() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queues) > 0 {
		e.changed.Wait()
	}
}

func (e *effects) powerOn(m hardware.Machine) { e.do(m.ServerID, func() { e.machines.PowerOn(m) }) }
func (e *effects) powerOff(id string)         { e.do(id, func() { e.machines.PowerOff(id) }) }
func (e *effects) reboot(m hardware.Machine)  { e.do(m.ServerID, func() { e.machines.Reboot(m) }) }
func (e *effects) removeMachine(id string)    { e.do(id, func() { e.machines.Remove(id) }) }
func (e *effects) deleteVolume(id string)     { e.do(id, func() { e.machines.DeleteVolume(id) }) }
func (e *effects) balance(b hardware.Balancer) {
	e.do(b.ID, func() { e.balancers.Apply(b) })
}
func (e *effects) unbalance(id string)     { e.do(id, func() { e.balancers.Remove(id) }) }
func (e *effects) open(g hardware.Gateway) { e.do(g.ID, func() { e.gateways.Apply(g) }) }
func (e *effects) closeGateway(id string)  { e.do(id, func() { e.gateways.Remove(id) }) }

// allDatabases is the one key for all databases: an endpoint that moves from one
// to another has to be shut there before it opens here.
const allDatabases = "databases"

func (e *effects) runDatabase(d hardware.Database) {
	e.do(allDatabases, func() { e.databases.Apply(d) })
}
func (e *effects) dropDatabase(id string) { e.do(allDatabases, func() { e.databases.Remove(id) }) }

// A region without hardware answers all the same: its servers just do nothing.
type (
	noMachines  struct{}
	noBalancers struct{}
	noGateways  struct{}
	noDatabases struct{}
)

func (noMachines) PowerOn(hardware.Machine) {}
func (noMachines) PowerOff(string)          {}
func (noMachines) Reboot(hardware.Machine)  {}
func (noMachines) Remove(string)            {}
func (noMachines) DeleteVolume(string)      {}
func (noBalancers) Apply(hardware.Balancer) {}
func (noBalancers) Remove(string)           {}
func (noGateways) Apply(hardware.Gateway)   {}
func (noGateways) Remove(string)            {}
func (noDatabases) Apply(hardware.Database) {}
func (noDatabases) Remove(string)           {}
