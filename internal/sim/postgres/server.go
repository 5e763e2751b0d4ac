package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"bastide/internal/sim/hardware"
)

// patience is how long a client waits for an engine that has to be made and
// started first, in real time, as that is what it takes.
const patience = 2 * time.Minute

// server is one database: its endpoints, and the engine once it was needed.
type server struct {
	id   string
	room *Servers
	ctx  context.Context // ends with close
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	wanted hardware.Database
	open   map[place]net.Listener
	conns  map[net.Conn]struct{}

	work   sync.Mutex // held while the engine is started or changed
	engine *engine
}

// place is where an endpoint is.
type place struct {
	network string
	address netip.Addr
	port    int
}

func newServer(room *Servers, id string) *server {
	s := &server{id: id, room: room, open: map[place]net.Listener{}, conns: map[net.Conn]struct{}{}}
	s.ctx, s.end = context.WithCancel(room.ctx)
	return s
}

func (s *server) apply(d hardware.Database) {
	s.mu.Lock()
	s.wanted = d
	s.listen(d.Endpoints)
	s.mu.Unlock()
	s.work.Lock()
	defer s.work.Unlock()
	if s.engine == nil || !s.engine.runs() {
		return // it will be what is wanted when somebody needs it
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	if err := s.engine.become(ctx, d); err != nil {
		s.complain("a database did not take its configuration", err)
	}
}

func (s *server) complain(what string, err error) {
	if s.ctx.Err() == nil {
		s.room.opt.Log.Error("simulated region: "+what, "database", s.id, "error", err)
	}
}

// listen opens what endpoints there are to be and closes others. The lock must
// be held.
func (s *server) listen(endpoints []hardware.DatabaseEndpoint) {
	wanted := map[place]bool{}
	for _, e := range endpoints {
		p := place{e.NetworkID, e.Address, e.Port}
		wanted[p] = true
		if _, ok := s.open[p]; ok {
			continue
		}
		l, err := s.listenAt(p)
		if err != nil {
			s.complain("an endpoint of a database could not be opened", err)
			continue
		}
		s.open[p] = l
		if l != nil {
			s.wg.Go(func() { s.accept(p, l) })
		}
	}
	for p, l := range s.open {
		if !wanted[p] {
			s.shut(p, l)
		}
	}
}

// listenAt makes an address answer. Without programs nothing listens there, and
// connections are refused.
func (s *server) listenAt(p place) (net.Listener, error) {
	if p.network != "" {
		s.room.opt.Fabric.HostUp(p.network, p.address)
	}
	switch {
	case s.room.opt.Programs == "":
		return nil, nil
	case p.network == "":
		return net.Listen("tcp", net.JoinHostPort(p.address.String(), strconv.Itoa(p.port)))
	}
	return s.room.opt.Fabric.Listen(p.network, p.address, p.port)
}

// shut closes an endpoint. The lock must be held.
func (s *server) shut(p place, l net.Listener) {
	if l != nil {
		_ = l.Close()
	}
	if p.network != "" {
		s.room.opt.Fabric.HostDown(p.network, p.address)
	}
	delete(s.open, p)
}

func (s *server) accept(p place, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // it was closed
		}
		if !s.admits(p, c.RemoteAddr()) || !s.track(c) {
			_ = c.Close()
			continue
		}
		s.wg.Go(func() {
			defer s.untrack(c)
			s.lead(c)
		})
	}
}

// admits applies a public endpoint's access list. Clients from 127.0.0.1 count
// as an administrator inside the first allowed range, as at the bastion.
func (s *server) admits(p place, from net.Addr) bool {
	if p.network != "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.wanted.Endpoints, func(e hardware.DatabaseEndpoint) bool {
		return place{e.NetworkID, e.Address, e.Port} == p
	})
	if at < 0 || len(s.wanted.Endpoints[at].Allow) == 0 {
		return false
	}
	client, err := netip.ParseAddrPort(from.String())
	if err != nil {
		return false
	}
	a := client.Addr().Unmap()
	return a == netip.AddrFrom4([4]byte{127, 0, 0, 1}) ||
		slices.ContainsFunc(s.wanted.Endpoints[at].Allow, func(r netip.Prefix) bool { return r.Contains(a) })
}

// track remembers a connection, unless the database has ended.
func (s *server) track(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *server) untrack(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// lead connects a client with the engine, which it starts if need be.
func (s *server) lead(client net.Conn) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	address, err := s.ready(ctx)
	if err != nil {
		s.complain("PostgreSQL did not start", err)
		return
	}
	var d net.Dialer
	back, err := d.DialContext(ctx, "tcp", address)
	if err != nil || !s.track(back) {
		s.complain("PostgreSQL does not answer", err)
		return
	}
	defer s.untrack(back)
	s.wg.Go(func() {
		_, _ = io.Copy(back, client)
		_ = back.Close()
	})
	_, _ = io.Copy(client, back)
}

// ready starts the engine if it does not run, and returns where it listens.
func (s *server) ready(ctx context.Context) (string, error) {
	s.work.Lock()
	defer s.work.Unlock()
	if s.ctx.Err() != nil {
		return "", s.ctx.Err()
	}
	if s.engine == nil {
		e, err := newEngine(ctx, s.room.opt.Programs)
		if err != nil {
			return "", err
		}
		s.engine = e
	}
	if s.engine.runs() {
		return s.engine.address(), nil
	}
	s.mu.Lock()
	wanted := s.wanted
	s.mu.Unlock()
	if err := s.engine.start(ctx, wanted); err != nil {
		return "", err
	}
	if err := s.engine.become(ctx, wanted); err != nil {
		return "", errors.Join(err, s.engine.stop())
	}
	return s.engine.address(), nil
}

func (s *server) close() {
	s.end()
	s.mu.Lock()
	for p, l := range s.open {
		s.shut(p, l)
	}
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.work.Lock()
	if s.engine != nil {
		if err := errors.Join(s.engine.stop(), s.engine.forget()); err != nil {
			s.room.opt.Log.Error("simulated region: a database left something behind", "database", s.id, "error", err)
		}
	}
	s.work.Unlock()
	s.wg.Wait()
}
