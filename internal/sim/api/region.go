// Package api is the simulated region's HTTP side: what api.scaleway.com
// answers, with the states, delays, refusals and oddities that were recorded
// from it. It is a model of behaviour; nothing here replays a file.
//
// Public addresses that the region hands out lie in 127.51.0.0/16, so that
// clients on the same machine can really dial them. Public IPv6 prefixes lie in
// 2001:db8::/32 and cannot be dialled.
//
// It knows nothing of Talos or SSH: what a server, a load balancer or a gateway
// does once it runs is behind the interfaces of package hardware.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"bastide/internal/sim/clock"
	"bastide/internal/sim/fault"
	"bastide/internal/sim/hardware"
	"bastide/internal/sim/host"
)

// Options configures a region. The zero value works: real time, no hardware,
// every project and every UUID token accepted.
type Options struct {
	Clock     clock.Clock
	Machines  hardware.Machines
	Balancers hardware.Balancers
	Gateways  hardware.Gateways
	Databases hardware.Databases
	// Trouble acts out the node events of a fault script; nil leaves them.
	Trouble hardware.Trouble
	// Projects are the project ids that exist from the start. With none here
	// and none seeded, every project id is taken to exist.
	Projects []string
	// Organization owns the projects; empty means each project's own id.
	Organization string
	// Rights are those of every secret key that is neither in Credentials nor
	// made in the region; the zero value may do everything.
	Rights Credential
	// Credentials limits secret keys. A key that is not listed has Rights,
	// unless OnlyListed is set: then it is not known.
	Credentials map[string]Credential
	OnlyListed  bool
	// Objects looks at an object in object storage for a snapshot import; nil
	// means that every object is an empty disk of 1 GiB.
	Objects ObjectReader
	// Quotas limits how many servers of a type an organization may have.
	Quotas map[string]int
	// RefuseNICDelete makes instance v2alpha1 refuse to delete a NIC that is
	// attached to a server, as it was reported to do since September 2026; all
	// recordings are older and show it accepted.
	RefuseNICDelete bool
	// PublicBlock is where in 127.51.0.0/16 the region's public addresses begin,
	// in units of 1024 addresses, so that regions on one machine do not meet.
	PublicBlock uint8
	// Today is the day whose database engines are on sale; zero means all that
	// are known.
	Today time.Time
	// Lag is how long IPAM takes to show what another product did, in the
	// region's time; zero means one second.
	Lag time.Duration
	// Log hears of what goes wrong inside the simulator; nil is silent.
	Log *slog.Logger
	// Host is what GET /sim/host tells of; nil tells of no trouble.
	Host *host.Host
}

// Region is the simulated region. It is an http.Handler for both the Scaleway
// API and the simulator's own pages under /sim/.
type Region struct {
	opts    Options
	mux     *http.ServeMux
	effects *effects
	log     *requestLog
	faults  *fault.Engine
	// operations are the patterns of all that is served.
	operations []string

	// background ends with Close; what outlives a call runs under it.
	background context.Context
	end        context.CancelFunc

	mu    sync.Mutex
	store hardware.Store // nil without object storage
	world *world
	past  []moment // copies of the world, kept only while a fault asks for stale reads
	seeds []Seed   // from code, applied again after each reset
}

// New returns a region with nothing in it but what a fresh account has.
func New(opts Options) *Region {
	if opts.Lag == 0 {
		opts.Lag = time.Second
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	r := &Region{opts: opts, mux: http.NewServeMux(), effects: newEffects(opts), log: newRequestLog(), faults: fault.NewEngine(opts.Clock)}
	r.background, r.end = context.WithCancel(context.Background())
	r.world = newWorld(opts)
	r.world.region = r
	r.routes()
	return r
}

// routes is the table of contents: one line per product. Elastic Metal gets its
// line here later; object storage, which speaks another protocol, is a room of
// its own.
func (r *Region) routes() {
	r.pageRoutes()
	r.accountRoutes()
	r.iamRoutes()
	r.catalogueRoutes()
	r.vpcRoutes()
	r.ipamRoutes()
	r.gatewayRoutes()
	r.blockRoutes()
	r.lbRoutes()
	r.instanceRoutes()
	r.secretRoutes()
	r.registryRoutes()
	r.dnsRoutes()
	r.rdbRoutes()
}

// Reset ends everything that runs and empties the region, then applies the
// seeds given through Seed again. It returns when the hardware is gone.
func (r *Region) Reset() {
	r.mu.Lock()
	old := r.world
	old.stopTimers()
	r.world = newWorld(r.opts)
	r.world.region = r
	r.past = nil
	for _, s := range r.seeds {
		if err := r.world.seed(s); err != nil {
			r.opts.Log.Error("simulated region: seed", "error", err) // it was good the first time
		}
	}
	old.tearDown(r.effects)
	store := r.store
	r.mu.Unlock()
	r.effects.wait()
	if store != nil {
		store.Reset()
	}
	r.log.clear()
	r.faults.Clear()
}

// Close ends everything that runs. The region may not be used afterwards.
func (r *Region) Close() {
	r.end()
	r.mu.Lock()
	r.world.stopTimers()
	r.world.tearDown(r.effects)
	r.world = newWorld(r.opts) // what is still on its way to the old one finds it gone
	r.world.region = r
	r.mu.Unlock()
	r.effects.wait()
}

// Mount puts object storage on the state page and under the reset.
func (r *Region) Mount(s hardware.Store) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store = s
}

// Faults is the fault engine, for the rooms that ask it about RPCs.
func (r *Region) Faults() *fault.Engine { return r.faults }

// stage is one step of something that takes its time.
type stage struct {
	at time.Duration // since the beginning, in the region's time
	// do makes the change; false ends the sequence.
	do   func(*world) bool
	keys []string // wait for the hardware of these first
}

// stages goes through the steps in order, each after its time. Timers of their
// own could overtake each other when the region's time runs fast.
func (w *world) stages(steps ...stage) {
	w.stagesFrom(0, steps)
}

func (w *world) stagesFrom(passed time.Duration, steps []stage) {
	if len(steps) == 0 {
		return
	}
	next := steps[0]
	w.after(next.at-passed, func(w *world) {
		if next.do(w) {
			w.stagesFrom(next.at, steps[1:])
		}
	}, next.keys...)
}

// after applies a change to the world once a delay of the region's time has
// passed, unless the region was reset meanwhile. Before the change it waits for
// hardware calls that were made for the same keys.
func (w *world) after(d time.Duration, change func(*world), keys ...string) {
	r := w.region
	var t *time.Timer
	t = w.clock.After(d, func() {
		for _, k := range keys {
			r.effects.idle(k)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.world != w {
			return
		}
		delete(w.timers, t)
		r.remember()
		change(w)
	})
	w.timers[t] = true
}
