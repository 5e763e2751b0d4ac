package talos

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/netip"
	"sync"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/plan"
	"bastide/internal/vault"
)

// Limits are the deadlines of everything that waits. None grows with the
// number of nodes.
type Limits struct {
	Contact  time.Duration // one handshake
	Call     time.Duration // one request that reads
	Send     time.Duration // one request that changes something
	Poll     time.Duration // shortest pause between two looks; it grows with the time that was waited
	MaxPoll  time.Duration // longest pause
	Leave    time.Duration // how long a node that was sent its configuration may stay in maintenance; it closes its listener within ten seconds
	Settle   time.Duration // how long etcd must be seen untouched before a Bootstrap of a node that an earlier run configured
	Joining  time.Duration // how long a member that was added may take to start
	Patience time.Duration // how long observing, and the gate of a change, wait for nodes that do not answer
	Node     time.Duration // a node from power on to its configuration
	Etcd     time.Duration // etcd up, and every node a voter; a learner may take minutes
	Ready    time.Duration // Kubernetes nodes Ready
	Reboot   time.Duration // a node back after a reboot
}

// Defaults are the limits of a real region.
func Defaults() Limits {
	return Limits{
		Contact: 10 * time.Second, Call: 15 * time.Second, Send: time.Minute, Poll: 100 * time.Millisecond, MaxPoll: time.Second,
		Leave: 12 * time.Second, Settle: 5 * time.Second, Joining: time.Minute, Patience: 20 * time.Second, Node: 15 * time.Minute, Etcd: 10 * time.Minute, Ready: 15 * time.Minute, Reboot: 15 * time.Minute,
	}
}

// Options are what a cluster layer needs.
type Options struct {
	Estate *estate.Estate
	Bundle *vault.Bundle
	Graph  *blueprint.Graph // the estate's; its addresses are the nodes'
	Dial   Dialer           // the way in; it may be slow and may fail
	Limits Limits           // zero fields take their defaults
	// Note is told, while something is waited for, what was last seen. It may
	// be called from several goroutines. Nil is allowed.
	Note func(node, text string)
	Now  func() time.Time // nil is the clock
}

// Cluster is the estate's nodes and what runs on them.
type Cluster struct {
	estate    *estate.Estate
	bundle    *vault.Bundle
	renderer  *Renderer
	addresses Addresses // without the gateway's, which is known later
	dial      Dialer
	limits    Limits
	note      func(node, text string)
	now       func() time.Time

	// One control plane node at a time is changed, whoever asks; and one
	// worker at a time is rebooted.
	controlPlane, workers sync.Mutex

	mu    sync.Mutex
	fresh map[string]bool // nodes that this run configured for the first time
	admin tls.Certificate // made at first use
	pool  *x509.CertPool
}

// New reads the files that the estate names and makes the cluster layer.
func New(o Options) (*Cluster, error) {
	renderer, err := NewRenderer(o.Estate, o.Bundle)
	if err != nil {
		return nil, err
	}
	if o.Dial == nil || o.Graph == nil {
		return nil, errors.New("talos: a way in and a graph are required")
	}
	c := &Cluster{
		estate: o.Estate, bundle: o.Bundle, renderer: renderer, addresses: AddressesOf(o.Graph, o.Estate, netip.Addr{}),
		dial: o.Dial, limits: o.Limits.withDefaults(), note: o.Note, now: o.Now, fresh: map[string]bool{},
	}
	if c.note == nil {
		c.note = func(string, string) {}
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c, nil
}

// Renderer renders this cluster's configurations.
func (c *Cluster) Renderer() *Renderer { return c.renderer }

func (l Limits) withDefaults() Limits {
	d := Defaults()
	for _, f := range []struct{ to, from *time.Duration }{
		{&l.Contact, &d.Contact}, {&l.Call, &d.Call}, {&l.Send, &d.Send}, {&l.Poll, &d.Poll}, {&l.MaxPoll, &d.MaxPoll}, {&l.Settle, &d.Settle}, {&l.Leave, &d.Leave},
		{&l.Joining, &d.Joining}, {&l.Patience, &d.Patience}, {&l.Node, &d.Node}, {&l.Etcd, &d.Etcd}, {&l.Ready, &d.Ready}, {&l.Reboot, &d.Reboot},
	} {
		if *f.to == 0 {
			*f.to = *f.from
		}
	}
	return l
}

func (c *Cluster) controlPlaneNodes() []estate.Node {
	var out []estate.Node
	for _, n := range c.estate.Nodes() {
		if n.Role == estate.RoleControlPlane {
			out = append(out, n)
		}
	}
	return out
}

func (c *Cluster) node(name string) (estate.Node, bool) {
	for _, n := range c.estate.Nodes() {
		if n.Name == name {
			return n, true
		}
	}
	return estate.Node{}, false
}

// gatewayOf finds the gateway's public address among what is live.
func (c *Cluster) gatewayOf(known plan.Known) netip.Addr {
	o, ok := known.Get(string(blueprint.KindGatewayIP) + "/" + blueprint.GatewayName(c.estate.Name))
	if !ok {
		return netip.Addr{}
	}
	ip, ok := o.Spec.(blueprint.GatewayIP)
	if !ok {
		return netip.Addr{}
	}
	return ip.Address
}

func (c *Cluster) isFresh(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fresh[name]
}

func (c *Cluster) markFresh(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh[name] = true
}

// errStop, returned by a look, ends the waiting with success.
var errStop = errors.New("stop")

// until looks again and again, with pauses that grow, until look returns errStop
// or another error, or the limit is over; then it returns expired, which is told
// how long was waited. A look returns nil to be called again. The limit ends the
// waiting between looks and never cuts one short: a look has deadlines of its
// own, and what it saw last is what the failure is explained with. A command
// that was given less time ends the same way, only that its end may cut a look
// short: a look must not remember what it saw after its context has ended.
func (c *Cluster) until(ctx context.Context, limit time.Duration, look func(context.Context) error, expired func(after time.Duration) error) error {
	begun := time.Now()
	over := func() error { return expired(time.Since(begun).Round(time.Second)) }
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		err := look(ctx)
		switch {
		case errors.Is(err, errStop):
			return nil
		case ctx.Err() != nil:
			return ended(ctx, over)
		case err != nil:
			return err
		}
		// A sixteenth of the wait so far: what comes soon is noticed soon, and what
		// takes minutes is not asked for ten times a second.
		timer := time.NewTimer(min(max(time.Since(begun)/16, c.limits.Poll), c.limits.MaxPoll))
		select {
		case <-timer.C:
		case <-end.C:
			timer.Stop()
			return over()
		case <-ctx.Done():
			timer.Stop()
			return ended(ctx, over)
		}
	}
}

// ended says why waiting ended with the command: when its time was over, with
// what was waited for; when somebody stopped it, there is nothing to explain.
func ended(ctx context.Context, over func() error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if err := over(); err != nil {
			return err
		}
	}
	return ctx.Err()
}
