package ssh

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"

	xssh "golang.org/x/crypto/ssh"

	"bastide/internal/sim/fabric"
	"bastide/internal/sim/hardware"
)

// gateway is one public gateway: its addresses in private networks, and its
// bastion while that is on.
type gateway struct {
	fabric  *fabric.Fabric
	log     *slog.Logger
	client  netip.Addr // see Options.ClientAddress
	hostKey xssh.Signer

	rules   atomic.Pointer[rules]
	bastion *bastion // nil while off
}

// rules are what a bastion asks at each new connection and channel.
type rules struct {
	allowed []netip.Prefix
	keys    map[string]bool // in wire format
	legs    []hardware.Attachment
}

func newGateway(o Options, id string, hostKey xssh.Signer) *gateway {
	g := &gateway{fabric: o.Fabric, log: o.Log.With("gateway", id), client: o.ClientAddress, hostKey: hostKey}
	g.rules.Store(&rules{})
	return g
}

// apply moves the gateway to a configuration; an empty one ends it.
func (g *gateway) apply(conf hardware.Gateway) {
	had := g.rules.Load().legs
	now := &rules{allowed: slices.Clone(conf.BastionAllowed), keys: g.parseKeys(conf.AuthorizedKeys)}
	for _, leg := range conf.Attachments {
		if leg.Address.IsValid() {
			now.legs = append(now.legs, leg)
		}
	}
	g.rules.Store(now)
	for _, leg := range had {
		if !slices.Contains(now.legs, leg) {
			g.fabric.HostDown(leg.NetworkID, leg.Address)
		}
	}
	for _, leg := range now.legs {
		if !slices.Contains(had, leg) {
			g.fabric.HostUp(leg.NetworkID, leg.Address)
		}
	}
	g.openBastion(conf)
}

func (g *gateway) openBastion(conf hardware.Gateway) {
	on := conf.BastionEnabled && conf.PublicIP.IsValid()
	if on && !conf.PublicIP.IsLoopback() {
		g.log.Error("bastion stays off: its public address is not of this host", "address", conf.PublicIP)
		on = false
	}
	if g.bastion != nil && (!on || g.bastion.address != conf.PublicIP) {
		g.bastion.close()
		g.bastion = nil
	}
	if !on {
		return
	}
	if g.bastion == nil {
		g.bastion = newBastion(g, conf.PublicIP)
	}
	if err := g.bastion.listen(conf.BastionPort); err != nil {
		g.log.Error("bastion cannot listen", "address", conf.PublicIP, "port", conf.BastionPort, "err", err)
	}
}

func (g *gateway) parseKeys(lines []string) map[string]bool {
	keys := map[string]bool{}
	for _, line := range lines {
		key, _, _, _, err := xssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			g.log.Warn("gateway ignores a key that is not in authorized_keys form", "err", err)
			continue
		}
		keys[string(key.Marshal())] = true
	}
	return keys
}

// unnamed is where every client on this host comes from that does not bind an
// address of its own.
var unnamed = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// admits tells whether a connection may come in at all.
func (r *rules) admits(from net.Addr, administrator netip.Addr) bool {
	at, err := netip.ParseAddrPort(from.String())
	if err != nil {
		return false
	}
	source := at.Addr().Unmap()
	if source == unnamed {
		if !administrator.IsValid() {
			return len(r.allowed) > 0 && r.allowed[0].IsValid()
		}
		source = administrator.Unmap()
	}
	return slices.ContainsFunc(r.allowed, func(p netip.Prefix) bool { return p.Contains(source) })
}

// The widest subnets that a private network may have.
const (
	widestIPv4 = 20
	widestIPv6 = 64
)

// leg finds the attachment through which the gateway reaches an address. A leg
// comes without its subnet, so the one whose address shares the longest prefix
// with the target is taken: of legs in disjoint subnets that is the one whose
// subnet holds it. What shares less than the widest subnet is in none.
func (r *rules) leg(to netip.Addr) (hardware.Attachment, bool) {
	var best hardware.Attachment
	shared := -1
	for _, leg := range r.legs {
		if leg.Address.BitLen() != to.BitLen() {
			continue
		}
		if n := commonBits(leg.Address, to); n > shared {
			best, shared = leg, n
		}
	}
	if to.Is4() {
		return best, shared >= widestIPv4
	}
	return best, shared >= widestIPv6
}

func commonBits(a, b netip.Addr) int {
	n := 0
	for n < a.BitLen() {
		p, err := a.Prefix(n + 1)
		if err != nil || !p.Contains(b) {
			break
		}
		n++
	}
	return n
}
