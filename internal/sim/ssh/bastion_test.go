package ssh

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"bastide/internal/sim/fabric"
	"bastide/internal/sim/hardware"
)

const (
	network = "pn-1"
	patient = 2 * time.Minute // ends a test that would hang
)

var (
	legAddress  = netip.MustParseAddr("172.16.0.2")
	nodeAddress = netip.MustParseAddr("172.16.0.11")
)

// region is gateways with one of them applied.
type region struct {
	t        *testing.T
	fabric   *fabric.Fabric
	gateways *Gateways
	conf     hardware.Gateway
	key      xssh.Signer
}

// newRegion brings up a gateway on an address of its own that admits key.
func newRegion(t *testing.T, address string, o Options) *region {
	t.Helper()
	r := &region{t: t, fabric: fabric.New(), key: newKey(t)}
	o.Fabric = r.fabric
	r.gateways = New(o)
	t.Cleanup(func() { _ = r.gateways.Close() })
	r.conf = hardware.Gateway{
		ID: "gw-1", PublicIP: netip.MustParseAddr(address), Attachments: []hardware.Attachment{{NetworkID: network, Address: legAddress}},
		BastionEnabled: true, BastionPort: freePort(t, address),
		BastionAllowed: []netip.Prefix{netip.MustParsePrefix("198.51.100.7/32")}, AuthorizedKeys: []string{line(r.key)},
	}
	r.gateways.Apply(r.conf)
	return r
}

// apply changes the configuration and applies it.
func (r *region) apply(change func(*hardware.Gateway)) {
	r.conf.AuthorizedKeys = slices.Clone(r.conf.AuthorizedKeys)
	change(&r.conf)
	r.gateways.Apply(r.conf)
}

func (r *region) address() string {
	return netip.AddrPortFrom(r.conf.PublicIP, uint16(r.conf.BastionPort)).String()
}

// login connects as a user with keys, tried in order.
func (r *region) login(user string, keys ...xssh.Signer) (*xssh.Client, error) {
	return r.loginWith(&xssh.ClientConfig{User: user, Auth: []xssh.AuthMethod{xssh.PublicKeys(keys...)},
		HostKeyCallback: xssh.InsecureIgnoreHostKey()})
}

func (r *region) loginWith(cfg *xssh.ClientConfig) (*xssh.Client, error) {
	raw, err := net.DialTimeout("tcp", r.address(), patient)
	if err != nil {
		return nil, err
	}
	_ = raw.SetDeadline(time.Now().Add(patient))
	conn, channels, requests, err := xssh.NewClientConn(raw, r.address(), cfg)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	c := xssh.NewClient(conn, channels, requests)
	r.t.Cleanup(func() { _ = c.Close() })
	return c, nil
}

func (r *region) mustLogin() *xssh.Client {
	r.t.Helper()
	c, err := r.login("bastion", r.key)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// node serves a port of the node's address with a function for each connection.
func (r *region) node(port int, serve func(net.Conn)) {
	r.t.Helper()
	r.fabric.HostUp(network, nodeAddress)
	l, err := r.fabric.Listen(network, nodeAddress, port)
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
}

// answer reads to the end of what the client sends and sends it back in capitals.
func answer(c net.Conn) {
	defer c.Close()
	said, _ := io.ReadAll(c)
	_, _ = c.Write(bytes.ToUpper(said))
}

// echo sends back what comes, at once.
func echo(c net.Conn) {
	defer c.Close()
	_, _ = io.Copy(c, c)
}

func newKey(t *testing.T) xssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := xssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func line(s xssh.Signer) string { return string(xssh.MarshalAuthorizedKey(s.PublicKey())) + "\n" }

func freePort(t *testing.T, address string) int {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// roundTrip sends a word and wants it back.
func roundTrip(t *testing.T, c io.ReadWriter) {
	t.Helper()
	if _, err := c.Write([]byte("word")); err != nil {
		t.Fatal(err)
	}
	back := make([]byte, 4)
	if _, err := io.ReadFull(c, back); err != nil || string(back) != "word" {
		t.Fatalf("got %q, %v", back, err)
	}
}

// awaitEnd wants a connection to be closed from the other side.
func awaitEnd(t *testing.T, wait func() error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- wait() }()
	select {
	case <-ended:
	case <-time.After(patient):
		t.Fatal("the connection is still open")
	}
}

func channelError(t *testing.T, c *xssh.Client, target string) *xssh.OpenChannelError {
	t.Helper()
	conn, err := c.Dial("tcp", target)
	if err == nil {
		_ = conn.Close()
		t.Fatalf("%s was reached", target)
	}
	var refused *xssh.OpenChannelError
	if !errors.As(err, &refused) {
		t.Fatalf("%s: %v is no refusal of a channel", target, err)
	}
	return refused
}

func TestForwardsIntoThePrivateNetwork(t *testing.T) {
	r := newRegion(t, "127.61.0.1", Options{})
	r.node(6443, answer)
	conn, err := r.mustLogin().Dial("tcp", "172.16.0.11:6443")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	// The node answers only after the end of what it reads: the half-close has
	// to arrive, and must not end the way back.
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "HELLO" {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestNodeEndsItsDirectionFirst(t *testing.T) {
	r := newRegion(t, "127.61.0.2", Options{})
	heard := make(chan string, 1)
	r.node(6443, func(c net.Conn) {
		defer c.Close()
		_, _ = c.Write([]byte("greeting"))
		_ = c.(*net.TCPConn).CloseWrite()
		said, _ := io.ReadAll(c)
		heard <- string(said)
	})
	conn, err := r.mustLogin().Dial("tcp", "172.16.0.11:6443")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "greeting" {
		t.Fatalf("got %q, %v", got, err)
	}
	if _, err := conn.Write([]byte("late words")); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	select {
	case said := <-heard:
		if said != "late words" {
			t.Fatalf("the node heard %q", said)
		}
	case <-time.After(patient):
		t.Fatal("the node never saw the end")
	}
}

func TestClosedChannelEndsTheConnectionToTheNode(t *testing.T) {
	r := newRegion(t, "127.61.0.3", Options{})
	ended := make(chan struct{})
	r.node(6443, func(c net.Conn) {
		// A server that writes for ever and never reads learns of the end only by
		// the connection's being closed, not by a half-close.
		defer close(ended)
		defer c.Close()
		for {
			if _, err := c.Write(make([]byte, 1024)); err != nil {
				return
			}
		}
	})
	conn, err := r.mustLogin().Dial("tcp", "172.16.0.11:6443")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	select {
	case <-ended:
	case <-time.After(patient):
		t.Fatal("the node still writes")
	}
}

func TestWhyAChannelIsRefused(t *testing.T) {
	r := newRegion(t, "127.61.0.4", Options{})
	r.fabric.HostUp(network, nodeAddress)
	c := r.mustLogin()
	for _, tc := range []struct {
		target string
		reason xssh.RejectionReason
		text   string
	}{
		{"172.16.0.11:6443", xssh.ConnectionFailed, "Connection refused"},
		{"172.16.64.11:6443", xssh.Prohibited, "not attached"},
		{"10.0.0.1:22", xssh.Prohibited, "not attached"},
		{"127.0.0.1:22", xssh.Prohibited, "not attached"},
		{"[fd00::1]:22", xssh.Prohibited, "not attached"},
		{"169.254.42.42:80", xssh.Prohibited, "not attached"},
		{"node.internal:22", xssh.ConnectionFailed, "Name or service not known"},
	} {
		got := channelError(t, c, tc.target)
		if got.Reason != tc.reason || !strings.Contains(got.Message, tc.text) {
			t.Errorf("%s: %v %q, want %v %q", tc.target, got.Reason, got.Message, tc.reason, tc.text)
		}
	}
}

func TestLostHostHasNoRoute(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as the fabric takes to give a host up")
	}
	t.Parallel()
	r := newRegion(t, "127.61.0.5", Options{})
	got := channelError(t, r.mustLogin(), "172.16.0.99:6443")
	if got.Reason != xssh.ConnectionFailed || got.Message != "No route to host" {
		t.Fatalf("%v %q", got.Reason, got.Message)
	}
}

func TestNothingButForwarding(t *testing.T) {
	r := newRegion(t, "127.61.0.6", Options{})
	c := r.mustLogin()
	var refused *xssh.OpenChannelError
	if _, err := c.NewSession(); !errors.As(err, &refused) || refused.Reason != xssh.Prohibited {
		t.Errorf("a session: %v", err)
	}
	if _, _, err := c.OpenChannel("x11", nil); !errors.As(err, &refused) || refused.Reason != xssh.UnknownChannelType {
		t.Errorf("an x11 channel: %v", err)
	}
	if _, _, err := c.OpenChannel("direct-tcpip", []byte{1}); !errors.As(err, &refused) || refused.Reason != xssh.ConnectionFailed {
		t.Errorf("a malformed request: %v", err)
	}
	if l, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		_ = l.Close()
		t.Error("the bastion listens for its client")
	}
	// As OpenSSH's server does, it answers what it does not know with no: the
	// client only wants an answer.
	if ok, _, err := c.SendRequest("keepalive@openssh.com", true, nil); err != nil || ok {
		t.Errorf("keepalive: %v, %v", ok, err)
	}
}

func TestFollowsTheLegIntoItsOwnNetwork(t *testing.T) {
	r := newRegion(t, "127.61.0.7", Options{})
	r.apply(func(g *hardware.Gateway) {
		g.Attachments = []hardware.Attachment{{NetworkID: "other", Address: netip.MustParseAddr("172.16.4.2")}, {NetworkID: network, Address: legAddress}}
	})
	r.node(6443, echo)
	conn, err := r.mustLogin().Dial("tcp", "172.16.0.11:6443")
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, conn)
}

func TestLegOfAnAddress(t *testing.T) {
	near, far := hardware.Attachment{NetworkID: "near", Address: legAddress}, hardware.Attachment{NetworkID: "far", Address: netip.MustParseAddr("172.16.4.2")}
	r := &rules{legs: []hardware.Attachment{near, far}}
	for to, want := range map[string]string{"172.16.3.254": "near", "172.16.4.1": "far", "172.16.7.9": "far", "172.16.16.1": "", "fd00::2": ""} {
		leg, ok := r.leg(netip.MustParseAddr(to))
		if ok != (want != "") || (ok && leg.NetworkID != want) {
			t.Errorf("%s: %s, %v, want %q", to, leg.NetworkID, ok, want)
		}
	}
	if _, ok := (&rules{}).leg(nodeAddress); ok {
		t.Error("a gateway without legs reaches an address")
	}
}

func TestDialsFromItsOwnAddress(t *testing.T) {
	r := newRegion(t, "127.61.0.8", Options{})
	r.node(6443, echo)
	conn, err := r.mustLogin().Dial("tcp", "172.16.0.11:6443")
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, conn)
	r.fabric.Cut(network, legAddress, nodeAddress)
	awaitEnd(t, func() error { _, err := conn.Read(make([]byte, 1)); return err })
}

func TestGatewayAnswersOnItsLeg(t *testing.T) {
	r := newRegion(t, "127.61.0.9", Options{})
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	_, err := r.fabric.Dial(ctx, network, nodeAddress, legAddress, 22)
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Fatalf("attached: %v", err)
	}
	r.apply(func(g *hardware.Gateway) { g.Attachments = nil })
	ctx, cancel = context.WithCancel(context.Background())
	cancel() // a host that is down is found by not refusing; there is nothing to wait for
	if _, err = r.fabric.Dial(ctx, network, nodeAddress, legAddress, 22); !errors.Is(err, context.Canceled) {
		t.Fatalf("detached: %v", err)
	}
}
