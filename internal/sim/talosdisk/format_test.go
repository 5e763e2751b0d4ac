package talosdisk

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

var label = Label{Version: "v1.13.5", Schematic: "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba",
	Extensions: []string{"siderolabs/gvisor"}, Platform: "scaleway"}

func image(t *testing.T) *Image {
	t.Helper()
	i, err := New(label)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// file writes one of the formats to a file.
func file(t *testing.T, name string, write func(io.Writer) error) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := errors.Join(write(w), w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

// tool runs a program that knows a format better than this package does.
func tool(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skipf("%s is not installed: what it would say of the image is not known", args[0])
	}
	out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func digest(t *testing.T, r io.Reader) uint64 {
	t.Helper()
	sum := xxhash.New()
	if _, err := io.CopyBuffer(sum, struct{ io.Reader }{r}, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	return sum.Sum64()
}

// sparse writes the disk to a file as it is.
func sparse(t *testing.T, i *Image) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "disk.raw")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range i.extents {
		if _, err := io.Copy(io.NewOffsetWriter(f, e.from), io.NewSectionReader(i, e.from, e.length)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Truncate(Size), f.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestQEMUReadsTheImage(t *testing.T) {
	i := image(t)
	name := file(t, "disk.qcow2", i.WriteQCOW2)
	if said := tool(t, "qemu-img", "check", name); !strings.Contains(said, "No errors") {
		t.Error(said)
	}
	if said := tool(t, "qemu-img", "info", name); !strings.Contains(said, "(4453302272 bytes)") || !strings.Contains(said, "cluster_size: 8192") {
		t.Error(said)
	}
	if said := tool(t, "qemu-img", "compare", "-f", "raw", "-F", "qcow2", sparse(t, i), name); !strings.Contains(said, "identical") {
		t.Error(said)
	}
}

func TestZstdReadsTheImage(t *testing.T) {
	i := image(t)
	name := file(t, "disk.raw.zst", i.WriteZstd)
	sameAsRaw(t, i, "zstd", "-qdc", name) // which looks at the checksum too
}

// The disk is cut off behind the first payload and a stretch of nothing: xz takes
// too long for a whole one.
func TestXZReadsTheImage(t *testing.T) {
	i := image(t)
	i.size = 200*mib + 12345
	name := file(t, "disk.raw.xz", i.WriteXZ)
	tool(t, "xz", "-qt", name)
	sameAsRaw(t, i, "xz", "-qdc", name)
}

func sameAsRaw(t *testing.T, i *Image, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skipf("%s is not installed: what it would make of the image is not known", args[0])
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if have, want := digest(t, out), digest(t, io.NewSectionReader(i, 0, i.size)); have != want {
		t.Errorf("%s gives another disk: %x, %x", args[0], have, want)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestTheSameLabelMakesTheSameBytes(t *testing.T) {
	var one, two bytes.Buffer
	if err := errors.Join(image(t).WriteQCOW2(&one), image(t).WriteQCOW2(&two)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("two writings differ")
	}
}

// blkid knows partition tables and the beginnings of file systems.
func TestBlkidSeesTalos(t *testing.T) {
	raw := sparse(t, image(t))
	if said := tool(t, "blkid", "-p", raw); !strings.Contains(said, `PTTYPE="gpt"`) {
		t.Error(said)
	}
	for _, p := range []struct {
		name     string
		at, size int64
		fs       string
	}{{"EFI", efiStart, efiSize, `TYPE="vfat"`}, {"BOOT", bootStart, bootSize, `TYPE="xfs"`}} {
		said := tool(t, "blkid", "-p", "-O", fmt.Sprint(p.at), "-S", fmt.Sprint(p.size), raw)
		if !strings.Contains(said, p.fs) {
			t.Errorf("%s: %s", p.name, said)
		}
	}
}
