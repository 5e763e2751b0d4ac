package api

import (
	"fmt"
	"net/netip"
	"strings"
)

// checkReverse refuses a reverse name that does not resolve to its address yet.
func (w *world) checkReverse(name string, a netip.Addr) error {
	if w.resolves(name, a) {
		return nil
	}
	return invalid("reverse", "constraint", mustResolve(name, a))
}

// resolves says whether a name leads to an address. The simulator sees no DNS:
// a name does not resolve the first time it is asked for and does from then on,
// so that a client meets the refusal and gets past it.
func (w *world) resolves(name string, a netip.Addr) bool {
	key := name + "/" + a.String()
	known := w.ReverseAsked[key]
	w.ReverseAsked[key] = true
	return known || strings.HasSuffix(name, ".scw.cloud")
}

func mustResolve(name string, a netip.Addr) string {
	return fmt.Sprintf("Your reverse must resolve. Ensure the command 'dig +short %s' matches your IP address '%s'. "+
		"If it does, please contact our support.", name, a)
}

// defaultReverses are the names that IPAM shows for a public IPv6 prefix by
// itself: one for the prefix and, on a server, one for the server's address.
func (w *world) defaultReverses(i *ipamIP) []ipamReverse {
	if i.Zone == "" || !i.Address.Addr().Is6() {
		return nil
	}
	out := []ipamReverse{{Hostname: strings.Join(groups(i.Address.Addr()), "-") + ".rev.scw.cloud."}}
	if i.Resource != nil {
		var mac string
		if s, ok := w.Servers.get(i.Resource.ID); ok {
			mac = s.MAC
		}
		own := slaac(i.Address, mac)
		a, g := own.String(), groups(own)
		for l, r := 0, len(g)-1; l < r; l, r = l+1, r-1 {
			g[l], g[r] = g[r], g[l]
		}
		out = append(out, ipamReverse{Hostname: strings.Join(g, "-") + ".instances.scw.cloud.", Address: &a})
	}
	return out
}

// groups are the eight groups of an IPv6 address without leading zeros.
func groups(a netip.Addr) []string {
	out := strings.Split(a.StringExpanded(), ":")
	for i, g := range out {
		if out[i] = strings.TrimLeft(g, "0"); out[i] == "" {
			out[i] = "0"
		}
	}
	return out
}
