// Package fabric is the simulated region's packet network. Simulated hosts have
// addresses such as 172.16.0.11 in private networks; nothing of that exists on
// the machine that runs the simulator, so each (network, address, port) leads
// to a real loopback socket. Everything inside the region that connects to
// something else inside it does so through Dial, which is where partitions and
// dead hosts are enforced.
package fabric

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Fabric holds all private networks of a region.
type Fabric struct {
	mu       sync.Mutex
	services map[endpoint]string         // -> loopback "ip:port"
	hosts    map[host]bool               // hosts that are up
	cut      map[[2]host]bool            // one-way cuts, from -> to
	conns    map[host]map[*conn]struct{} // open connections touching a host
	filters  map[host]Filter             // hosts' own firewalls
}

// Filter says whether a host lets a new TCP connection from an address to one
// of its ports in. It is asked without a lock held and may be asked at any time.
type Filter func(from netip.Addr, port int) bool

type host struct {
	network string
	addr    netip.Addr
}

type endpoint struct {
	host
	port int
}

// New returns an empty fabric.
func New() *Fabric {
	return &Fabric{
		services: map[endpoint]string{}, hosts: map[host]bool{},
		cut: map[[2]host]bool{}, conns: map[host]map[*conn]struct{}{}, filters: map[host]Filter{},
	}
}

// HostUp makes an address answer: connections to ports that nothing serves are
// refused instead of timing out.
func (f *Fabric) HostUp(network string, addr netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts[host{network, addr}] = true
}

// Guard puts a host's firewall in place, until the host goes down. What it does
// not let in is dropped in silence; connections that are open stay.
func (f *Fabric) Guard(network string, addr netip.Addr, let Filter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filters[host{network, addr}] = let
}

// HostDown takes an address away at once, with everything it served and every
// connection it had.
func (f *Fabric) HostDown(network string, addr netip.Addr) {
	f.mu.Lock()
	h := host{network, addr}
	delete(f.hosts, h)
	delete(f.filters, h)
	for e := range f.services {
		if e.host == h {
			delete(f.services, e)
		}
	}
	open := f.conns[h]
	delete(f.conns, h)
	f.mu.Unlock()
	for c := range open {
		_ = c.Close()
	}
}

// Listen opens a loopback socket and serves it at the address and port. Closing
// the listener withdraws it.
func (f *Fabric) Listen(network string, addr netip.Addr, port int) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f.Serve(network, addr, port, l.Addr().String())
	return &listener{Listener: l, withdraw: func() { f.Withdraw(network, addr, port, l.Addr().String()) }}, nil
}

// Serve leads an address and port to a loopback socket that somebody else, such
// as a child process, listens on.
func (f *Fabric) Serve(network string, addr netip.Addr, port int, target string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.services[endpoint{host{network, addr}, port}] = target
}

// Withdraw ends what Serve began, if target still is what is served.
func (f *Fabric) Withdraw(network string, addr netip.Addr, port int, target string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := endpoint{host{network, addr}, port}
	if f.services[e] == target {
		delete(f.services, e)
	}
}

// Cut drops traffic from one address to another, one way; Heal undoes it. Open
// connections between the two are closed.
func (f *Fabric) Cut(network string, from, to netip.Addr) {
	f.mu.Lock()
	a, b := host{network, from}, host{network, to}
	f.cut[[2]host{a, b}] = true
	var open []*conn
	for c := range f.conns[a] {
		if (c.from == a && c.to == b) || (c.from == b && c.to == a) {
			open = append(open, c)
		}
	}
	f.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

// Heal undoes Cut.
func (f *Fabric) Heal(network string, from, to netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.cut, [2]host{{network, from}, {network, to}})
}

// Dial connects from one simulated address to another. A host that is down, cut
// off or guarded against the caller swallows packets; they are sent again, as
// TCP does, until the host answers, the context ends, or five seconds have
// passed. A host that is up without a listener refuses at once.
func (f *Fabric) Dial(ctx context.Context, network string, from, to netip.Addr, port int) (net.Conn, error) {
	a, b := host{network, from}, host{network, to}
	addr := net.JoinHostPort(to.String(), fmt.Sprint(port))
	target, served, err := f.reach(ctx, a, b, port)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w", addr, err)}
	}
	if !served {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w", addr, syscall.ECONNREFUSED)}
	}
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, fabric: f, from: a, to: b}
	f.mu.Lock()
	for _, h := range []host{a, b} {
		if f.conns[h] == nil {
			f.conns[h] = map[*conn]struct{}{}
		}
		f.conns[h][c] = struct{}{}
	}
	up := f.passes(a, b)
	f.mu.Unlock()
	if !up { // it was lost or cut off while we connected
		_ = c.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w", addr, syscall.ECONNRESET)}
	}
	return c, nil
}

// passes says whether packets pass between two hosts. The lock must be held.
func (f *Fabric) passes(a, b host) bool {
	return f.hosts[b] && !f.cut[[2]host{a, b}] && !f.cut[[2]host{b, a}]
}

// reach waits until packets pass between two hosts and returns what serves the port.
func (f *Fabric) reach(ctx context.Context, a, b host, port int) (target string, served bool, err error) {
	const patience, resend = 5 * time.Second, 100 * time.Millisecond
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		f.mu.Lock()
		up := f.passes(a, b)
		target, served = f.services[endpoint{b, port}]
		let := f.filters[b]
		f.mu.Unlock()
		dropped := let != nil && a != b && !let(a.addr, port) // to itself a host speaks over lo
		if up && !dropped {
			return target, served, nil
		}
		t := time.NewTimer(resend)
		select {
		case <-t.C:
		case <-wait.Done():
			t.Stop()
			if err := ctx.Err(); err != nil {
				return "", false, err
			}
			if up { // nobody said that there is no such host
				return "", false, syscall.ETIMEDOUT
			}
			return "", false, syscall.EHOSTUNREACH
		}
	}
}

type conn struct {
	net.Conn
	fabric   *Fabric
	from, to host
}

func (c *conn) Close() error {
	c.fabric.mu.Lock()
	delete(c.fabric.conns[c.from], c)
	delete(c.fabric.conns[c.to], c)
	c.fabric.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite passes a half-close on, so that proxied streams end cleanly.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

type listener struct {
	net.Listener
	withdraw func()
}

func (l *listener) Close() error {
	l.withdraw()
	return l.Listener.Close()
}
