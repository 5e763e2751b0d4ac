//go:build !linux

package door

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// processBorn tells one process from a later one with the same ID, to the second.
func processBorn(pid int) (string, bool) {
	out, err := exec.Command("ps", "-o", "state=,lstart=", "-p", strconv.Itoa(pid)).Output()
	state, born, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !ok || strings.HasPrefix(state, "Z") {
		return "", false
	}
	return strings.TrimSpace(born), true
}

// endWithParent is something that only Linux offers; elsewhere Sweep ends the child.
func endWithParent(*syscall.SysProcAttr) {}
