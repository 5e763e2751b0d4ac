package door

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// ErrNotAccepted says that the bastion knows none of the SSH keys that were offered.
var ErrNotAccepted = errors.New("no key was accepted")

var errLost = errors.New("the connection to the bastion was lost")

// link is one SSH connection to the bastion.
type link struct {
	client *ssh.Client
	wire   *wire
	dead   chan struct{} // closed once the connection is gone
	once   sync.Once
	open   atomic.Int64 // channels
}

// wire remembers that the TCP connection failed: a channel that ends because of
// that must not look like one that ended properly.
type wire struct {
	net.Conn
	failed atomic.Bool
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil {
		w.failed.Store(true)
	}
	return n, err
}

// connect dials, checks the host key and authenticates, all before ctx ends.
func connect(ctx context.Context, cfg Config, hosts *hostKeys) (*link, error) {
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "tcp", cfg.Gateway.String())
	if err != nil {
		return nil, err
	}
	// The handshake knows no context; closing the socket under it ends it.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	w := &wire{Conn: raw}
	client, err := handshake(w, cfg, hosts)
	if err != nil {
		_ = raw.Close()
		if ctx.Err() != nil && !permanent(err) {
			err = fmt.Errorf("the SSH handshake did not end: %w", context.Cause(ctx))
		}
		return nil, err
	}
	l := &link{client: client, wire: w, dead: make(chan struct{})}
	go func() {
		_ = client.Wait()
		l.bury()
	}()
	return l, nil
}

func handshake(w *wire, cfg Config, hosts *hostKeys) (*ssh.Client, error) {
	algorithms, err := hosts.algorithms(cfg.Gateway)
	if err != nil {
		return nil, err
	}
	conn, channels, requests, err := ssh.NewClientConn(w, cfg.Gateway.String(), &ssh.ClientConfig{
		User:              cfg.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeysCallback(cfg.Signers)},
		HostKeyCallback:   func(_ string, _ net.Addr, key ssh.PublicKey) error { return hosts.check(cfg.Gateway, key) },
		HostKeyAlgorithms: algorithms,
		ClientVersion:     "SSH-2.0-bastide",
	})
	if err != nil {
		return nil, notAccepted(err)
	}
	return ssh.NewClient(conn, channels, requests), nil
}

// notAccepted marks an authentication failure. The library has no type for it
// on the client's side; servers that limit the tries disconnect instead.
func notAccepted(err error) error {
	for _, text := range []string{"unable to authenticate", "oo many authentication failures"} {
		if strings.Contains(err.Error(), text) {
			return fmt.Errorf("%w: %w", ErrNotAccepted, err)
		}
	}
	return err
}

// dial opens a channel to a private address. The library's own call knows no
// context, so a channel that comes too late is closed when it comes.
func (l *link) dial(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
	l.open.Add(1)
	type result struct {
		channel  ssh.Channel
		requests <-chan *ssh.Request
		err      error
	}
	opened := make(chan result, 1)
	go func() {
		channel, requests, err := l.client.OpenChannel("direct-tcpip", ssh.Marshal(struct {
			Host       string
			Port       uint32
			Originator string
			From       uint32
		}{target.Addr().String(), uint32(target.Port()), "127.0.0.1", 0}))
		opened <- result{channel, requests, err}
	}()
	select {
	case r := <-opened:
		if r.err == nil {
			go ssh.DiscardRequests(r.requests)
			return &conn{Channel: r.channel, link: l, remote: net.TCPAddrFromAddrPort(target)}, nil
		}
		l.open.Add(-1)
		if refused := (*ssh.OpenChannelError)(nil); errors.As(r.err, &refused) {
			return nil, r.err
		}
		l.close()
		return nil, errLost
	case <-ctx.Done():
		go func() {
			defer l.open.Add(-1)
			if r := <-opened; r.err == nil {
				go ssh.DiscardRequests(r.requests)
				_ = r.channel.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// keepAlive asks the bastion for signs of life until the connection ends, and
// ends it when one does not come in time. Any answer is one, a refusal too.
func (l *link) keepAlive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-l.dead:
			return
		case <-tick.C:
		}
		answered := make(chan error, 1)
		go func() {
			_, _, err := l.client.SendRequest("keepalive@bastide", true, nil)
			answered <- err
		}()
		late := time.NewTimer(every)
		select {
		case err := <-answered:
			if err != nil {
				l.close()
			}
		case <-late.C:
			l.close()
		case <-l.dead:
		}
		late.Stop()
	}
}

func (l *link) load() int64 { return l.open.Load() }

func (l *link) isDead() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

func (l *link) bury() { l.once.Do(func() { close(l.dead) }) }

// close ends the connection and with it every channel.
func (l *link) close() {
	l.bury()
	_ = l.client.Close()
}
