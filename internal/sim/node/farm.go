package node

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"bastide/internal/sim/clock"
	"bastide/internal/sim/fabric"
	"bastide/internal/sim/hardware"
	"bastide/internal/sim/host"
)

// Options is what a farm of simulated machines needs.
type Options struct {
	Clock  clock.Clock
	Fabric *fabric.Fabric
	// Dir holds the contents of the disks, one folder per volume id, and what
	// running machines keep in memory file systems.
	Dir string
	// EtcdProgram is the argument list that starts this very program so that it
	// calls RunEtcd with the arguments that follow.
	EtcdProgram []string
	// APIServerProgram is the path of a kube-apiserver.
	APIServerProgram string
	Log              *slog.Logger
	Host             *host.Host // is told of processes that end; nil tells nobody
	Faults           Faults
	// Resolve answers for names that machines look up, such as a cluster
	// endpoint; nil means that no name resolves.
	Resolve func(name string) []netip.Addr
	// Halted is told when an operating system switched its machine off.
	Halted func(serverID string)
}

// Faults decides what goes wrong with calls of the Talos API.
type Faults interface {
	// RPC is asked once for each call that a node is about to serve; node is the
	// machine's name, method the last part of the call's name such as
	// ApplyConfiguration, changes whether it is to change the node.
	RPC(node, method string, changes bool) RPCFault
}

// RPCFault is what happens to one call.
type RPCFault struct {
	Code    codes.Code // OK lets the call through
	Message string
	Delay   time.Duration // simulated time, before anything else
	// DropReply serves the call and then breaks the connection instead of answering.
	DropReply bool
	// Killed says that the caller was killed before the call takes effect: it
	// must not take any.
	Killed bool
	// Served is told how the call ended, before it is answered. It says whether
	// that is not to happen, because the caller has just been killed. Not nil.
	Served func(error) (silent bool)
}

// Farm is all simulated machines of a region.
type Farm struct {
	opt  Options
	ctx  context.Context
	stop context.CancelFunc

	mu        sync.Mutex
	machines  map[string]*instance            // by server id
	pending   map[string][]hardware.NodeEvent // by machine name, for the next boot
	loopbacks map[netip.Addr]struct{}         // addresses that children listen on
	partition map[string][]func()             // undoes what a partition event cut, by machine name
	closed    bool
}

var (
	_ hardware.Machines = (*Farm)(nil)
	_ hardware.Trouble  = (*Farm)(nil)
)

// New returns a farm without machines. It refuses when its folder cannot be
// made or a program is missing.
func New(opt Options) (*Farm, error) {
	if opt.Fabric == nil {
		return nil, fmt.Errorf("a farm of machines needs a network")
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	// What a farm that was killed kept in memory is of no use to this one.
	if err := os.RemoveAll(filepath.Join(opt.Dir, "run")); err != nil {
		return nil, fmt.Errorf("clearing the machines' memory: %w", err)
	}
	for _, dir := range []string{"volumes", "run"} {
		if err := os.MkdirAll(filepath.Join(opt.Dir, dir), 0o700); err != nil {
			return nil, fmt.Errorf("making the machines' folder: %w", err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Farm{
		opt: opt, ctx: ctx, stop: stop,
		machines: map[string]*instance{}, pending: map[string][]hardware.NodeEvent{},
		loopbacks: map[netip.Addr]struct{}{}, partition: map[string][]func(){},
	}, nil
}

// PowerOn implements hardware.Machines.
func (f *Farm) PowerOn(hw hardware.Machine) {
	if m := f.machine(hw); m != nil {
		m.powerOn(hw)
	}
}

// Reboot implements hardware.Machines: the machine is reset as by its button,
// and comes back with the hardware that it is given.
func (f *Farm) Reboot(hw hardware.Machine) {
	if m := f.machine(hw); m != nil {
		m.reset(hw)
	}
}

// PowerOff implements hardware.Machines.
func (f *Farm) PowerOff(serverID string) {
	f.mu.Lock()
	m := f.machines[serverID]
	f.mu.Unlock()
	if m != nil {
		m.powerOff(errPoweredOff)
	}
}

// Remove implements hardware.Machines. What cut it off goes with it, so that a
// machine that gets its address later is not cut off.
func (f *Farm) Remove(serverID string) {
	f.mu.Lock()
	m := f.machines[serverID]
	delete(f.machines, serverID)
	f.mu.Unlock()
	if m == nil {
		return
	}
	m.mu.Lock()
	m.gone = true
	m.mu.Unlock()
	m.powerOff(errPoweredOff)
	if len(f.named(m.hardware().Name)) == 0 {
		f.healAll(m)
	}
}

// DeleteVolume implements hardware.Machines.
func (f *Farm) DeleteVolume(volumeID string) {
	if err := os.RemoveAll(f.volumeDir(volumeID)); err != nil {
		f.opt.Log.Warn("deleting a volume's contents", "volume", volumeID, "err", err)
	}
}

// Close switches every machine off, as a power failure would.
func (f *Farm) Close() error {
	f.mu.Lock()
	f.closed = true
	var all []*instance
	for _, m := range f.machines {
		all = append(all, m)
	}
	f.mu.Unlock()
	var wg sync.WaitGroup
	for _, m := range all {
		wg.Go(func() { m.powerOff(errPoweredOff) })
	}
	wg.Wait()
	f.stop()
	return nil
}

// machine returns the machine of a server, made when it is first seen, or nil
// once the farm is closed.
func (f *Farm) machine(hw hardware.Machine) *instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	m := f.machines[hw.ServerID]
	if m == nil {
		m = &instance{farm: f, hw: hw}
		f.machines[hw.ServerID] = m
	}
	return m
}

// named returns the machines of a name; several servers may share one.
func (f *Farm) named(name string) []*instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []*instance
	for _, m := range f.machines {
		m.mu.Lock()
		if m.hw.Name == name || m.hw.Hostname == name {
			found = append(found, m)
		}
		m.mu.Unlock()
	}
	return found
}

func (f *Farm) volumeDir(id string) string {
	return filepath.Join(f.opt.Dir, "volumes", filepath.Base(id))
}
