// Package ssh runs the bastions of the region's public gateways: real SSH
// servers on the gateways' public addresses, which are loopback addresses of
// this host, that forward connections into the private networks that a gateway
// is attached to and do nothing else.
package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"log/slog"
	"net/netip"
	"sync"

	xssh "golang.org/x/crypto/ssh"

	"bastide/internal/sim/fabric"
	"bastide/internal/sim/hardware"
)

// Options configures the gateways of a region.
type Options struct {
	Fabric *fabric.Fabric
	Log    *slog.Logger // nil is silent
	// ClientAddress is where the simulated administrator comes from. Clients on
	// this host all connect from 127.0.0.1, which no allowed range would hold, so
	// a connection from there is judged as one from ClientAddress. The zero value
	// puts the administrator inside the first allowed range, wherever that is; an
	// empty list still admits nobody. A client that binds another loopback address
	// is judged by that one.
	ClientAddress netip.Addr
}

// Gateways is all public gateways of a region.
type Gateways struct {
	options Options

	mu      sync.Mutex
	running map[string]*gateway
	// hostKeys outlive their gateways: whoever learned a gateway's key must never
	// meet another one under the same id.
	hostKeys map[string]xssh.Signer
	closed   bool
}

var _ hardware.Gateways = (*Gateways)(nil)

// New returns a region without gateways.
func New(o Options) *Gateways {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Gateways{options: o, running: map[string]*gateway{}, hostKeys: map[string]xssh.Signer{}}
}

// Apply implements hardware.Gateways. It returns when the gateway is as it is
// told: listening, or not. Connections stay open unless the bastion is switched
// off, loses its public address or is detached from the network that they lead
// into; allowed ranges and keys are asked for new connections only.
func (s *Gateways) Apply(conf hardware.Gateway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	g := s.running[conf.ID]
	if g == nil {
		key, err := s.hostKey(conf.ID)
		if err != nil {
			s.options.Log.Error("gateway has no host key", "gateway", conf.ID, "err", err)
			return
		}
		g = newGateway(s.options, conf.ID, key)
		s.running[conf.ID] = g
	}
	g.apply(conf)
}

// Remove implements hardware.Gateways. It returns when the gateway's listener
// and connections are closed.
func (s *Gateways) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.running[id]; g != nil {
		delete(s.running, id)
		g.apply(hardware.Gateway{ID: id})
	}
}

// Close removes all gateways, and no other comes up afterwards.
func (s *Gateways) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for id, g := range s.running {
		delete(s.running, id)
		g.apply(hardware.Gateway{ID: id})
	}
	return nil
}

func (s *Gateways) hostKey(id string) (xssh.Signer, error) {
	if key := s.hostKeys[id]; key != nil {
		return key, nil
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	key, err := xssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	s.hostKeys[id] = key
	return key, nil
}
