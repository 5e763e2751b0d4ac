package fetch

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bastide/internal/image/format"
)

// Nobody writes to the pipe: opening it would wait for ever.
func TestOnlyFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for path, what := range map[string]string{dir: "a folder", pipe: "a pipe", socket: "a socket", "/dev/zero": "a character device"} {
		s, err := Open(t.Context(), path, nil, Options{})
		r := format.Refused(err)
		if s != nil || r == nil || r.Reason != format.NotAFile || !strings.Contains(r.Text, "it is "+what) || r.Do == "" {
			t.Errorf("%s: %v", path, err)
		}
	}
}
