package node_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"google.golang.org/grpc/codes"

	"bastide/internal/sim/node"
)

// killer plays a fault script that kills callers of changes.
type killer struct {
	mu     sync.Mutex
	before bool // at the next change, before it takes effect; else after it
	heard  []string
}

func (k *killer) RPC(name, method string, changes bool) node.RPCFault {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !changes {
		return node.RPCFault{Served: func(error) bool { return false }}
	}
	killed := k.before
	return node.RPCFault{Killed: killed, Served: func(err error) bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		what := "without effect"
		if err == nil {
			what = "with effect"
		}
		k.heard = append(k.heard, name+" "+method+" "+what)
		return true
	}}
}

// A call at which its caller is killed either has no effect, or has it and is
// not answered.
func TestKilledCaller(t *testing.T) {
	t.Parallel()
	k := &killer{before: true}
	r := newRegion(t, func(o *node.Options) { o.Faults = k })
	c := r.waitMaintenance(hardwareOf("cp-1", "172.16.0.11"))
	send := func(dry bool) error {
		_, err := c.ApplyConfiguration(short(t), &machine.ApplyConfigurationRequest{Data: r.machineConfig(machinetype.TypeControlPlane, nil), DryRun: dry})
		return err
	}
	if err := send(true); err != nil {
		t.Errorf("a dry run counts as a change: %v", err)
	}
	refused(t, "killed before", send(false), codes.Unavailable, "EOF")
	if _, err := c.Version(short(t)); err != nil {
		t.Errorf("the call took effect: %v", err)
	}
	k.mu.Lock()
	k.before = false
	k.mu.Unlock()
	refused(t, "killed after", send(false), codes.Unavailable, "EOF")
	admin := r.talos("172.16.0.11")
	r.until("normal API", func(ctx context.Context) error { _, err := admin.Version(ctx); return err })
	k.mu.Lock()
	defer k.mu.Unlock()
	if want := []string{"cp-1 ApplyConfiguration without effect", "cp-1 ApplyConfiguration with effect"}; !slices.Equal(k.heard, want) {
		t.Errorf("heard %v, want %v", k.heard, want)
	}
}
