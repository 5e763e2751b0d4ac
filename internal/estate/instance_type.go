package estate

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

// InstanceType is what bastide must know of an Instance type before it asks
// Scaleway: whether a node fits on it.
type InstanceType struct {
	Name         string
	Cores        int
	Memory       Size
	Arch         string // x86_64 or arm64
	LocalStorage Size   // most local storage it takes; 0 for types with block storage only. Nodes use block storage alone.
	EndOfService bool   // no new ones are made
}

// instanceTypesText is the list of Instance types as Scaleway's API gave it on
// 30 July 2026 (GET /products/servers, all zones that were seen): name, cores,
// memory in MiB, architecture, most local storage in GB, end of service. All of
// them take block volumes and eight private networks. Whether a zone has one in
// stock is asked when it matters.
//
//go:embed instance_types.txt
var instanceTypesText string

var instanceTypes = sync.OnceValue(func() []InstanceType {
	var types []InstanceType
	for line := range strings.Lines(instanceTypesText) {
		var t InstanceType
		var mib, local Size
		var end string
		if _, err := fmt.Sscan(line, &t.Name, &t.Cores, &mib, &t.Arch, &local, &end); err != nil {
			panic(fmt.Sprintf("estate: instance_types.txt: %q: %v", line, err))
		}
		t.Memory, t.LocalStorage, t.EndOfService = mib*MiB, local*GB, end == "eos"
		types = append(types, t)
	}
	return types
})

// LookupInstanceType finds a type by its name, which Scaleway writes in capitals.
func LookupInstanceType(name string) (InstanceType, bool) {
	for _, t := range instanceTypes() {
		if t.Name == name {
			return t, true
		}
	}
	return InstanceType{}, false
}

func instanceTypeNames() []string {
	var names []string
	for _, t := range instanceTypes() {
		names = append(names, t.Name)
	}
	return names
}
