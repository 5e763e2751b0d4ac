package balancer

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"

	"bastide/internal/sim/hardware"
)

// frontend takes connections at one address and port.
type frontend struct {
	listener net.Listener
	from     netip.Addr // where its clients appear to come from
	ctx      context.Context
	stop     context.CancelFunc

	mu   sync.Mutex
	conf hardware.Frontend
	pool *pool
	open map[net.Conn]struct{}
}

func newFrontend(l net.Listener, from netip.Addr) *frontend {
	f := &frontend{listener: l, from: from, open: map[net.Conn]struct{}{}}
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

// close ends the listener and cuts its connections.
func (f *frontend) close() {
	f.stop()
	_ = f.listener.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.open {
		_ = c.Close()
	}
}

func (f *frontend) accept() {
	for {
		c, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		p, conf := f.pool, f.conf
		f.open[c] = struct{}{}
		f.mu.Unlock()
		go func() {
			defer func() {
				f.mu.Lock()
				delete(f.open, c)
				f.mu.Unlock()
			}()
			f.pass(c, conf, p)
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
	return !conf.AllowOnly || slices.ContainsFunc(conf.Allow, func(p netip.Prefix) bool { return p.Contains(from) })
}

// reset closes a connection so that its client sees a reset, not an end.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// splice copies both ways until both sides are done, or one breaks.
func splice(a, b net.Conn) {
	var wg sync.WaitGroup
	pass := func(dst, src net.Conn) {
		_, err := io.Copy(dst, src)
		if w, ok := dst.(interface{ CloseWrite() error }); ok && err == nil {
			_ = w.CloseWrite()
			return
		}
		_ = a.Close()
		_ = b.Close()
	}
	wg.Go(func() { pass(a, b) })
	wg.Go(func() { pass(b, a) })
	wg.Wait()
	_ = a.Close()
	_ = b.Close()
}
