// Package balancer runs the region's load balancers: TCP forwarding to the
// backend servers that pass their health check, in turn. A balancer listens on
// its private legs through the region's network and on its public addresses,
// which are loopback addresses of this host.
package balancer

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"

	"bastide/internal/sim/clock"
	"bastide/internal/sim/fabric"
	"bastide/internal/sim/hardware"
)

// Set is all load balancers of a region.
type Set struct {
	clock  clock.Clock
	fabric *fabric.Fabric
	log    *slog.Logger
	// Client is the address that connections to public addresses appear to come
	// from: here they all come from a loopback address. An access list is judged
	// by it. The zero value puts the client inside the list's first range; an
	// empty list still admits nobody. Connections to a private leg appear to come
	// from the leg's own address, whose network every private client shares.
	// It is set before the first Apply.
	Client netip.Addr

	mu     sync.Mutex
	all    map[string]*balancer
	closed bool
}

var _ hardware.Balancers = (*Set)(nil)

// New returns a region without load balancers.
func New(c clock.Clock, f *fabric.Fabric, log *slog.Logger) *Set {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Set{clock: c, fabric: f, log: log, all: map[string]*balancer{}}
}

// balancer is one load balancer: a frontend for each place it listens on.
type balancer struct {
	conf      hardware.Balancer
	frontends map[place]*frontend
	retired   []*frontend      // take no connections any more, but still have some
	pools     map[string]*pool // by what the pool is made of
}

// has tells whether the balancer owns the address of a place.
func (b *balancer) has(at place) bool {
	if at.network == "" {
		return slices.Contains(b.conf.PublicIPs, at.addr)
	}
	return slices.Contains(b.conf.Attachments, hardware.Attachment{NetworkID: at.network, Address: at.addr})
}

// retire ends a frontend as a reload of HAProxy does: what it carries goes on
// to its end, unless the address itself is gone.
func (b *balancer) retire(f *frontend) {
	f.close()
	b.retired = append(b.retired, f)
}

// sweep cuts the retired frontends whose address is gone and forgets those that
// carry nothing any more.
func (b *balancer) sweep() {
	b.retired = slices.DeleteFunc(b.retired, func(f *frontend) bool {
		if !b.has(f.at) {
			f.cut()
			return true
		}
		return f.idle()
	})
}

// place is an address and port that a frontend listens on; network is empty for
// a public address.
type place struct {
	network string
	addr    netip.Addr
	port    int
}

// Apply implements hardware.Balancers. What is the same before and after goes
// on undisturbed: listeners, and what health checks know. No change cuts a
// connection but one that takes away an address that it goes through.
func (s *Set) Apply(conf hardware.Balancer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	b := s.all[conf.ID]
	if b == nil {
		b = &balancer{frontends: map[place]*frontend{}, pools: map[string]*pool{}}
		s.all[conf.ID] = b
	}
	s.attach(b.conf.Attachments, conf.Attachments)
	b.conf = conf
	wanted := places(conf)
	for at, f := range b.frontends {
		if _, ok := wanted[at]; !ok {
			b.retire(f)
			delete(b.frontends, at)
		}
	}
	b.sweep()
	used := map[*pool]bool{}
	for at, want := range wanted {
		p := s.pool(b, want.Backend)
		used[p] = true
		f, err := s.frontend(b, at)
		if err != nil {
			s.log.Error("load balancer cannot listen", "balancer", conf.ID, "address", at.addr, "port", at.port, "err", err)
			continue
		}
		f.use(want, p)
	}
	for key, p := range b.pools {
		if !used[p] {
			p.close()
			delete(b.pools, key)
		}
	}
}

// places lists where a balancer listens: each frontend at each address.
func places(conf hardware.Balancer) map[place]hardware.Frontend {
	all := map[place]hardware.Frontend{}
	for _, f := range conf.Frontends {
		for _, a := range conf.Attachments {
			all[place{a.NetworkID, a.Address, f.Port}] = f
		}
		for _, ip := range conf.PublicIPs {
			all[place{"", ip, f.Port}] = f
		}
	}
	return all
}

// frontend returns the frontend that listens at a place, a new one if none does.
func (s *Set) frontend(b *balancer, at place) (*frontend, error) {
	if f := b.frontends[at]; f != nil {
		return f, nil
	}
	l, err := s.listen(at)
	if err != nil {
		return nil, err
	}
	from := at.addr
	if at.network == "" {
		from = s.Client
	}
	f := newFrontend(at, l, from)
	b.frontends[at] = f
	return f, nil
}

// pool returns the pool of a backend, shared by all places that lead there.
func (s *Set) pool(b *balancer, want hardware.Backend) *pool {
	key := fmt.Sprintf("%+v %+v", want, b.conf.Attachments)
	if b.pools[key] == nil {
		b.pools[key] = newPool(s, want, b.conf.Attachments, b.known(want))
	}
	return b.pools[key]
}

// known returns the servers that pass their check now in any pool that leads to
// the same port or checks the same, so that a change elsewhere does not make
// them unknown.
func (b *balancer) known(want hardware.Backend) map[netip.Addr]bool {
	up := map[netip.Addr]bool{}
	for _, p := range b.pools {
		sameCheck := p.conf.CheckPort == want.CheckPort && p.conf.CheckHTTPS == want.CheckHTTPS && p.conf.CheckURI == want.CheckURI
		if p.conf.Port != want.Port && !sameCheck {
			continue
		}
		for _, a := range p.healthy() {
			up[a] = true
		}
	}
	return up
}

// Remove implements hardware.Balancers. It cuts every connection.
func (s *Set) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(id)
}

func (s *Set) remove(id string) {
	b := s.all[id]
	if b == nil {
		return
	}
	delete(s.all, id)
	for _, f := range b.frontends {
		b.retire(f)
	}
	for _, p := range b.pools {
		p.close()
	}
	s.attach(b.conf.Attachments, nil)
	b.conf = hardware.Balancer{}
	b.sweep()
}

// Close removes all load balancers, and no other comes up afterwards.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for id := range s.all {
		s.remove(id)
	}
	return nil
}

// attach moves a balancer's addresses in private networks. One that goes takes
// with it what it served and every connection it had.
func (s *Set) attach(had, now []hardware.Attachment) {
	for _, a := range had {
		if !slices.Contains(now, a) {
			s.fabric.HostDown(a.NetworkID, a.Address)
		}
	}
	for _, a := range now {
		if !slices.Contains(had, a) {
			s.fabric.HostUp(a.NetworkID, a.Address)
		}
	}
}

func (s *Set) listen(at place) (net.Listener, error) {
	if at.network != "" {
		return s.fabric.Listen(at.network, at.addr, at.port)
	}
	if !at.addr.IsLoopback() {
		return nil, fmt.Errorf("%s is not an address of this host", at.addr)
	}
	return net.Listen("tcp", netip.AddrPortFrom(at.addr, uint16(at.port)).String())
}
