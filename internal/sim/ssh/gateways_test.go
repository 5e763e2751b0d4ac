package ssh

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"bastide/internal/sim/hardware"
)

func TestWhoMayLogIn(t *testing.T) {
	r := newRegion(t, "127.62.0.1", Options{})
	stranger := newKey(t)
	for _, tc := range []struct {
		name, user string
		keys       []xssh.Signer
		in         bool
	}{
		{"the key", "bastion", []xssh.Signer{r.key}, true},
		{"the key after others", "bastion", []xssh.Signer{stranger, r.key}, true},
		{"another key", "bastion", []xssh.Signer{stranger}, false},
		{"another user", "root", []xssh.Signer{r.key}, false},
		{"the key as the seventh", "bastion", []xssh.Signer{newKey(t), newKey(t), newKey(t), newKey(t), newKey(t), newKey(t), r.key}, false},
	} {
		if _, err := r.login(tc.user, tc.keys...); (err == nil) != tc.in {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	_, err := r.loginWith(&xssh.ClientConfig{User: "bastion", Auth: []xssh.AuthMethod{xssh.Password("")}, HostKeyCallback: xssh.InsecureIgnoreHostKey()})
	if err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("a password: %v", err)
	}
}

func TestKeysAreThoseLastPushed(t *testing.T) {
	r := newRegion(t, "127.62.0.2", Options{})
	old, next := r.mustLogin(), newKey(t)
	r.node(6443, echo)
	r.apply(func(g *hardware.Gateway) { g.AuthorizedKeys = []string{"no key at all", line(next)} })
	if _, err := r.login("bastion", r.key); err == nil {
		t.Error("a key that is gone still works")
	}
	if _, err := r.login("bastion", next); err != nil {
		t.Errorf("the new key: %v", err)
	}
	conn, err := old.Dial("tcp", "172.16.0.11:6443")
	if err != nil {
		t.Fatalf("a login before the change: %v", err)
	}
	roundTrip(t, conn)
}

func TestSourceAddress(t *testing.T) {
	allow := func(ranges ...string) (all []netip.Prefix) {
		for _, r := range ranges {
			all = append(all, netip.MustParsePrefix(r))
		}
		return all
	}
	for _, tc := range []struct {
		name, from, administrator string
		allowed                   []netip.Prefix
		in                        bool
	}{
		{"the administrator is inside the first range", "127.0.0.1", "", allow("198.51.100.7/32"), true},
		{"nobody is allowed", "127.0.0.1", "", nil, false},
		{"no range is valid", "127.0.0.1", "", make([]netip.Prefix, 1), false},
		{"inside", "127.0.0.1", "198.51.100.7", allow("203.0.113.0/24", "198.51.100.0/24"), true},
		{"outside", "127.0.0.1", "198.51.100.8", allow("198.51.100.7/32"), false},
		{"this host's own range does not help", "127.0.0.1", "198.51.100.8", allow("127.0.0.0/8"), false},
		{"the whole internet", "127.0.0.1", "198.51.100.8", allow("0.0.0.0/0"), true},
		{"a mapped address", "127.0.0.1", "::ffff:198.51.100.7", allow("198.51.100.7/32"), true},
		{"a client with an address of its own, outside", "127.51.0.9", "", allow("198.51.100.7/32"), false},
		{"a client with an address of its own, inside", "127.51.0.9", "198.51.100.7", allow("127.51.0.9/32"), true},
	} {
		var administrator netip.Addr
		if tc.administrator != "" {
			administrator = netip.MustParseAddr(tc.administrator)
		}
		from := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(tc.from), 40000))
		if got := (&rules{allowed: tc.allowed}).admits(from, administrator); got != tc.in {
			t.Errorf("%s: admitted is %v", tc.name, got)
		}
	}
}

func TestClientFromOutsideSeesNoServer(t *testing.T) {
	r := newRegion(t, "127.62.0.3", Options{ClientAddress: netip.MustParseAddr("203.0.113.9")})
	raw, err := net.Dial("tcp", r.address())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(patient))
	if got, err := io.ReadAll(raw); len(got) > 0 || (err != nil && !errors.Is(err, syscall.ECONNRESET)) {
		t.Fatalf("got %q, %v", got, err)
	}
	r.apply(func(g *hardware.Gateway) { g.BastionAllowed = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")} })
	r.mustLogin()
}

func TestNarrowerRangesAreForNewConnections(t *testing.T) {
	r := newRegion(t, "127.62.0.4", Options{ClientAddress: netip.MustParseAddr("198.51.100.7")})
	r.node(6443, echo)
	before := r.mustLogin()
	r.apply(func(g *hardware.Gateway) { g.BastionAllowed = []netip.Prefix{netip.MustParsePrefix("198.51.100.8/32")} })
	if _, err := r.login("bastion", r.key); err == nil {
		t.Error("a new connection from outside comes in")
	}
	conn, err := before.Dial("tcp", "172.16.0.11:6443")
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, conn)
}

func TestSwitchedOffBastionIsGone(t *testing.T) {
	r := newRegion(t, "127.62.0.5", Options{})
	for name, end := range map[string]func(){
		"off":     func() { r.apply(func(g *hardware.Gateway) { g.BastionEnabled = false }) },
		"removed": func() { r.gateways.Remove(r.conf.ID) },
	} {
		r.apply(func(g *hardware.Gateway) { g.BastionEnabled = true })
		c := r.mustLogin()
		end()
		awaitEnd(t, c.Wait)
		if _, err := net.Dial("tcp", r.address()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClientWithoutLoginDoesNotHoldTheBastionUp(t *testing.T) {
	r := newRegion(t, "127.62.0.6", Options{})
	raw, err := net.Dial("tcp", r.address())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(patient))
	if _, err := io.ReadFull(raw, make([]byte, 8)); err != nil { // the server's name: it waits for ours
		t.Fatal(err)
	}
	awaitEnd(t, func() error { return r.gateways.Close() })
	r.gateways.Apply(r.conf)
	if _, err := net.Dial("tcp", r.address()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a gateway came up in a region that is closed: %v", err)
	}
}

func TestMovesItsPortAndKeepsItsClients(t *testing.T) {
	r := newRegion(t, "127.62.0.7", Options{})
	r.node(6443, echo)
	before, old := r.mustLogin(), r.address()
	r.apply(func(g *hardware.Gateway) { g.BastionPort = freePort(t, "127.62.0.7") })
	if _, err := net.Dial("tcp", old); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the old port: %v", err)
	}
	r.mustLogin()
	conn, err := before.Dial("tcp", "172.16.0.11:6443")
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, conn)
}

func TestPortInUseIsTakenOnceItIsFree(t *testing.T) {
	r := newRegion(t, "127.62.0.8", Options{})
	squatter, err := net.Listen("tcp", "127.62.0.8:0")
	if err != nil {
		t.Fatal(err)
	}
	r.apply(func(g *hardware.Gateway) { g.BastionPort = squatter.Addr().(*net.TCPAddr).Port })
	_ = squatter.Close()
	if _, err := r.login("bastion", r.key); err == nil {
		t.Fatal("logged in on a port that another program had")
	}
	r.gateways.Apply(r.conf)
	r.mustLogin()
}

func TestApplyingTheSameChangesNothing(t *testing.T) {
	r := newRegion(t, "127.62.0.9", Options{})
	r.node(6443, echo)
	conn, err := r.mustLogin().Dial("tcp", "172.16.0.11:6443")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.gateways.Apply(r.conf)
		roundTrip(t, conn)
	}
}

func TestDetachingCutsWhatLeadsIntoTheNetwork(t *testing.T) {
	r := newRegion(t, "127.62.0.10", Options{})
	r.node(6443, echo)
	c := r.mustLogin()
	conn, err := c.Dial("tcp", "172.16.0.11:6443")
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, conn)
	r.apply(func(g *hardware.Gateway) { g.Attachments = nil })
	awaitEnd(t, func() error { _, err := conn.Read(make([]byte, 1)); return err })
	if got := channelError(t, c, "172.16.0.11:6443"); got.Reason != xssh.Prohibited {
		t.Errorf("%v %q", got.Reason, got.Message)
	}
}

func TestHostKeyIsTheGatewaysForGood(t *testing.T) {
	r := newRegion(t, "127.62.0.11", Options{})
	hostKey := func() (key []byte) {
		t.Helper()
		_, err := r.loginWith(&xssh.ClientConfig{User: "bastion", Auth: []xssh.AuthMethod{xssh.PublicKeys(r.key)},
			HostKeyCallback: func(_ string, _ net.Addr, k xssh.PublicKey) error {
				if k.Type() != xssh.KeyAlgoED25519 {
					t.Errorf("a host key of type %s", k.Type())
				}
				key = k.Marshal()
				return nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	first := hostKey()
	r.gateways.Remove(r.conf.ID)
	r.gateways.Apply(r.conf)
	if !bytes.Equal(first, hostKey()) {
		t.Error("the same gateway came back with another host key")
	}
	r.gateways.Remove(r.conf.ID)
	r.apply(func(g *hardware.Gateway) { g.ID = "gw-2" })
	if bytes.Equal(first, hostKey()) {
		t.Error("two gateways have one host key")
	}
}

func TestStaysOffAddressesOfOtherHosts(t *testing.T) {
	r := newRegion(t, "127.62.0.12", Options{})
	r.mustLogin()
	r.apply(func(g *hardware.Gateway) { g.PublicIP = netip.MustParseAddr("0.0.0.0") })
	if _, err := net.Dial("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.62.0.12"), uint16(r.conf.BastionPort)).String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the bastion listens: %v", err)
	}
}
