package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"bastide/internal/sim/clock"
	"bastide/internal/sim/fabric"
	"bastide/internal/sim/hardware"
)

const (
	network = "pn-1"
	patient = 2 * time.Minute // ends a test that would hang
)

var (
	leg    = hardware.Attachment{NetworkID: network, Address: addr("172.16.0.5")}
	client = addr("172.16.0.200") // another host of the private network
	nodes  = []netip.Addr{addr("172.16.0.11"), addr("172.16.0.12"), addr("172.16.0.13")}
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// region is load balancers with one of them applied.
type region struct {
	t      *testing.T
	fabric *fabric.Fabric
	set    *Set
	conf   hardware.Balancer
}

// newRegion has a private load balancer of 6443 with these servers.
func newRegion(t *testing.T, servers ...netip.Addr) *region {
	t.Helper()
	r := &region{t: t, fabric: fabric.New()}
	r.set = New(clock.New(1000), r.fabric, nil)
	t.Cleanup(func() { _ = r.set.Close() })
	r.conf = hardware.Balancer{ID: "lb-1", Attachments: []hardware.Attachment{leg}, Frontends: []hardware.Frontend{{Port: 6443, Backend: backend(servers...)}}}
	return r
}

func backend(servers ...netip.Addr) hardware.Backend {
	return hardware.Backend{Port: 6443, Servers: servers, CheckPort: 6443, CheckDelay: 5 * time.Second,
		CheckTimeout: 5 * time.Second, CheckRetries: 3, ConnectTimeout: 5 * time.Second}
}

// apply changes the configuration and applies it. The frontends are copied, for
// those that were applied are the balancer's.
func (r *region) apply(change func(*hardware.Balancer)) {
	r.conf.Frontends = append([]hardware.Frontend(nil), r.conf.Frontends...)
	change(&r.conf)
	r.set.Apply(r.conf)
}

// node serves a port of a host with a function for each connection.
func (r *region) node(host netip.Addr, port int, serve func(net.Conn)) net.Listener {
	r.t.Helper()
	r.fabric.HostUp(network, host)
	l, err := r.fabric.Listen(network, host, port)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l
}

// named greets with a name, then sends back what comes.
func named(name string) func(net.Conn) {
	return func(c net.Conn) {
		defer c.Close()
		if _, err := io.WriteString(c, name); err == nil {
			_, _ = io.Copy(c, c)
		}
	}
}

// dial connects to the load balancer from inside the private network.
func (r *region) dial(port int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	c, err := r.fabric.Dial(ctx, network, client, leg.Address, port)
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(patient))
		r.t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// ask connects and reads the one-letter name of the server that it is led to.
func (r *region) ask() (net.Conn, string, error) {
	c, err := r.dial(6443)
	if err != nil {
		return nil, "", err
	}
	name := make([]byte, 1)
	_, err = io.ReadFull(c, name)
	return c, string(name), err
}

func (r *region) mustAsk() (net.Conn, string) {
	r.t.Helper()
	c, name, err := r.ask()
	if err != nil {
		r.t.Fatal(err)
	}
	return c, name
}

// await polls until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.After(patient)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("never: %s", what)
		}
	}
}

// awaitHealthy waits until as many servers of the frontend's pool are healthy.
func (r *region) awaitHealthy(n int) {
	r.t.Helper()
	await(r.t, strconv.Itoa(n)+" healthy servers", func() bool { return len(r.healthy()) == n })
}

func (r *region) healthy() []netip.Addr {
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	f := r.set.all[r.conf.ID].frontends[place{network, leg.Address, 6443}]
	return f.pool.healthy()
}

// roundTrip sends a word and wants it back.
func roundTrip(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.WriteString(c, "word"); err != nil {
		t.Fatal(err)
	}
	back := make([]byte, 4)
	if _, err := io.ReadFull(c, back); err != nil || string(back) != "word" {
		t.Fatalf("got %q, %v", back, err)
	}
}

func wantCut(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection goes on: %d bytes, %v", n, err)
	}
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func freePort(t *testing.T, address string) int {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
