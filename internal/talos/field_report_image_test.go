package talos

import (
	"strings"
	"testing"

	"bastide/internal/estate"
	"bastide/internal/outcome"
)

// Field report 23: from Talos 1.14 on there is no generic installer any more, and
// one that has it in its configuration cannot be upgraded. Any installer but that
// of the file's own schematic is refused while configurations are rendered, which
// is before anything is touched, with the reference that belongs there.
func TestFieldReport23InstallersOfAnotherImageAreRefused(t *testing.T) {
	e := testEstate(t)
	e.Talos.Extensions, e.Talos.KernelArgs = []string{"siderolabs/gvisor"}, []string{"net.ifnames=0"}
	own := "factory.talos.dev/scaleway-installer/" + e.Talos.SchematicID() + ":" + e.Talos.Version
	for _, image := range []string{
		"ghcr.io/siderolabs/installer:v1.14.0", "ghcr.io/siderolabs/installer:" + e.Talos.Version,
		"factory.talos.dev/metal-installer/" + estate.NoSchematic + ":" + e.Talos.Version,
		"factory.talos.dev/scaleway-installer/" + estate.NoSchematic + ":" + e.Talos.Version,
		strings.Replace(own, e.Talos.Version, "v1.14.0", 1), strings.Replace(own, "scaleway-", "metal-", 1),
	} {
		e.Talos.Patches.All = []string{write(t, e, "p.yaml", "machine: {install: {image: '"+image+"'}}\n")}
		_, err := render(t, e, "staging-cp-1")
		if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), own) || !strings.Contains(err.Error(), image) {
			t.Errorf("%s: %v", image, err)
		}
	}
	e.Talos.Patches.All = []string{write(t, e, "p.yaml", "machine: {install: {image: '"+own+"'}}\n")}
	if _, err := render(t, e, "staging-cp-1"); err != nil {
		t.Errorf("its own: %v", err)
	}
}

// Field report 23: the id of "no customisation" was read as a foreign schematic.
// A file that adds nothing has that id, and a node whose image says nothing is
// what it asks for; for a file that adds something both are another image.
func TestFieldReport23NoCustomisationIsNoSchematic(t *testing.T) {
	var plain, more estate.Talos
	more.Extensions = []string{"siderolabs/gvisor"}
	if plain.SchematicID() != estate.NoSchematic {
		t.Errorf("nothing added is %s", plain.SchematicID())
	}
	for _, c := range []struct {
		mark string
		of   estate.Talos
		same bool
	}{
		{"", plain, true}, {estate.NoSchematic, plain, true}, {more.SchematicID(), plain, false},
		{"", more, false}, {estate.NoSchematic, more, false}, {more.SchematicID(), more, true},
	} {
		if want := c.of.SchematicID(); (schematicOf(c.mark, want) == want) != c.same {
			t.Errorf("a node that says %q, beside %v: %s", c.mark, c.of.Extensions, schematicOf(c.mark, want))
		}
	}
}
