package door

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

var privateNetwork = netip.MustParsePrefix("172.16.0.0/22")

// bastion is a real SSH server that behaves as a gateway's: one user, keys
// only, and nothing but direct-tcpip.
type bastion struct {
	t        *testing.T
	listener net.Listener
	signer   ssh.Signer

	mu       sync.Mutex
	allowed  map[string]bool
	targets  map[string]string // private host:port -> loopback address, or one of the words below
	conns    map[net.Conn]bool
	mute     bool // keepalives and channels get no answer
	accepted int
	tries    chan struct{} // one for each refused key
	wg       sync.WaitGroup
}

// What a target may do instead of leading somewhere.
const (
	refuses   = "Connection refused"
	noRoute   = "No route to host"
	timesOut  = "Connection timed out"
	forbidden = "prohibited"
	hangs     = "hangs"
)

func newKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func startBastion(t *testing.T, allowed ...ssh.Signer) *bastion {
	t.Helper()
	b := &bastion{t: t, signer: newKey(t), allowed: map[string]bool{}, targets: map[string]string{}, conns: map[net.Conn]bool{},
		tries: make(chan struct{}, 100)}
	for _, s := range allowed {
		b.allowed[string(s.PublicKey().Marshal())] = true
	}
	b.listen("127.0.0.1:0")
	t.Cleanup(func() { b.stop(); b.wg.Wait() })
	return b
}

func (b *bastion) listen(address string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	b.listener = l
	b.mu.Unlock()
	b.wg.Add(1)
	go func() {
		defer b.wg.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.mu.Lock()
			b.conns[c] = true
			b.accepted++
			b.mu.Unlock()
			b.wg.Add(1)
			go b.serve(c)
		}
	}()
}

func (b *bastion) addr() netip.AddrPort {
	b.mu.Lock()
	defer b.mu.Unlock()
	return netip.MustParseAddrPort(b.listener.Addr().String())
}

// stop ends the listener and every connection; listen begins again.
func (b *bastion) stop() {
	b.mu.Lock()
	_ = b.listener.Close()
	b.mu.Unlock()
	b.drop()
}

func (b *bastion) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		_ = c.Close()
	}
}

func (b *bastion) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accepted
}

func (b *bastion) set(change func(*bastion)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

func (b *bastion) serve(c net.Conn) {
	defer b.wg.Done()
	defer func() {
		_ = c.Close()
		b.set(func(b *bastion) { delete(b.conns, c) })
	}()
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if meta.User() == User && b.allowed[string(key.Marshal())] {
			return nil, nil
		}
		select {
		case b.tries <- struct{}{}:
		default:
		}
		return nil, errors.New("unknown key")
	}}
	b.mu.Lock()
	cfg.AddHostKey(b.signer)
	b.mu.Unlock()
	conn, channels, requests, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		return
	}
	b.wg.Add(1)
	go func() {
		defer b.wg.Done()
		for r := range requests {
			if !b.isMute() && r.WantReply {
				_ = r.Reply(false, nil)
			}
		}
	}()
	for ch := range channels {
		b.wg.Add(1)
		go b.forward(ch)
	}
	_ = conn.Wait()
}

func (b *bastion) isMute() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mute
}

func (b *bastion) forward(ch ssh.NewChannel) {
	defer b.wg.Done()
	var want struct {
		Host string
		Port uint32
		From string
		FP   uint32
	}
	if ch.ChannelType() != "direct-tcpip" || ssh.Unmarshal(ch.ExtraData(), &want) != nil {
		_ = ch.Reject(ssh.Prohibited, "open failed")
		return
	}
	b.mu.Lock()
	target, ok := b.targets[net.JoinHostPort(want.Host, fmt.Sprint(want.Port))]
	mute := b.mute
	b.mu.Unlock()
	switch {
	case mute || target == hangs:
		return
	case !ok:
		_ = ch.Reject(ssh.ConnectionFailed, noRoute)
		return
	case target == forbidden:
		_ = ch.Reject(ssh.Prohibited, "open failed")
		return
	case !strings.Contains(target, ":"):
		_ = ch.Reject(ssh.ConnectionFailed, target)
		return
	}
	far, err := net.Dial("tcp", target)
	if err != nil {
		_ = ch.Reject(ssh.ConnectionFailed, refuses)
		return
	}
	near, requests, err := ch.Accept()
	if err != nil {
		_ = far.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(far, near)
		_ = far.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(near, far)
	_ = near.CloseWrite()
	<-done
	_ = near.Close()
	_ = far.Close()
}

// echo is a service that answers, after the request has ended, with all of it.
// It only works where half-closes are passed on.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var all bytes.Buffer
				_, _ = io.Copy(&all, c)
				_, _ = io.Copy(c, &all)
			}()
		}
	}()
	return l.Addr().String()
}

// parrot answers every byte at once and keeps the connection open.
func parrot(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

// notices collects what a person was told.
type notices struct {
	mu    sync.Mutex
	texts []string
}

func (n *notices) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.texts = append(n.texts, text)
}

func (n *notices) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.texts, "\n")
}

func config(t *testing.T, b *bastion, keys ...ssh.Signer) Config {
	t.Helper()
	return Config{
		Gateway: b.addr(), GatewayID: "11111111-2222-4333-8444-555555555555", Network: privateNetwork,
		KnownHosts: filepath.Join(t.TempDir(), ".bastide", "known_hosts"),
		Signers:    func() ([]ssh.Signer, error) { return keys, nil },
		KeepAlive:  time.Minute,
	}
}

func open(t *testing.T, cfg Config) *Door {
	t.Helper()
	d, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// roundTrip sends text, half-closes, and wants it back.
func roundTrip(c net.Conn, text string) error {
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return err
	}
	got, err := io.ReadAll(c)
	if err != nil {
		return err
	}
	if string(got) != text {
		return fmt.Errorf("got %d bytes back, want the %d sent", len(got), len(text))
	}
	return nil
}

func dial(t *testing.T, d *Door, address string) (net.Conn, error) {
	t.Helper()
	c, err := d.DialContext(t.Context(), "tcp", address)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func timeout(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
