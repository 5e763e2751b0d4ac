package talosdisk

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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

func digest(t *testing.T, r io.Reader) string {
	t.Helper()
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
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
	raw := filepath.Join(t.TempDir(), "disk.raw")
	tool(t, "qemu-img", "convert", "-O", "raw", name, raw)
	f, err := os.Open(raw)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if have, want := digest(t, f), digest(t, io.NewSectionReader(i, 0, Size)); have != want {
		t.Errorf("qemu-img reads another disk: %s, %s", have, want)
	}
	if l, err := Read(f); err != nil || l.Schematic != label.Schematic || l.Version != label.Version {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestZstdReadsTheImage(t *testing.T) {
	i := image(t)
	name := file(t, "disk.raw.zst", i.WriteZstd)
	tool(t, "zstd", "-qt", name)
	sameAsRaw(t, i, "zstd", "-qdc", name)
}

func TestXZReadsTheImage(t *testing.T) {
	i := image(t)
	name := file(t, "disk.raw.xz", i.WriteXZ)
	tool(t, "xz", "-qt", name)
	sameAsRaw(t, i, "xz", "-qdc", name)
}

func sameAsRaw(t *testing.T, i *Image, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if have, want := digest(t, out), digest(t, io.NewSectionReader(i, 0, Size)); have != want {
		t.Errorf("%s gives another disk: %s, %s", args[0], have, want)
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
