//go:build !linux

package node

import "os/exec"

// startBound starts a process. Only Linux can tie its life to ours: elsewhere a
// simulator that is killed leaves its children behind.
func startBound(cmd *exec.Cmd) error { return cmd.Start() }
