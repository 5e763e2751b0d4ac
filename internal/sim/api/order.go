package api

import (
	"fmt"
	"net/netip"
	"sort"
	"strings"
)

// ordered is a resource whose listings can be ordered by more than name and
// times. The key sorts as text.
type ordered interface{ orderKey(field string) string }

// sortBy orders a listing as order_by asks, or else as its product does. What
// is equal stays in the order in which it was made.
func sortBy[T resource](items []T, orderBy, otherwise string) {
	if orderBy == "" {
		orderBy = otherwise
	}
	field, descending := strings.CutSuffix(orderBy, "_desc")
	field = strings.TrimSuffix(field, "_asc")
	less := func(a, b T) bool { return a.meta().Created.Before(b.meta().Created) }
	switch field {
	case "created_at":
	case "name":
		less = func(a, b T) bool { return a.meta().Name < b.meta().Name }
	case "updated_at":
		less = func(a, b T) bool { return a.meta().Updated.Before(b.meta().Updated) }
	default:
		if len(items) > 0 {
			if _, ok := any(items[0]).(ordered); ok {
				less = func(a, b T) bool { return any(a).(ordered).orderKey(field) < any(b).(ordered).orderKey(field) }
			}
		}
	}
	sort.SliceStable(items, func(i, j int) bool {
		if descending {
			i, j = j, i
		}
		return less(items[i], items[j])
	})
}

// addressKey makes addresses sort as numbers, IPv4 before IPv6.
func addressKey(a netip.Addr) string { return fmt.Sprintf("%03d %x", a.BitLen(), a.AsSlice()) }

func (i *ipamIP) orderKey(field string) string {
	switch field {
	case "ip_address":
		return addressKey(i.Address.Addr())
	case "mac_address":
		if i.Resource != nil {
			return strings.ToUpper(i.Resource.MAC)
		}
	case "attached_at":
		if i.Resource != nil {
			return stamp(i.Updated)
		}
	}
	return ""
}

func (g *gateway) orderKey(field string) string {
	switch field {
	case "type":
		return g.Type
	case "status":
		return g.Status
	}
	return ""
}

func (n *gatewayNetwork) orderKey(field string) string {
	if field == "status" {
		return n.Status
	}
	return ""
}

func (ip *gatewayIP) orderKey(field string) string {
	switch field {
	case "address":
		return addressKey(ip.Address)
	case "reverse":
		return ip.Reverse
	}
	return ""
}

func (p *patRule) orderKey(field string) string {
	if field == "public_port" {
		return fmt.Sprintf("%05d", p.PublicPort)
	}
	return ""
}
