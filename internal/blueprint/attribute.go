package blueprint

import (
	"net/netip"
	"sort"
	"strings"
)

func fixed(name, value string) Attribute { return Attribute{Name: name, Value: value, Mutable: Fixed} }
func inPlace(name, value string) Attribute {
	return Attribute{Name: name, Value: value, Mutable: InPlace}
}

// routine is changed in place and the same for every estate.
func routine(name, value string) Attribute {
	return Attribute{Name: name, Value: value, Mutable: InPlace, Routine: true}
}
func grow(name, value string) Attribute {
	return Attribute{Name: name, Value: value, Mutable: GrowOnly}
}

// assigned is an address that Scaleway chooses.
func assigned(name string, a netip.Addr) Attribute {
	if !a.IsValid() {
		return Attribute{Name: name, Unknown: "Scaleway assigns it", Mutable: Fixed}
	}
	return fixed(name, a.String())
}

func joinPrefixes(ps []netip.Prefix) string {
	out := make([]string, 0, len(ps))
	for _, p := range ps {
		out = append(out, p.String())
	}
	sort.Strings(out)
	return strings.Join(out, " ")
}
