//go:build tools

// Package scw pins Scaleway's own command line, which tests point at the simulated region.
// It is never compiled: the imports keep what ../build.sh builds in go.mod.
package scw

import _ "github.com/scaleway/scaleway-cli/v2/cmd/scw"
