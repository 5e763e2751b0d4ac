package fetch

import (
	"errors"
	"net"
	"os"
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

// An address of another kind is not called a file that does not exist; a scheme is
// the same in capitals.
func TestAddressesOfAnotherKind(t *testing.T) {
	for _, from := range []string{"ftp://127.0.0.1/disk.raw.zst", "s3://bucket/disk.qcow2", "file:///disk.raw"} {
		_, err := Open(t.Context(), from, nil, Options{})
		if r := format.Refused(err); r == nil || !strings.Contains(r.Text, "https://") || r.Do == "" {
			t.Errorf("%s: %v", from, err)
		}
	}
	for _, from := range []string{"nosuch", "./a://b", "dir/a://b"} {
		if _, err := Open(t.Context(), from, nil, Options{}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", from, err)
		}
	}
	if !Remote("HTTPS://example.org/x") || Remote("ftp://example.org/x") {
		t.Error("what is asked of a server is told by its scheme")
	}
}
