// Package bound starts processes whose life is bound to that of this one, so
// that no simulator, however it ends, leaves servers behind.
package bound

import (
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"
)

// Start starts a process that the kernel kills when this one dies.
// The kernel ties that to the thread that forked, which therefore must live as
// long as the process does: it is a thread of its own that only waits.
func Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread must not serve other goroutines and end with one
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		var info [128]byte
		waitWithoutReaping(cmd.Process.Pid, &info)
	}()
	return <-started
}

// waitWithoutReaping blocks the calling thread until the process has ended and
// leaves its status for os/exec to collect.
func waitWithoutReaping(pid int, info *[128]byte) {
	const (
		pPID    = 1
		wExited = 0x4
		wNoWait = 0x1000000
	)
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPID, uintptr(pid), uintptr(unsafe.Pointer(info)), wExited|wNoWait, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}
