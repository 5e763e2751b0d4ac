package node_test

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"

	"bastide/internal/sim/hardware"
	"bastide/internal/sim/node"
)

// losesPower takes a machine's power at the end of ApplyConfiguration, when the
// maintenance API is being closed and only this call still runs.
type losesPower struct {
	r      *region
	before func() // happens before that
}

func (l *losesPower) RPC(name, method string, _ bool) node.RPCFault {
	return node.RPCFault{Served: func(error) bool {
		if method != "ApplyConfiguration" {
			return false
		}
		for l.listens() {
			time.Sleep(10 * time.Millisecond)
		}
		l.before()
		if err := l.r.farm.Event(context.Background(), hardware.NodeEvent{Node: name, Event: "power-loss", Params: map[string]any{"for": "20s"}}); err != nil {
			l.r.t.Error(err)
		}
		return false
	}}
}

// listens says whether the node's API takes connections.
func (l *losesPower) listens() bool {
	raw, err := l.r.fabric.Dial(context.Background(), testNetwork, admin, netip.MustParseAddr("172.16.0.11"), 50000)
	if err == nil {
		_ = raw.Close()
	}
	return !errors.Is(err, syscall.ECONNREFUSED)
}

// A machine that loses its power in the last call of an API that is being closed
// does lose it, and comes back: the call waits for the machine to be off, and so
// the machine cannot wait for the call.
func TestPowerIsLostInTheLastCall(t *testing.T) {
	for name, leaves := range map[string]bool{"the caller waits": false, "the caller has hung up": true} {
		t.Run(name, func(t *testing.T) {
			l := &losesPower{before: func() {}}
			r := newRegion(t, func(o *node.Options) { o.Faults = l })
			l.r = r
			c := r.waitMaintenance(hardwareOf("cp-1", "172.16.0.11"))
			if leaves {
				l.before = func() {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				}
			}
			_, err := c.ApplyConfiguration(short(t), &machine.ApplyConfigurationRequest{Data: r.machineConfig(machinetype.TypeControlPlane, nil)})
			if err == nil {
				t.Error("a machine without power answered")
			}
			r.until("it comes back", func(ctx context.Context) error {
				_, err := r.insecure("172.16.0.11").Version(ctx)
				return err
			})
		})
	}
}
