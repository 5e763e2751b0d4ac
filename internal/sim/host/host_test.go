package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
)

// What fails for want of room is told once for each, by name, and nothing else is.
func TestAFullDiskIsTold(t *testing.T) {
	var log bytes.Buffer
	h := New(t.TempDir(), slog.New(slog.NewTextHandler(&log, nil)))
	h.Failed("etcd of a", errors.New("exit status 1"), "panic: invalid page", "goroutine 1")
	h.Failed("etcd of a", nil)
	if h.Trouble() != "" || log.Len() > 0 {
		t.Fatalf("%q, %s", h.Trouble(), &log)
	}
	if info, err := os.Stat(h.reserve()); err != nil || info.Size() != ballast {
		t.Errorf("the reserve: %v, %v", info, err)
	}
	for range 2 {
		h.Failed("etcd of a", errors.New("exit status 2"), `{"level":"fatal","error":"write /x/wal: no space left on device"}`, "goroutine 1")
		h.Failed("kube-apiserver of a", fmt.Errorf("rendering: %w", &fs.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}))
	}
	if _, err := os.Stat(h.reserve()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the reserve is kept: %v", err)
	}
	if !strings.Contains(h.Trouble(), "etcd of a") || !strings.Contains(h.Trouble(), "no space left") || !strings.Contains(h.Trouble(), h.dir) {
		t.Errorf("the trouble is %q", h.Trouble())
	}
	if n := strings.Count(log.String(), "the disk of this machine is full"); n != 2 {
		t.Errorf("told %d times:\n%s", n, &log)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	var none *Host
	none.Failed("x", syscall.ENOSPC)
	if none.Trouble() != "" {
		t.Error("nobody watches, and there is trouble")
	}
}
