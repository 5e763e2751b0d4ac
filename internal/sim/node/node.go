package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"google.golang.org/grpc"

	"bastide/internal/sim/hardware"
)

// node is one boot of Talos on a machine.
type node struct {
	farm    *Farm
	machine *instance
	hw      hardware.Machine
	disks   disks
	quirks  quirks
	log     *slog.Logger
	ctx     context.Context
	end     context.CancelCauseFunc
	wg      sync.WaitGroup // everything the boot started

	bootID    string
	bootTime  time.Time
	runDir    string     // what Talos keeps in memory: keys, certificates, arguments
	loopback  netip.Addr // where this node's etcd and kube-apiserver listen
	resources state.State
	events    *eventLog
	console   *console
	services  *serviceTable

	mu         sync.Mutex
	active     config.Provider // what runs, nil before the first
	persistent config.Provider
	complete   chan struct{} // closed when the active configuration is enough to boot
	changed    chan struct{} // closed and replaced at each change of the active configuration
	rollback   *time.Timer   // pending end of a TRY
	applying   bool
	rebooting  bool // a REBOOT-mode apply was accepted
	sequence   string
	stage      stage
	varDir     string // where EPHEMERAL is on this host, empty until it is mounted
	varSize    int64  // its size in bytes
	timeSynced bool
	criUp      bool
	booted     bool // the boot sequence is through
	nodeReady  bool
	logs       map[string]*console
	listeners  *apid
	peers      map[string]*grpc.ClientConn // proxy connections to other nodes
	etcd       *etcdService
	apiserver  *apiserver
	kubelet    *kubelet
	children   map[*child]struct{}
	closed     bool
	images     []string // pulled for the system
	upgrading  bool
}

func newNode(ctx context.Context, m *instance, hw hardware.Machine, ds disks, q quirks) (*node, error) {
	n := &node{
		farm: m.farm, machine: m, hw: hw, disks: ds, quirks: q,
		log:    m.farm.opt.Log.With("node", hw.Name),
		bootID: uuid.NewString(), bootTime: time.Now(),
		events: newEventLog(), console: newConsole(),
		complete: make(chan struct{}), changed: make(chan struct{}),
		logs: map[string]*console{}, peers: map[string]*grpc.ClientConn{}, children: map[*child]struct{}{},
	}
	n.ctx, n.end = context.WithCancelCause(ctx)
	n.services = &serviceTable{node: n, byID: map[string]*service{}}
	var err error
	if n.resources, err = newResources(); err != nil {
		return nil, fmt.Errorf("registering resource types: %w", err)
	}
	if n.loopback, err = m.farm.takeLoopback(); err != nil {
		return nil, err
	}
	n.runDir = filepath.Join(m.farm.opt.Dir, "run", hw.ServerID+"-"+n.bootID[:8])
	if err := os.MkdirAll(n.runDir, 0o700); err != nil {
		return nil, err
	}
	n.etcd, n.apiserver, n.kubelet = newEtcdService(n), &apiserver{node: n}, newKubelet(n)
	return n, nil
}

// run boots the node, keeps it until its boot ends, takes it down and returns
// why it ended.
func (n *node) run() error {
	n.spawn(func() {
		if err := n.boot(); err != nil && n.ctx.Err() == nil {
			n.log.Error("boot failed", "err", err)
			n.console.printf("boot sequence failed: %v", err)
		}
	})
	<-n.ctx.Done()
	why := context.Cause(n.ctx)
	n.takeDown(why)
	return why
}

// spawn runs a part of the boot until the boot ends.
func (n *node) spawn(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.wg.Go(f)
	}
}

// live returns the quirks of the machine as they are now.
func (n *node) live() quirks {
	n.machine.mu.Lock()
	defer n.machine.mu.Unlock()
	return n.machine.quirks
}

// takeDown stops everything at once when power is lost, and children first with
// a signal when the operating system ends by itself.
func (n *node) takeDown(why error) {
	n.mu.Lock()
	n.closed = true
	children := make([]*child, 0, len(n.children))
	for c := range n.children {
		children = append(children, c)
	}
	peers := n.peers
	n.peers = map[string]*grpc.ClientConn{}
	if n.rollback != nil {
		n.rollback.Stop()
	}
	n.mu.Unlock()

	clean := errors.Is(why, errRebooting) || errors.Is(why, errHalting)
	n.linkDown()
	n.closeAPI()
	var wg sync.WaitGroup
	for _, c := range children {
		wg.Go(func() { c.stop(clean) })
	}
	wg.Wait()
	for _, p := range peers {
		_ = p.Close()
	}
	n.wg.Wait()
	n.farm.releaseLoopback(n.loopback)
	_ = os.RemoveAll(n.runDir)
}

// logOf returns the log of a service.
func (n *node) logOf(id string) *console {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.logs[id]
	if c == nil {
		c = newConsole()
		n.logs[id] = c
	}
	return c
}

// config returns the active configuration, nil before there is one.
func (n *node) config() config.Provider {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.active
}

// varPath names a file of the EPHEMERAL volume; it is empty before that is mounted.
func (n *node) varPath(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.varDir == "" {
		return ""
	}
	return filepath.Join(n.varDir, name)
}

func (n *node) ephemeralSize() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.varSize
}

// configured tells whether the node is past maintenance.
func (n *node) configured() bool {
	select {
	case <-n.complete:
		return true
	default:
		return false
	}
}

func (n *node) isControlPlane() bool {
	c := n.config()
	return c != nil && c.Machine() != nil && c.Machine().Type().IsControlPlane()
}

// takeLoopback picks an address of 127.0.0.0/8 on which nothing of any farm on
// this host listens, so that etcd and kube-apiserver can keep their own ports.
func (f *Farm) takeLoopback() (netip.Addr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range 1000 {
		var b [3]byte
		if _, err := rand.Read(b[:]); err != nil {
			return netip.Addr{}, err
		}
		// The lower half stays free for the region's public addresses.
		a := netip.AddrFrom4([4]byte{127, 128 | b[0], b[1], 1 + b[2]%250})
		if _, taken := f.loopbacks[a]; !taken {
			f.loopbacks[a] = struct{}{}
			return a, nil
		}
	}
	return netip.Addr{}, errors.New("no free loopback address")
}

func (f *Farm) releaseLoopback(a netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.loopbacks, a)
}
