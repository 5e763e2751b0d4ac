//go:build tools

// Package talosctl pins Talos' own command line, which tests point at simulated machines.
// It is never compiled: the imports keep what ../build.sh builds in go.mod.
package talosctl

import _ "github.com/siderolabs/talos/cmd/talosctl"
