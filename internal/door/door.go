// Package door is the way into the estate's private network: SSH through the
// public gateway's bastion. Nothing listens for the world and nothing stays
// open: a Door is a few SSH connections that this process holds, and they end
// with it.
//
//	door.Open       connects, checks the gateway's host key, keeps alive, reconnects
//	Door.DialContext  reaches a private address and port
//	Door.Proxy        an HTTP CONNECT proxy on 127.0.0.1, for programs that were not made for this
//	Door.Run          one program with that proxy, a kubeconfig and a talosconfig
//	Sweep             removes what a killed run left behind
package door

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"bastide/internal/outcome"
)

// User is the account on every Scaleway gateway that may only forward.
const User = "bastion"

// What a Config leaves at zero.
const (
	defaultPatience  = 30 * time.Second
	defaultDial      = 20 * time.Second
	defaultKeepAlive = 15 * time.Second
)

// Config says which gateway to go through and how.
type Config struct {
	Gateway   netip.AddrPort // the bastion's public address and port
	GatewayID string         // Scaleway's ID of the gateway; its host key is remembered under it
	User      string         // User, when empty
	Network   netip.Prefix   // the estate's private network; nothing outside it is dialled
	// KnownHosts is the file that remembers host keys, ENV/.bastide/known_hosts.
	KnownHosts string
	// Signers gives the keys to offer, in order. It is asked at every
	// connection, because an agent may be unlocked or changed meanwhile.
	Signers func() ([]ssh.Signer, error)
	// Notice is told what a person should know: a first contact, a lost
	// connection. It may be nil, and is called from any goroutine.
	Notice func(string)

	// Patience is how long Open tries a bastion that does not answer; 30 s when 0.
	Patience time.Duration
	// Fresh says that the gateway was made or changed moments ago. It learns
	// the project's keys late then, so a key that it does not accept is tried
	// again while Patience lasts.
	Fresh bool
	// DialTimeout bounds every DialContext, reconnecting included; 20 s when 0.
	DialTimeout time.Duration
	// KeepAlive is the time between two signs of life asked of the bastion. One
	// that is not answered within the same time ends the connection; 15 s when 0.
	KeepAlive time.Duration
}

// Door is an open way into one private network. It is safe for concurrent use.
type Door struct {
	cfg   Config
	hosts *hostKeys
	ctx   context.Context // ends with Close and with the context given to Open
	shut  context.CancelCauseFunc
	wg    sync.WaitGroup

	mu         sync.Mutex
	links      []*link
	connecting *attempt
	lost       bool // a connection was lost and no other made since
}

var errClosed = errors.New("the door is closed")

// Open connects to the bastion. The door stays open until Close, or until ctx
// ends: a caller that lets a child program decide about signals passes a
// context that signals do not end.
func Open(ctx context.Context, cfg Config) (*Door, error) {
	if !cfg.Gateway.IsValid() || !cfg.Network.IsValid() || cfg.KnownHosts == "" || cfg.Signers == nil {
		return nil, fmt.Errorf("door: gateway, network, known hosts and signers are all needed")
	}
	cfg = withDefaults(cfg)
	d := &Door{cfg: cfg, hosts: &hostKeys{file: cfg.KnownHosts, id: cfg.GatewayID, notice: cfg.Notice}}
	d.ctx, d.shut = context.WithCancelCause(ctx)
	patience, cancel := context.WithTimeout(d.ctx, cfg.Patience)
	defer cancel()
	if _, err := d.link(patience, cfg.Fresh); err != nil {
		err = openError(cfg, err)
		_ = d.Close()
		return nil, err
	}
	context.AfterFunc(d.ctx, d.closeLinks)
	return d, nil
}

func withDefaults(cfg Config) Config {
	if cfg.User == "" {
		cfg.User = User
	}
	if cfg.Notice == nil {
		cfg.Notice = func(string) {}
	}
	for _, d := range []struct {
		at    *time.Duration
		value time.Duration
	}{{&cfg.Patience, defaultPatience}, {&cfg.DialTimeout, defaultDial}, {&cfg.KeepAlive, defaultKeepAlive}} {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	return cfg
}

// openError explains why the bastion did not let us in.
func openError(cfg Config, err error) error {
	var told *outcome.Error
	what := fmt.Sprintf("the bastion at %s did not open", cfg.Gateway)
	switch {
	case errors.As(err, &told):
		return err
	case errors.Is(err, ErrNotAccepted):
		return outcome.Refuse(what, "it accepts none of the SSH keys that were offered",
			"set BASTIDE_SSH_IDENTITY to the private half of a key in admin.sshKeys, or add it to the SSH agent").Because(err)
	case errors.Is(err, context.Canceled):
		return err
	}
	return outcome.CannotTell(what, err.Error(),
		"check that the gateway runs with its bastion on and that your public address is in admin.cidrs, then run the command again").Because(err)
}

// DialContext connects to a private address and port through the bastion. The
// network is "tcp" and the address is numeric. Failures are *DialError. The
// connection supports half-close; a deadline that passes during a read or a
// write ends it.
func (d *Door) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	target, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp" && network != "tcp4") {
		return nil, fmt.Errorf("door: %s %s: only tcp to a numeric address and port can be dialled", network, address)
	}
	if !d.cfg.Network.Contains(target.Addr()) {
		return nil, &DialError{Address: target, Failure: Outside, Err: fmt.Errorf("it is not in %s", d.cfg.Network)}
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.DialTimeout)
	defer cancel()
	for {
		l, err := d.link(ctx, false)
		if err != nil {
			return nil, bastionFailure(target, err)
		}
		conn, err := l.dial(ctx, target)
		if errors.Is(err, errLost) && ctx.Err() == nil {
			continue // the connection died under the dial; the next one may live
		}
		if err != nil {
			return nil, channelFailure(ctx, target, err)
		}
		return conn, nil
	}
}

// Close ends every connection and waits until nothing of the door runs.
func (d *Door) Close() error {
	d.shut(errClosed)
	d.closeLinks()
	d.wg.Wait()
	return nil
}

func (d *Door) closeLinks() {
	d.mu.Lock()
	links := d.links
	d.links = nil
	d.mu.Unlock()
	for _, l := range links {
		l.close()
	}
}
