package talos

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// SchematicID is the Image Factory's name for a set of official system
// extensions: the SHA-256 of the canonical YAML of the schematic (four spaces
// of indent, fixed order of fields, empty ones left out). It is computed
// offline; the factory knows the id once the schematic has been posted to it
// one time. The order of the extensions is part of it.
func SchematicID(extensions []string) string {
	var b strings.Builder
	if len(extensions) == 0 {
		b.WriteString("customization: {}\n")
	} else {
		b.WriteString("customization:\n    systemExtensions:\n        officialExtensions:\n")
		for _, e := range extensions {
			b.WriteString("            - " + e + "\n")
		}
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}

// InstallerImage is the installer of a schematic for the scaleway platform.
// Upgrading with any other schematic would silently drop the extensions.
func InstallerImage(extensions []string, version string) string {
	return installerRepository + SchematicID(extensions) + ":" + version
}

const installerRepository = "factory.talos.dev/scaleway-installer/"
