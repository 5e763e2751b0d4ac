package door

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// processBorn tells one process from a later one with the same ID: the boot and
// the clock tick in which it began. It is false when there is no such process,
// or only its remains.
func processBorn(pid int) (string, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	// The second field is the program's name and may hold anything, so the
	// count starts after its closing bracket: state is field 3, start time 22.
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	if end < 0 || len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", false
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot)) + ":" + fields[19], true
}

// endWithParent has the kernel end the child when bastide is killed, since its
// way in is then gone.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
