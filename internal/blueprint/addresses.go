package blueprint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"sort"
	"strings"

	"bastide/internal/estate"
)

// Assign gives every user of the private network an address, by address step
// ID. What is booked stays; the rest takes the lowest free addresses in the
// order gateway, load balancer, nodes. The network address, the first host
// address, which Scaleway reserves, and the broadcast address are never used.
func Assign(e *estate.Estate, booked map[string]netip.Addr) (map[string]netip.Addr, error) {
	wanted := []string{addressID(GatewayName(e.Name)), addressID(e.Name + "-api")}
	for _, n := range e.Nodes() {
		wanted = append(wanted, addressID(n.Name))
	}
	cidr := e.Network.CIDR.Prefix
	taken := map[netip.Addr]string{}
	for _, id := range sortedKeys(booked) {
		if !strings.HasPrefix(id, string(KindAddress)+"/") {
			continue // not in the private network
		}
		addr := booked[id]
		if !cidr.Contains(addr) {
			return nil, fmt.Errorf("%s is booked as %s, outside network.cidr %s: the range of a live private network cannot change", id, addr, cidr)
		}
		taken[addr] = id
	}
	out := map[string]netip.Addr{}
	next := cidr.Masked().Addr().Next().Next()
	for _, id := range wanted {
		if addr, ok := booked[id]; ok {
			out[id] = addr
			continue
		}
		for taken[next] != "" {
			next = next.Next()
		}
		if !cidr.Contains(next) || !cidr.Contains(next.Next()) {
			return nil, fmt.Errorf("network.cidr %s has no address left for %s: give the network a shorter prefix or ask for fewer nodes", cidr, id)
		}
		taken[next] = id
		out[id] = next
	}
	return out, nil
}

// AddressOf finds the address that Assign gave to a node, or to the estate's
// "gateway" or "api".
func AddressOf(g *Graph, name string) netip.Addr {
	s, ok := g.Step(addressID(name))
	if !ok {
		return netip.Addr{}
	}
	return s.Spec.(Address).Address
}

func addressID(name string) string { return string(KindAddress) + "/" + name }

// keyName names a project SSH key. Keys carry no tags, so the estate's name
// and a part of the key's digest are what marks one as ours.
func keyName(estateName, key string) string {
	sum := sha256.Sum256([]byte(key))
	return estateName + "-bastide-" + hex.EncodeToString(sum[:4])
}

func sortedKeys(m map[string]netip.Addr) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
