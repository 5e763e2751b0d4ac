package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// leased tells whether the node has any address.
func (n *node) leased() bool { return len(n.addresses()) > 0 }

// addresses are the node's own: private ones first, in NIC order, then public.
func (n *node) addresses() []netip.Addr {
	var all []netip.Addr
	for _, nic := range n.hw.NICs {
		if nic.Address.IsValid() {
			all = append(all, nic.Address.Addr())
		}
	}
	return append(all, n.hw.PublicIPs...)
}

// defaultRoute tells whether the node reaches anything outside its subnets.
func (n *node) defaultRoute() bool {
	for _, nic := range n.hw.NICs {
		if nic.Gateway.IsValid() {
			return true
		}
	}
	return len(n.hw.PublicIPs) > 0
}

func (n *node) linkUp() {
	for _, nic := range n.hw.NICs {
		if nic.Address.IsValid() {
			n.farm.opt.Fabric.Guard(nic.NetworkID, nic.Address.Addr(), n.lets)
			n.farm.opt.Fabric.HostUp(nic.NetworkID, nic.Address.Addr())
		}
	}
}

func (n *node) linkDown() {
	for _, nic := range n.hw.NICs {
		if nic.Address.IsValid() {
			n.farm.opt.Fabric.HostDown(nic.NetworkID, nic.Address.Addr())
		}
	}
}

// listen opens a port on every address of the node.
func (n *node) listen(port int) ([]net.Listener, error) {
	var all []net.Listener
	fail := func(err error) ([]net.Listener, error) {
		for _, l := range all {
			_ = l.Close()
		}
		return nil, fmt.Errorf("listening on port %d: %w", port, err)
	}
	for _, nic := range n.hw.NICs {
		if !nic.Address.IsValid() {
			continue
		}
		l, err := n.farm.opt.Fabric.Listen(nic.NetworkID, nic.Address.Addr(), port)
		if err != nil {
			return fail(err)
		}
		all = append(all, l)
	}
	for _, ip := range n.hw.PublicIPs {
		if !ip.IsLoopback() {
			continue
		}
		l, err := net.Listen("tcp", netip.AddrPortFrom(ip, uint16(port)).String())
		if err != nil {
			return fail(err)
		}
		all = append(all, guarded{l, n, port})
	}
	return all, nil
}

// serve leads a port of every private address to a child process that listens
// on the node's loopback address; the result takes that back.
func (n *node) serve(port int) (withdraw func()) {
	target := netip.AddrPortFrom(n.loopback, uint16(port)).String()
	for _, nic := range n.hw.NICs {
		if nic.Address.IsValid() {
			n.farm.opt.Fabric.Serve(nic.NetworkID, nic.Address.Addr(), port, target)
		}
	}
	var public []net.Listener
	for _, ip := range n.hw.PublicIPs {
		if !ip.IsLoopback() {
			continue
		}
		if l, err := net.Listen("tcp", netip.AddrPortFrom(ip, uint16(port)).String()); err == nil {
			public = append(public, l)
			n.spawn(func() { forward(guarded{l, n, port}, target) })
		}
	}
	return func() {
		for _, nic := range n.hw.NICs {
			if nic.Address.IsValid() {
				n.farm.opt.Fabric.Withdraw(nic.NetworkID, nic.Address.Addr(), port, target)
			}
		}
		for _, l := range public {
			_ = l.Close()
		}
	}
}

// forward passes the connections of a listener on until it is closed.
func forward(l net.Listener, target string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			if up, err := net.Dial("tcp", target); err == nil {
				splice(c, up)
			} else {
				_ = c.Close()
			}
		}()
	}
}

// splice copies both ways until either side is done, then closes both.
func splice(a, b io.ReadWriteCloser) {
	done := make(chan struct{}, 2)
	pass := func(dst, src io.ReadWriteCloser) {
		_, _ = io.Copy(dst, src)
		if w, ok := dst.(interface{ CloseWrite() error }); ok {
			_ = w.CloseWrite()
		}
		done <- struct{}{}
	}
	go pass(a, b)
	go pass(b, a)
	<-done
	<-done
	_ = a.Close()
	_ = b.Close()
}

// dial connects from the node to a host and port as its routes allow.
func (n *node) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, err
	}
	addrs, err := n.lookup(host)
	if err != nil {
		return nil, err
	}
	var last error
	for _, a := range addrs {
		c, err := n.dialAddr(ctx, a, port)
		if err == nil {
			return c, nil
		}
		last = err
	}
	return nil, last
}

func (n *node) dialAddr(ctx context.Context, to netip.Addr, port int) (net.Conn, error) {
	for _, nic := range n.hw.NICs {
		if nic.Address.IsValid() && nic.Address.Contains(to) {
			return n.farm.opt.Fabric.Dial(ctx, nic.NetworkID, nic.Address.Addr(), to, port)
		}
	}
	// The region's public addresses are loopback addresses of this host; they
	// are reached through the gateway, or the node's own public address.
	if to.IsLoopback() && n.defaultRoute() {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", netip.AddrPortFrom(to, uint16(port)).String())
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w", to, syscall.ENETUNREACH)}
}

// lookup resolves a name as the node's host DNS would: static hosts of the
// configuration first, then the region's names.
func (n *node) lookup(host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if cfg := n.config(); cfg != nil {
		var found []netip.Addr
		for _, h := range cfg.NetworkStaticHostConfig() {
			for _, alias := range h.Aliases() {
				if strings.EqualFold(alias, host) {
					if a, err := netip.ParseAddr(h.IP()); err == nil {
						found = append(found, a)
					}
				}
			}
		}
		if len(found) > 0 {
			return found, nil
		}
	}
	if n.farm.opt.Resolve != nil && n.defaultRoute() {
		if found := n.farm.opt.Resolve(host); len(found) > 0 {
			return found, nil
		}
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// hostname is the node's name: a static one of the configuration, else what the
// platform says.
func (n *node) hostname() string {
	name := n.hw.Hostname
	if name == "" {
		name = n.hw.Name
	}
	if cfg := n.config(); cfg != nil {
		if h := cfg.NetworkHostnameConfig(); h != nil && h.Hostname() != "" {
			name = h.Hostname()
		}
	}
	return strings.SplitN(name, ".", 2)[0]
}
