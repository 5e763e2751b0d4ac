package estate

import "testing"

// The ids are published: by the Image Factory's own tests, and on its pages.
func TestSchematicIDsAreThoseOfTheFactory(t *testing.T) {
	for want, talos := range map[string]Talos{
		NoSchematic: {},
		"9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c": {KernelArgs: []string{"noapic", "nolapic"}},
		"bc9d9abefb95508722f49374f968a9d82cc186057a71ea9345d168a7672a5a9a": {Extensions: []string{"siderolabs/gvisor", "siderolabs/kata-containers"}},
	} {
		if have := talos.SchematicID(); have != want {
			t.Errorf("%+v is %s, want %s:\n%s", talos, have, want, talos.Schematic())
		}
	}
	if (Talos{Extensions: []string{"a/a", "b/b"}}).SchematicID() == (Talos{Extensions: []string{"b/b", "a/a"}}).SchematicID() {
		t.Error("the order of extensions is part of the id")
	}
}
