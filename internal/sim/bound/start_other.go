//go:build !linux

package bound

import "os/exec"

// Start starts a process. Only Linux can tie its life to ours: elsewhere a
// simulator that is killed leaves its children behind.
func Start(cmd *exec.Cmd) error { return cmd.Start() }
