package talos

import "bastide/internal/estate"

// InstallerImage is the installer of the file's schematic for the scaleway
// platform. Upgrading with any other schematic would silently drop extensions
// and kernel arguments; from Talos 1.14 on there is no generic installer at all.
func InstallerImage(t estate.Talos) string {
	return installerRepository + t.SchematicID() + ":" + t.Version
}

const installerRepository = "factory.talos.dev/scaleway-installer/"
