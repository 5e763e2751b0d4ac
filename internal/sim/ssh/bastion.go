package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"
)

// The one user of a bastion, and what OpenSSH's server allows by default.
const (
	userName     = "bastion"
	maxAuthTries = 6
	loginGrace   = 2 * time.Minute
)

// bastion is a gateway's SSH server from when it is switched on until it is
// switched off. Its port may change meanwhile; its address does not.
type bastion struct {
	gateway *gateway
	address netip.Addr
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil when the port could not be had
	port     int
	open     map[net.Conn]struct{}
	closed   bool
}

func newBastion(g *gateway, address netip.Addr) *bastion {
	b := &bastion{gateway: g, address: address, open: map[net.Conn]struct{}{}}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// listen moves to a port. Connections that came in through another one go on,
// as sessions outlive a restart of OpenSSH's server.
func (b *bastion) listen(port int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listener != nil && b.port == port {
		return nil
	}
	if b.listener != nil {
		_ = b.listener.Close()
		b.listener = nil
	}
	if port < 1 || port > 65535 {
		return fmt.Errorf("%d is no TCP port", port)
	}
	l, err := net.Listen("tcp", netip.AddrPortFrom(b.address, uint16(port)).String())
	if err != nil {
		return err
	}
	b.listener, b.port = l, port
	b.running.Go(func() { b.accept(l) })
	return nil
}

// close returns when nothing of the bastion is left.
func (b *bastion) close() {
	b.cancel()
	b.mu.Lock()
	b.closed = true
	if b.listener != nil {
		_ = b.listener.Close()
	}
	for c := range b.open {
		_ = c.Close()
	}
	b.mu.Unlock()
	b.running.Wait()
}

func (b *bastion) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Such as no file descriptors left: a server that stops listening over
			// that would be gone for good.
			b.gateway.log.Error("bastion cannot accept", "err", err)
			select {
			case <-b.ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
				continue
			}
		}
		b.running.Go(func() { b.serve(c) })
	}
}

func (b *bastion) track(c net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.open[c] = struct{}{}
	}
	return !b.closed
}

func (b *bastion) forget(c net.Conn) {
	_ = c.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, c)
}

// serve is one client, from its first packet to its last. A client from outside
// the allowed ranges gets nothing, not even the server's name: to it the port is
// not there.
func (b *bastion) serve(c net.Conn) {
	defer b.forget(c)
	if !b.track(c) {
		return
	}
	if !b.gateway.rules.Load().admits(c.RemoteAddr(), b.gateway.client) {
		b.gateway.log.Info("bastion turns a client away: its address is outside the allowed ranges", "from", c.RemoteAddr())
		return
	}
	_ = c.SetDeadline(time.Now().Add(loginGrace))
	conn, channels, requests, err := xssh.NewServerConn(c, b.config())
	if err != nil {
		b.gateway.log.Info("bastion login failed", "from", c.RemoteAddr(), "err", err)
		return
	}
	_ = c.SetDeadline(time.Time{})
	b.gateway.log.Info("bastion login", "from", c.RemoteAddr(), "key", conn.Permissions.Extensions[keyFingerprint])

	ctx, gone := context.WithCancel(b.ctx)
	defer gone()
	// All global requests are answered, and with no: to a keepalive that is as
	// good as yes and what OpenSSH's server says; to a request to listen it is meant.
	b.running.Go(func() { xssh.DiscardRequests(requests) })
	for asked := range channels {
		b.running.Go(func() { b.openChannel(ctx, asked) })
	}
}

const keyFingerprint = "key-fingerprint"

func (b *bastion) config() *xssh.ServerConfig {
	cfg := &xssh.ServerConfig{
		ServerVersion: "SSH-2.0-OpenSSH_9.2p1",
		MaxAuthTries:  maxAuthTries,
		PublicKeyCallback: func(who xssh.ConnMetadata, key xssh.PublicKey) (*xssh.Permissions, error) {
			// The keys are read at each attempt, so that one just pushed works at once.
			if who.User() != userName || !b.gateway.rules.Load().keys[string(key.Marshal())] {
				return nil, fmt.Errorf("user %q may not log in with %s", who.User(), xssh.FingerprintSHA256(key))
			}
			return &xssh.Permissions{Extensions: map[string]string{keyFingerprint: xssh.FingerprintSHA256(key)}}, nil
		},
	}
	cfg.AddHostKey(b.gateway.hostKey)
	return cfg
}
