package main

import (
	"os"
	"syscall"
)

// peak is the most memory that an ended process had resident, in bytes.
func peak(s *os.ProcessState) int64 {
	if usage, ok := s.SysUsage().(*syscall.Rusage); ok {
		return usage.Maxrss << 10
	}
	return 0
}
