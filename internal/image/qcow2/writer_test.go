package qcow2

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// file is an image that was written in one pass, put together as a sink does.
func file(t interface{ Fatal(...any) }, disk []byte, cuts ...int) []byte {
	body := bytes.NewBuffer(make([]byte, HeadSize))
	w := NewWriter(body)
	for _, n := range cuts {
		n = min(n, len(disk))
		if _, err := w.Write(disk[:n]); err != nil {
			t.Fatal(err)
		}
		disk = disk[n:]
	}
	if _, err := w.Write(disk); err != nil {
		t.Fatal(err)
	}
	head, _, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if int64(body.Len()) != w.Written() {
		t.Fatal("the writer says that the file has another length than it has", w.Written(), body.Len())
	}
	copy(body.Bytes(), head)
	return body.Bytes()
}

// sparse draws a disk of up to some MiB with runs of data and of zeros.
func sparse(t *rapid.T) []byte {
	var disk []byte
	for range rapid.IntRange(1, 12).Draw(t, "runs") {
		n := rapid.OneOf(rapid.IntRange(1, 3*cluster), rapid.Map(rapid.IntRange(1, 40), func(n int) int { return n * cluster })).Draw(t, "length")
		run := make([]byte, n)
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0: // zeros
		case 1: // one byte in zeros, where vector comparisons have their edges
			run[rapid.IntRange(0, n-1).Draw(t, "at")] = 1
		default:
			r := rand.NewChaCha8([32]byte{byte(rapid.IntRange(0, 255).Draw(t, "seed"))})
			_, _ = r.Read(run)
		}
		disk = append(disk, run...)
	}
	return disk
}

func qemu(t testing.TB) {
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip("qemu-img is not installed (Debian: qemu-utils); this test asks it whether it accepts what is written here")
	}
}

// accepted asks QEMU's own tool.
func accepted(t interface{ Fatalf(string, ...any) }, dir string, disk, image []byte) {
	raw, qcow := filepath.Join(dir, "disk.raw"), filepath.Join(dir, "disk.qcow2")
	padded := append(bytes.Clone(disk), make([]byte, -len(disk)&511)...)
	if err := os.WriteFile(raw, padded, 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	if err := os.WriteFile(qcow, image, 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	same(t, raw, qcow)
}

// same asks for a sound image and for the same content and, of which compare only
// warns, the same size.
func same(t interface{ Fatalf(string, ...any) }, raw, qcow string) {
	for _, args := range [][]string{
		{"check", "-f", "qcow2", qcow},
		{"compare", "-f", "raw", "-F", "qcow2", raw, qcow},
	} {
		out, err := exec.Command("qemu-img", args...).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("Warning")) {
			t.Fatalf("qemu-img %v: %v\n%s", args, err, out)
		}
	}
}

func TestQEMUAcceptsRandomDisks(t *testing.T) {
	qemu(t)
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		disk := sparse(t)
		accepted(t, dir, disk, file(t, disk))
	})
}

// A disk over several L2 tables and with more than one refcount block's worth of
// file is sparse, so it is written as a file with holes.
func TestQEMUAcceptsALargeDisk(t *testing.T) {
	qemu(t)
	dir := t.TempDir()
	raw, err := os.Create(filepath.Join(dir, "disk.raw"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	const size = 3*perL1 + 5*512
	for _, at := range []int64{0, perL1 - 1, 2 * perL1, size - 1} { // the second table stays half empty, the third begins with data
		if _, err := raw.WriteAt([]byte{7}, at); err != nil {
			t.Fatal(err)
		}
	}
	out, err := os.Create(filepath.Join(dir, "disk.qcow2"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := out.Seek(HeadSize, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	w := NewWriter(out)
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, io.NewSectionReader(raw, 0, size), make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	head, got, err := w.Close()
	if err != nil || got != size {
		t.Fatal(got, err)
	}
	if _, err := out.WriteAt(head, 0); err != nil {
		t.Fatal(err)
	}
	if err := raw.Truncate(size); err != nil {
		t.Fatal(err)
	}
	same(t, raw.Name(), out.Name())
}

func TestTheSameDiskGivesTheSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := sparse(t)
		cuts := rapid.SliceOfN(rapid.IntRange(0, 200_000), 0, 20).Draw(t, "cuts")
		if !bytes.Equal(file(t, disk), file(t, disk, cuts...)) {
			t.Fatal("how the disk is cut into writes shows in the file")
		}
	})
}

func TestSkippedZerosAreZeros(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := sparse(t)
		body := bytes.NewBuffer(make([]byte, HeadSize))
		w := NewWriter(body)
		for rest := disk; len(rest) > 0; {
			n := min(rapid.IntRange(1, 300_000).Draw(t, "cut"), len(rest))
			var err error
			if Zero(rest[:n]) {
				err = w.Skip(int64(n))
			} else {
				_, err = w.Write(rest[:n])
			}
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		head, _, err := w.Close()
		if err != nil {
			t.Fatal(err)
		}
		copy(body.Bytes(), head)
		if !bytes.Equal(body.Bytes(), file(t, disk)) {
			t.Fatal("skipped zeros give another file than written ones")
		}
	})
	w := NewWriter(io.Discard)
	if err := w.Skip(5*perL1 + 3); err != nil || w.size != 5*perL1 || len(w.l1) != 5 {
		t.Error(w.size, len(w.l1), err)
	}
	if err := w.Skip(MaxVirtual); err != ErrTooLarge {
		t.Error(err)
	}
}

// Counting is what a second refcount block, at 2 GiB of file, needs to be right.
func TestRefcountBlocksCountThemselves(t *testing.T) {
	for _, clusters := range []int64{3, perBlock - 2, perBlock - 1, perBlock, 2*perBlock - 2, 2*perBlock - 1, 2 * perBlock} {
		w := NewWriter(io.Discard)
		w.next = clusters * cluster
		blocks, err := w.refcounts()
		if err != nil {
			t.Fatal(err)
		}
		if total := w.next / cluster; int64(len(blocks)) != (total+perBlock-1)/perBlock {
			t.Errorf("%d clusters with their blocks have %d blocks", total, len(blocks))
		}
	}
}

func TestEmptyAndTooLargeDisks(t *testing.T) {
	if _, _, err := NewWriter(io.Discard).Close(); err == nil {
		t.Error("an empty disk was closed without an error")
	}
	w := NewWriter(io.Discard)
	w.size = MaxVirtual - cluster
	if _, err := w.Write(make([]byte, cluster)); err != nil {
		t.Error(err)
	}
	if _, err := w.Write(make([]byte, cluster)); err != ErrTooLarge {
		t.Errorf("got %v", err)
	}
}

func TestZero(t *testing.T) {
	for n := range 300 {
		p := make([]byte, n)
		if !Zero(p) {
			t.Fatalf("%d zeros are not zeros", n)
		}
		for i := range p {
			p[i] = 1
			if Zero(p) {
				t.Fatalf("a byte at %d of %d was overlooked", i, n)
			}
			p[i] = 0
		}
	}
}

func BenchmarkZero(b *testing.B) {
	p := make([]byte, cluster)
	b.SetBytes(cluster)
	for b.Loop() {
		Zero(p)
	}
}
