package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"bastide/internal/sim/hardware"
)

// frontend takes connections at one address and port.
type frontend struct {
	at       place
	listener net.Listener
	from     netip.Addr // where its clients appear to come from; see Set.Client
	ctx      context.Context
	stop     context.CancelFunc

	mu   sync.Mutex
	conf hardware.Frontend
	pool *pool
	open map[net.Conn]struct{}
}

func newFrontend(at place, l net.Listener, from netip.Addr) *frontend {
	f := &frontend{at: at, listener: l, from: from, open: map[net.Conn]struct{}{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	go f.accept()
	return f
}

// use says where new connections lead from now on.
func (f *frontend) use(conf hardware.Frontend, p *pool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conf, f.pool = conf, p
}

// close ends the listener; connections go on.
func (f *frontend) close() { _ = f.listener.Close() }

// cut ends every connection.
func (f *frontend) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop()
	for c := range f.open {
		reset(c)
	}
}

// idle tells whether no connection is left.
func (f *frontend) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open) == 0
}

func (f *frontend) accept() {
	for {
		c, err := f.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as no file descriptors left, which passes
			select {
			case <-f.ctx.Done():
				return
			case <-time.After(shortestDelay):
				continue
			}
		}
		f.mu.Lock()
		p, conf, cut := f.pool, f.conf, f.ctx.Err() != nil
		f.open[c] = struct{}{}
		f.mu.Unlock()
		if cut {
			reset(c)
			return
		}
		go func() {
			f.pass(c, conf, p)
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.open, c)
		}()
	}
}

// pass leads one connection to a healthy server. Without one, or when the
// client may not connect, the connection is reset.
func (f *frontend) pass(c net.Conn, conf hardware.Frontend, p *pool) {
	if p == nil || !admitted(conf, f.from) {
		reset(c)
		return
	}
	up, err := p.dial(f.ctx)
	if err != nil {
		reset(c)
		return
	}
	splice(c, up)
}

// admitted judges a client by the address that it appears to come from.
func admitted(conf hardware.Frontend, from netip.Addr) bool {
	if !conf.AllowOnly {
		return true
	}
	if !from.IsValid() {
		return len(conf.Allow) > 0 && conf.Allow[0].IsValid()
	}
	return slices.ContainsFunc(conf.Allow, func(p netip.Prefix) bool { return p.Contains(from) })
}

// reset closes a connection so that its client sees a reset, not an end.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// splice copies both ways until both sides are done, or one breaks. An end is
// passed on as an end of that direction alone, a break as a reset.
func splice(client, server net.Conn) {
	var wg sync.WaitGroup
	pass := func(dst, src net.Conn) {
		if _, err := io.Copy(dst, src); err != nil {
			reset(client)
			_ = server.Close()
			return
		}
		if half, ok := dst.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	wg.Go(func() { pass(client, server) })
	wg.Go(func() { pass(server, client) })
	wg.Wait()
	_ = client.Close()
	_ = server.Close()
}
