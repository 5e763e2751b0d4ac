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
	"reflect"
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
	// by it. Connections to a private leg appear to come from that leg's network.
	Client netip.Addr

	mu  sync.Mutex
	all map[string]*balancer
}

var _ hardware.Balancers = (*Set)(nil)

// New returns a region without load balancers.
func New(c clock.Clock, f *fabric.Fabric, log *slog.Logger) *Set {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Set{clock: c, fabric: f, log: log, Client: netip.AddrFrom4([4]byte{198, 51, 100, 7}), all: map[string]*balancer{}}
}

// balancer is one load balancer: a frontend for each place it listens on.
type balancer struct {
	conf      hardware.Balancer
	frontends map[place]*frontend
	pools     map[string]*pool // by what the pool is made of
}

// place is an address and port that a frontend listens on; network is empty for
// a public address.
type place struct {
	network string
	addr    netip.Addr
	port    int
}

// Apply implements hardware.Balancers. What is the same before and after goes
// on undisturbed: listeners, their connections, and what health checks know.
func (s *Set) Apply(conf hardware.Balancer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.all[conf.ID]
	if b == nil {
		b = &balancer{frontends: map[place]*frontend{}, pools: map[string]*pool{}}
		s.all[conf.ID] = b
	}
	if !reflect.DeepEqual(b.conf.Attachments, conf.Attachments) {
		s.raise(conf.Attachments)
	}
	b.conf = conf
	wanted := map[place]hardware.Frontend{}
	for _, f := range conf.Frontends {
		for _, a := range conf.Attachments {
			wanted[place{a.NetworkID, a.Address, f.Port}] = f
		}
		for _, ip := range conf.PublicIPs {
			wanted[place{"", ip, f.Port}] = f
		}
	}
	for at, f := range b.frontends {
		if _, ok := wanted[at]; !ok {
			f.close()
			delete(b.frontends, at)
		}
	}
	used := map[string]bool{}
	for at, want := range wanted {
		key := fmt.Sprintf("%+v %+v", want.Backend, conf.Attachments)
		used[key] = true
		p := b.pools[key]
		if p == nil {
			p = newPool(s, want.Backend, conf.Attachments, b.known(want.Backend))
			b.pools[key] = p
		}
		f := b.frontends[at]
		if f == nil {
			l, err := s.listen(at)
			if err != nil {
				s.log.Error("load balancer cannot listen", "balancer", conf.ID, "address", at.addr, "port", at.port, "err", err)
				continue
			}
			from := at.addr
			if at.network == "" {
				from = s.Client
			}
			f = newFrontend(l, from)
			b.frontends[at] = f
		}
		f.use(want, p)
	}
	for key, p := range b.pools {
		if !used[key] {
			p.close()
			delete(b.pools, key)
		}
	}
}

// known returns the servers that pass their check now in any pool with the same
// kind of check, so that a change elsewhere does not make them unknown.
func (b *balancer) known(want hardware.Backend) map[netip.Addr]bool {
	up := map[netip.Addr]bool{}
	for _, p := range b.pools {
		if p.conf.CheckPort == want.CheckPort && p.conf.CheckHTTPS == want.CheckHTTPS && p.conf.CheckURI == want.CheckURI {
			for _, a := range p.healthy() {
				up[a] = true
			}
		}
	}
	return up
}

// Remove implements hardware.Balancers.
func (s *Set) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.all[id]
	if b == nil {
		return
	}
	delete(s.all, id)
	for _, f := range b.frontends {
		f.close()
	}
	for _, p := range b.pools {
		p.close()
	}
	for _, a := range b.conf.Attachments {
		s.fabric.HostDown(a.NetworkID, a.Address)
	}
}

// Close removes all load balancers.
func (s *Set) Close() error {
	s.mu.Lock()
	var ids []string
	for id := range s.all {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	for _, id := range ids {
		s.Remove(id)
	}
	return nil
}

func (s *Set) raise(legs []hardware.Attachment) {
	for _, a := range legs {
		s.fabric.HostUp(a.NetworkID, a.Address)
	}
}

func (s *Set) listen(at place) (net.Listener, error) {
	if at.network != "" {
		return s.fabric.Listen(at.network, at.addr, at.port)
	}
	return net.Listen("tcp", netip.AddrPortFrom(at.addr, uint16(at.port)).String())
}
