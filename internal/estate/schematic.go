package estate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"go.yaml.in/yaml/v4"
)

// NoSchematic is the Image Factory's id of an image without any customisation.
// Newer images always carry an id, older ones none: both mean the same.
const NoSchematic = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

// schematic is what is baked into an image of Talos, in the Image Factory's own
// order of fields. Overlays are left out on purpose: they replace the boot
// loader of single-board computers, which no machine of Scaleway is.
type schematic struct {
	Customization struct {
		ExtraKernelArgs  []string `yaml:"extraKernelArgs,omitempty"`
		SystemExtensions struct {
			OfficialExtensions []string `yaml:"officialExtensions,omitempty"`
		} `yaml:"systemExtensions,omitempty"`
	} `yaml:"customization"`
}

// Schematic is the canonical YAML of what the image is made of: the Image Factory
// hashes this very text. The order of lists is part of it.
func (t Talos) Schematic() []byte {
	var s schematic
	s.Customization.ExtraKernelArgs = t.KernelArgs
	s.Customization.SystemExtensions.OfficialExtensions = t.Extensions
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(4)
	if err := enc.Encode(s); err != nil { // lists of text always encode
		panic(err)
	}
	_ = enc.Close()
	return out.Bytes()
}

// SchematicID is the Image Factory's name for the schematic, computed offline:
// the SHA-256 of its canonical text. The Factory knows the id once the schematic
// was posted to it one time.
func (t Talos) SchematicID() string {
	sum := sha256.Sum256(t.Schematic())
	return hex.EncodeToString(sum[:])
}

// SmallestRoot is the size of the smallest volume that an image goes on; 0 without
// any node.
func (e *Estate) SmallestRoot() Size {
	var least Size
	for _, n := range e.Nodes() {
		if least == 0 || n.Disk.Size < least {
			least = n.Disk.Size
		}
	}
	return least
}

// MakesImage says that bastide makes the image of the nodes' disks itself, instead
// of taking a snapshot that the file names.
func (t Talos) MakesImage() bool { return t.Snapshot == "" && t.Version != "" }
