package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"bastide/internal/sim/hardware"
)

func TestApplyingTheSameChangesNothing(t *testing.T) {
	r := newRegion(t, nodes[0])
	r.node(nodes[0], 6443, named("a"))
	r.set.Apply(r.conf)
	r.awaitHealthy(1)
	c, _ := r.mustAsk()
	for range 3 {
		r.set.Apply(r.conf)
		roundTrip(t, c)
		r.mustAsk() // at once: what is known of the servers is kept
	}
}

func TestChangedServersAreForNewConnections(t *testing.T) {
	r := newRegion(t, nodes[0])
	r.node(nodes[0], 6443, named("a"))
	r.node(nodes[1], 6443, named("b"))
	r.set.Apply(r.conf)
	r.awaitHealthy(1)
	first, _ := r.mustAsk()
	r.apply(func(b *hardware.Balancer) { b.Frontends[0].Backend = backend(nodes[0], nodes[1]) })
	if _, _, err := r.ask(); err != nil {
		t.Fatalf("the server that stays is not known to be healthy any more: %v", err)
	}
	r.awaitHealthy(2)
	r.apply(func(b *hardware.Balancer) { b.Frontends[0].Backend = backend(nodes[1]) })
	for range 2 {
		if _, name := r.mustAsk(); name != "b" {
			t.Fatalf("led to %s, which is no server any more", name)
		}
	}
	roundTrip(t, first)
}

func TestChangedCheckKeepsServersUp(t *testing.T) {
	r := newRegion(t, nodes[0])
	r.node(nodes[0], 6443, named("a"))
	r.set.Apply(r.conf)
	r.awaitHealthy(1)
	r.apply(func(b *hardware.Balancer) { b.Frontends[0].Backend.CheckPort = 8080 })
	r.mustAsk()
	r.awaitHealthy(0) // nothing listens on 8080
}

func TestRemovedFrontendLetsItsConnectionsEnd(t *testing.T) {
	r := newRegion(t, nodes[0])
	r.node(nodes[0], 6443, named("a"))
	r.set.Apply(r.conf)
	r.awaitHealthy(1)
	c, _ := r.mustAsk()
	r.apply(func(b *hardware.Balancer) { b.Frontends = nil })
	if _, err := r.dial(6443); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the port still answers: %v", err)
	}
	roundTrip(t, c)
	r.set.Remove(r.conf.ID)
	wantCut(t, c)
}

func TestRemovedBalancerIsOffTheNetwork(t *testing.T) {
	for name, end := range map[string]func(*region){
		"removed":  func(r *region) { r.set.Remove(r.conf.ID) },
		"detached": func(r *region) { r.apply(func(b *hardware.Balancer) { b.Attachments = nil }) },
		"closed":   func(r *region) { _ = r.set.Close(); r.set.Apply(r.conf) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegion(t, nodes[0])
			r.node(nodes[0], 6443, named("a"))
			r.set.Apply(r.conf)
			r.awaitHealthy(1)
			c, _ := r.mustAsk()
			if _, err := r.dial(1); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatalf("attached, the address answers with %v", err)
			}
			end(r)
			wantCut(t, c)
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // a host that is down is found by not refusing; there is nothing to wait for
			if _, err := r.fabric.Dial(ctx, network, client, leg.Address, 1); !errors.Is(err, context.Canceled) {
				t.Fatalf("the address still answers: %v", err)
			}
		})
	}
}

func TestPublicAddress(t *testing.T) {
	r := newRegion(t, nodes[0])
	r.node(nodes[0], 6443, named("a"))
	public := addr("127.63.0.1")
	r.conf.PublicIPs = []netip.Addr{public, addr("0.0.0.0")} // the second is not of this host
	r.conf.Frontends[0].Port = freePort(t, public.String())
	r.conf.Frontends = append(r.conf.Frontends, hardware.Frontend{Port: 6443, Backend: r.conf.Frontends[0].Backend})
	r.set.Apply(r.conf)
	r.awaitHealthy(1)
	at := netip.AddrPortFrom(public, uint16(r.conf.Frontends[0].Port)).String()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patient))
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	roundTrip(t, c)
	elsewhere := netip.AddrPortFrom(addr("127.63.0.2"), uint16(r.conf.Frontends[0].Port)).String()
	if _, err := net.Dial("tcp", elsewhere); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("an address that is not the load balancer's: %v", err)
	}
	r.apply(func(b *hardware.Balancer) { b.PublicIPs = nil })
	wantCut(t, c)
	if _, err := net.Dial("tcp", at); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the public address still answers: %v", err)
	}
}

func TestAccessList(t *testing.T) {
	private, office := netip.MustParsePrefix("172.16.0.0/22"), netip.MustParsePrefix("198.51.100.0/24")
	for _, tc := range []struct {
		name  string
		conf  hardware.Frontend
		from  netip.Addr
		admit bool
	}{
		{"no list", hardware.Frontend{Allow: []netip.Prefix{office}}, leg.Address, true},
		{"inside", hardware.Frontend{AllowOnly: true, Allow: []netip.Prefix{office, private}}, leg.Address, true},
		{"outside", hardware.Frontend{AllowOnly: true, Allow: []netip.Prefix{office}}, leg.Address, false},
		{"empty", hardware.Frontend{AllowOnly: true}, leg.Address, false},
		{"unnamed client", hardware.Frontend{AllowOnly: true, Allow: []netip.Prefix{office}}, netip.Addr{}, true},
		{"unnamed client, empty", hardware.Frontend{AllowOnly: true}, netip.Addr{}, false},
		{"unnamed client, invalid", hardware.Frontend{AllowOnly: true, Allow: make([]netip.Prefix, 1)}, netip.Addr{}, false},
	} {
		if got := admitted(tc.conf, tc.from); got != tc.admit {
			t.Errorf("%s: admitted is %v", tc.name, got)
		}
	}
}

func TestAccessListIsAskedForNewConnections(t *testing.T) {
	r := newRegion(t, nodes[0])
	r.node(nodes[0], 6443, named("a"))
	r.set.Apply(r.conf)
	r.awaitHealthy(1)
	before, _ := r.mustAsk()
	r.apply(func(b *hardware.Balancer) {
		b.Frontends[0].AllowOnly, b.Frontends[0].Allow = true, []netip.Prefix{netip.MustParsePrefix("198.51.100.7/32")}
	})
	if _, _, err := r.ask(); !isReset(err) {
		t.Errorf("the private network is not on the list: %v", err)
	}
	roundTrip(t, before)
	r.apply(func(b *hardware.Balancer) {
		b.Frontends[0].Allow = []netip.Prefix{netip.MustParsePrefix("172.16.0.0/22")}
	})
	r.mustAsk()
}

func TestLegOfAnAddress(t *testing.T) {
	near, far := leg, hardware.Attachment{NetworkID: "far", Address: addr("172.16.4.5")}
	for to, want := range map[string]string{"172.16.3.254": network, "172.16.4.1": "far", "172.16.7.9": "far"} {
		if got, ok := closest([]hardware.Attachment{near, far}, addr(to)); !ok || got.NetworkID != want {
			t.Errorf("%s: %s, %v, want %s", to, got.NetworkID, ok, want)
		}
	}
	for _, legs := range [][]hardware.Attachment{nil, {{NetworkID: "v6", Address: addr("fd00::1")}}, {{}}} {
		if got, ok := closest(legs, nodes[0]); ok {
			t.Errorf("%v is a leg for an IPv4 address", got)
		}
	}
}
