package api

import (
	"fmt"
	"slices"

	"bastide/internal/sim/hardware"
)

// Events of a fault script that happen to a managed database: its name stands
// where a machine's does. One that has no instance yet happens when an instance
// of that name is first ready.
const (
	// eventPublic gives the instance a public endpoint that nobody asked for, as
	// was reported after changes of a private endpoint.
	eventPublic = "database-public-endpoint"
	// eventStatus puts it into a state that it does not leave by itself; ready
	// ends it.
	eventStatus = "database-status"
)

func isRDBEvent(e hardware.NodeEvent) bool { return e.Event == eventPublic || e.Event == eventStatus }

// checkTrouble refuses an event that nothing in the region could act out.
func (r *Region) checkTrouble(e hardware.NodeEvent) error {
	if isRDBEvent(e) {
		status, _ := e.Params["status"].(string)
		if e.Event == eventStatus && !slices.Contains([]string{"ready", "error", "locked", "disk_full", "autohealing"}, status) {
			return fmt.Errorf("params.status is %q: it must be ready, error, locked, disk_full or autohealing", status)
		}
		return nil
	}
	if isImportEvent(e) {
		return checkImportEvent(e)
	}
	if r.opts.Trouble == nil {
		return errNoNodes
	}
	return r.opts.Trouble.Check(e)
}

func (r *Region) troubleDatabase(e hardware.NodeEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.world
	before := w.touched
	defer func() { w.touched = before }() // it is no effect of a call
	r.remember()
	found := false
	for _, i := range w.RDBInstances.all() {
		if i.Name == e.Node && i.Up {
			found = true
			w.troubleRDB(i, e)
			w.applyRDB(i)
		}
	}
	if !found {
		w.RDBTrouble[e.Node] = append(w.RDBTrouble[e.Node], e)
	}
}

// troubleRDB acts an event out on an instance whose engine runs.
func (w *world) troubleRDB(i *rdbInstance, e hardware.NodeEvent) {
	switch e.Event {
	case eventPublic:
		w.exposeRDB(i)
	case eventStatus:
		i.Status, _ = e.Params["status"].(string)
	}
	i.touch()
}
