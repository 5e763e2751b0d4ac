package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"bastide/internal/image/imagetest"
)

type input struct {
	name string
	disk *imagetest.Disk
}

const (
	mib   = int64(1 << 20)
	talos = 4247 * mib // what Talos 1.13 has for amd64
)

// inputs are a disk as the Factory's is, of which a boot menu, a kernel and its
// initramfs are all that there is, each of them twice; and a full one.
var inputs = []input{
	{"4.2 GB, mostly empty", imagetest.New(talos, imagetest.Fresh,
		imagetest.Extent{Offset: 2 * mib, Length: 120 * mib, Dense: true},
		imagetest.Extent{Offset: 1200 * mib, Length: 40 * mib},
		imagetest.Extent{Offset: 2100 * mib, Length: 120 * mib, Dense: true},
		imagetest.Extent{Offset: 3300 * mib, Length: 20 * mib})},
	{"1 GB, dense", imagetest.New(1000*mib, imagetest.Fresh, imagetest.Extent{Offset: mib, Length: 998 * mib})},
}

// make compresses the disk as Talos's own tools do, with zstd.
func (in input) make(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "disk.raw.zst")
	cmd := exec.CommandContext(ctx, "zstd", "-q", "-f", "-T0", "-o", file)
	cmd.Stdin, cmd.Stderr = struct{ io.Reader }{in.disk.Reader()}, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("zstd: %w", err)
	}
	return file, nil
}
