// Package host is what the machine that the simulated region runs on gives it: room
// on a disk. The simulated machines do not lose anything by its being full, and would
// only never get ready; so it is told as what it is, a trouble of the rehearsal.
package host

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// ballast is how many bytes are kept from the start on, and given back when the disk
// is full: the log that has to say so may be on the same disk.
const ballast = 256 << 10

// Host is told what went wrong, and finds what is the machine's fault. A nil one
// finds nothing. It is safe for concurrent use.
type Host struct {
	dir string
	log *slog.Logger

	mu      sync.Mutex
	trouble string
	told    map[string]bool // who has been written to the log
}

// New watches the folder of a region.
func New(dir string, log *slog.Logger) *Host {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h := &Host{dir: dir, log: log, told: map[string]bool{}}
	_ = os.WriteFile(h.reserve(), make([]byte, ballast), 0o600) // without it the log may miss the line, and nothing else
	return h
}

func (h *Host) reserve() string { return filepath.Join(h.dir, "ballast") }

// Close gives the folder back.
func (h *Host) Close() error {
	if err := os.Remove(h.reserve()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Failed is told of something that did not work: who it was, such as "etcd of
// staging-cp-1", the error, and what it said last where it was a process.
func (h *Host) Failed(who string, err error, said ...string) {
	if h == nil {
		return
	}
	full, line := shortage(err, said)
	if full == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trouble == "" {
		_ = os.Remove(h.reserve())
		h.trouble = fmt.Sprintf("%s ended or could not write because there is no room left for it in %s: %s", who, h.dir, full)
	}
	if !h.told[who] {
		h.told[who] = true
		h.log.Error("the disk of this machine is full", "who", who, "folder", h.dir, "why", line)
	}
}

// Trouble is what the machine lacks, in one sentence; empty while it lacks nothing
// that anybody noticed. It stays: what failed for want of room left something undone.
func (h *Host) Trouble() string {
	if h == nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trouble
}

// shortage is what says that a disk, or a share of one, is full, and the line in which
// that was said.
func shortage(err error, said []string) (full, line string) {
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, no) {
			return no.Error(), err.Error()
		}
		for i := len(said) - 1; i >= 0; i-- {
			if strings.Contains(said[i], no.Error()) {
				return no.Error(), said[i][:min(len(said[i]), 300)]
			}
		}
	}
	return "", ""
}
