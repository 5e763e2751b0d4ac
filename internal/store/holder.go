package store

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"syscall"
)

// Holder is the process that holds a lock.
type Holder struct {
	User string `json:"user"`
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Boot and Namespace say which numbering the process's number is of: one
	// start of one kernel, and one container on it. Host names are not enough:
	// machines and containers share them. Started is the process's start in that
	// numbering, as numbers are used again. All are "" where the system does not
	// tell, and then nothing is concluded.
	Boot      string `json:"boot,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Started   string `json:"started,omitempty"`
}

// self is this process as a holder.
func self() Holder {
	h := Holder{PID: os.Getpid(), User: "unknown", Host: "unknown"}
	if u, err := user.Current(); err == nil {
		h.User = u.Username
	}
	if name, err := os.Hostname(); err == nil {
		h.Host = name
	}
	h.Boot, h.Namespace = numbering()
	h.Started = startOf(h.PID)
	return h
}

// numbering is the kernel's start and the container that process numbers here
// are of; "" where the system does not tell.
func numbering() (boot, namespace string) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", ""
	}
	namespace, err = os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", ""
	}
	return strings.TrimSpace(string(text)), namespace
}

// startOf is when a process started, in ticks since the kernel did: the 22nd
// field of its stat, counted behind the name, which may hold anything.
func startOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// gone says that the holder is certain to have ended: it ran on this host, under
// this very kernel and in this very container, and its number is nobody's now, or
// another process's. Of a holder elsewhere nothing is known.
func (h Holder) gone() bool {
	host, err := os.Hostname() // clones of a running machine share all the rest
	boot, namespace := numbering()
	if err != nil || h.Host != host || boot == "" || h.Boot != boot || h.Namespace != namespace || h.PID <= 0 || h.Started == "" {
		return false
	}
	if err := syscall.Kill(h.PID, 0); errors.Is(err, syscall.ESRCH) {
		return true
	}
	now := startOf(h.PID)
	return now != "" && now != h.Started
}
