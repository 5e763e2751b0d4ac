package balancer

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"

	"bastide/internal/sim/hardware"
)

func TestEndsOfOneDirectionPassBothWays(t *testing.T) {
	r := newRegion(t, nodes[0])
	r.node(nodes[0], 6443, func(c net.Conn) {
		defer c.Close()
		said, _ := io.ReadAll(c)
		_, _ = c.Write(bytes.ToUpper(said))
	})
	r.set.Apply(r.conf)
	r.awaitHealthy(1)
	c, err := r.dial(6443)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "hello")
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || string(got) != "HELLO" {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestServerEndsItsDirectionFirst(t *testing.T) {
	r := newRegion(t, nodes[0])
	heard := make(chan string, 100) // checks hear nothing, and are heard of too
	r.node(nodes[0], 6443, func(c net.Conn) {
		defer c.Close()
		_ = c.(*net.TCPConn).CloseWrite()
		said, _ := io.ReadAll(c)
		if len(said) > 0 {
			heard <- string(said)
		}
	})
	r.set.Apply(r.conf)
	r.awaitHealthy(1)
	c, err := r.dial(6443)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || len(got) > 0 {
		t.Fatalf("got %q, %v", got, err)
	}
	_, _ = io.WriteString(c, "late words")
	_ = c.Close()
	select {
	case said := <-heard:
		if said != "late words" {
			t.Fatalf("the server heard %q", said)
		}
	case <-time.After(patient):
		t.Fatal("the server never saw the end")
	}
}

func TestTakesTurnsAmongHealthyServers(t *testing.T) {
	r := newRegion(t, nodes...)
	r.node(nodes[0], 6443, named("a"))
	r.fabric.HostUp(network, nodes[1]) // up, but nothing listens
	r.node(nodes[2], 6443, named("c"))
	r.set.Apply(r.conf)
	r.awaitHealthy(2)
	var got []string
	for range 4 {
		_, name := r.mustAsk()
		got = append(got, name)
	}
	if !slices.Equal(got, []string{"a", "c", "a", "c"}) && !slices.Equal(got, []string{"c", "a", "c", "a"}) {
		t.Fatalf("led to %v", got)
	}
}

func TestWithoutHealthyServerAcceptsAndResets(t *testing.T) {
	r := newRegion(t, nodes[0])
	r.fabric.HostUp(network, nodes[0])
	r.set.Apply(r.conf)
	if _, _, err := r.ask(); !isReset(err) {
		t.Fatalf("no healthy server: %v", err)
	}
	r.apply(func(b *hardware.Balancer) { b.Frontends[0].Backend.Servers = nil })
	if _, _, err := r.ask(); !isReset(err) {
		t.Fatalf("no server: %v", err)
	}
}

func TestServerThatRefusesBeforeItsCheckFailsIsNotReplaced(t *testing.T) {
	r := newRegion(t, nodes[0], nodes[1])
	r.conf.Frontends[0].Backend.CheckPort = 8080 // healthy there, dead on 6443
	for _, n := range nodes[:2] {
		r.node(n, 8080, named("x"))
	}
	r.node(nodes[1], 6443, named("b"))
	r.set.Apply(r.conf)
	r.awaitHealthy(2)
	failed := 0
	for range 4 {
		if _, name, err := r.ask(); isReset(err) {
			failed++
		} else if name != "b" {
			t.Fatalf("%q, %v", name, err)
		}
	}
	if failed != 2 {
		t.Fatalf("%d of 4 connections failed, want those to the dead server", failed)
	}
}

func TestServerThatDiesResetsItsClients(t *testing.T) {
	r := newRegion(t, nodes[0])
	r.node(nodes[0], 6443, named("a"))
	r.set.Apply(r.conf)
	r.awaitHealthy(1)
	c, _ := r.mustAsk()
	r.fabric.HostDown(network, nodes[0])
	if _, err := c.Read(make([]byte, 1)); !isReset(err) {
		t.Fatalf("the client saw %v", err)
	}
}

// checked is a server whose HTTPS check a test answers by hand.
type checked struct {
	asked   chan string // the URI
	answers chan int    // the status
}

func (r *region) checkedNode(host netip.Addr) checked {
	k := checked{make(chan string), make(chan int)}
	ctx, cancel := context.WithCancel(context.Background())
	r.fabric.HostUp(network, host)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		select {
		case k.asked <- q.RequestURI:
		case <-ctx.Done():
			return
		}
		select {
		case status := <-k.answers:
			w.WriteHeader(status)
		case <-ctx.Done():
		}
	}))
	_ = s.Listener.Close()
	var err error
	if s.Listener, err = r.fabric.Listen(network, host, 8443); err != nil {
		r.t.Fatal(err)
	}
	s.StartTLS()
	r.t.Cleanup(func() { cancel(); _ = r.set.Close(); s.Close() })
	return k
}

// next waits for a check, by which time the one before has been judged.
func (k checked) next(t *testing.T) string {
	t.Helper()
	select {
	case uri := <-k.asked:
		return uri
	case <-time.After(patient):
		t.Fatal("no check comes")
		return ""
	}
}

func TestOneGoodCheckBringsUpAndRetriesBringDown(t *testing.T) {
	r := newRegion(t, nodes[0])
	b := &r.conf.Frontends[0].Backend
	b.CheckHTTPS, b.CheckPort, b.CheckURI, b.CheckCode = true, 8443, "/readyz?verbose", 200
	k := r.checkedNode(nodes[0])
	r.set.Apply(r.conf)
	judged := func(check int, up bool) {
		t.Helper()
		if got := len(r.healthy()) == 1; got != up {
			t.Fatalf("after check %d the server is up: %v", check, got)
		}
	}
	judged(0, false)
	up := false
	for i, step := range []struct {
		answer int
		up     bool // once it is judged
	}{
		{500, false},
		{200, true},
		{500, true}, {302, true}, {200, true}, // a good one starts the count anew
		{500, true}, {403, true}, {500, false},
		{500, false},
		{200, true},
	} {
		if uri := k.next(t); uri != "/readyz?verbose" {
			t.Fatalf("the check asks for %s", uri)
		}
		judged(i, up)
		k.answers <- step.answer
		up = step.up
	}
	k.next(t)
	judged(10, up)
}
