package balancer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"bastide/internal/sim/hardware"
)

// Checks and connections of a real balancer last seconds; scaled down they would
// judge this host's processor instead of a server, so there is a floor.
const (
	shortestDelay   = 200 * time.Millisecond
	shortestTimeout = 2 * time.Second
)

// errNoServer is why a connection leads nowhere.
var errNoServer = errors.New("no healthy server")

// pool is the servers of a backend with what their health checks last found.
type pool struct {
	set  *Set
	conf hardware.Backend
	legs []hardware.Attachment
	ctx  context.Context
	stop context.CancelFunc

	mu   sync.Mutex
	up   map[netip.Addr]bool
	next int
}

// newPool starts the health checks. A server begins as down unless it is known
// to be up.
func newPool(s *Set, conf hardware.Backend, legs []hardware.Attachment, up map[netip.Addr]bool) *pool {
	p := &pool{set: s, conf: conf, legs: legs, up: map[netip.Addr]bool{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	for _, a := range conf.Servers {
		p.up[a] = up[a]
	}
	for a := range maps.Clone(p.up) { // a clone, for watching changes the map
		go p.watch(a)
	}
	return p
}

func (p *pool) close() { p.stop() }

// healthy lists the servers that pass their check, in the configured order.
func (p *pool) healthy() []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []netip.Addr
	for _, a := range p.conf.Servers {
		if p.up[a] {
			all = append(all, a)
		}
	}
	return all
}

// dial connects to the next healthy server. When that fails, so does the
// connection: Scaleway's load balancers try another server only where the
// backend sets a number of redispatches, which is none by default.
func (p *pool) dial(ctx context.Context) (net.Conn, error) {
	servers := p.healthy()
	if len(servers) == 0 {
		return nil, errNoServer
	}
	p.mu.Lock()
	a := servers[p.next%len(servers)]
	p.next++
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, p.limit(p.conf.ConnectTimeout))
	defer cancel()
	return p.reach(ctx, a, p.conf.Port)
}

// reach connects from the balancer's own address in the server's network; one
// without a leg there reaches only public addresses.
func (p *pool) reach(ctx context.Context, to netip.Addr, port int) (net.Conn, error) {
	if to.IsLoopback() {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", netip.AddrPortFrom(to, uint16(port)).String())
	}
	leg, ok := closest(p.legs, to)
	if !ok {
		return nil, fmt.Errorf("%s: the load balancer is in no private network", to)
	}
	return p.set.fabric.Dial(ctx, leg.NetworkID, leg.Address, to, port)
}

// closest finds the leg through which an address is reached. Legs come without
// their subnets, but of legs in disjoint subnets the one whose address shares
// the longest prefix with the target is the one whose subnet holds it.
func closest(legs []hardware.Attachment, to netip.Addr) (hardware.Attachment, bool) {
	var best hardware.Attachment
	shared := -1
	for _, leg := range legs {
		if n := commonBits(leg.Address, to); n > shared {
			best, shared = leg, n
		}
	}
	return best, shared >= 0
}

// commonBits is the length of the prefix that two addresses share, -1 where they
// are of different families.
func commonBits(a, b netip.Addr) int {
	if !a.IsValid() || a.BitLen() != b.BitLen() {
		return -1
	}
	for n := a.BitLen(); n > 0; n-- {
		if p, err := a.Prefix(n); err == nil && p.Contains(b) {
			return n
		}
	}
	return 0
}

func (p *pool) limit(d time.Duration) time.Duration {
	return max(p.set.clock.Scale(d), shortestTimeout)
}

// watch checks one server until the pool ends. One success makes it healthy, as
// many failures as there are retries make it unhealthy.
func (p *pool) watch(a netip.Addr) {
	failures := 0
	for {
		ctx, cancel := context.WithTimeout(p.ctx, p.limit(p.conf.CheckTimeout))
		err := p.check(ctx, a)
		cancel()
		if p.ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		was := p.up[a]
		if err == nil {
			failures, p.up[a] = 0, true
		} else if failures++; failures >= max(1, p.conf.CheckRetries) {
			p.up[a] = false
		}
		now := p.up[a]
		p.mu.Unlock()
		if was != now {
			p.set.log.Info("load balancer health", "server", a, "healthy", now, "err", err)
		}
		t := time.NewTimer(max(p.set.clock.Scale(p.conf.CheckDelay), shortestDelay))
		select {
		case <-p.ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// check connects, and for HTTPS asks for the URI without judging the certificate.
func (p *pool) check(ctx context.Context, a netip.Addr) error {
	port := p.conf.CheckPort
	if port == 0 {
		port = p.conf.Port
	}
	c, err := p.reach(ctx, a, port)
	if err != nil {
		return err
	}
	defer c.Close()
	if !p.conf.CheckHTTPS {
		return nil
	}
	uri := p.conf.CheckURI
	if uri == "" {
		uri = "/"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+netip.AddrPortFrom(a, uint16(port)).String()+uri, nil)
	if err != nil {
		return err
	}
	t := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return c, nil },
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as Scaleway's checks do
		DisableKeepAlives: true,
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	want := p.conf.CheckCode
	if want == 0 {
		want = http.StatusOK
	}
	if resp.StatusCode != want {
		return fmt.Errorf("status %d, not %d", resp.StatusCode, want)
	}
	return nil
}
