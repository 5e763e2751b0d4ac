package talosdisk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// written is the image as the Factory serves it.
func written(t testing.TB) []byte {
	t.Helper()
	i, err := New(label)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := i.WriteQCOW2(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(b []byte) (*QCOW2, error) { return OpenQCOW2(bytes.NewReader(b), int64(len(b))) }

func TestWhatIsOnADisk(t *testing.T) {
	whole := written(t)
	q, err := open(whole)
	if err != nil || q.Size() != Size {
		t.Fatalf("%v, %v", q, err)
	}
	if l, err := Read(q); err != nil || l.Version != label.Version || l.Schematic != label.Schematic || l.Extensions[0] != label.Extensions[0] {
		t.Errorf("%+v, %v", l, err)
	}
	lost := bytes.Clone(whole)
	clear(lost[20<<20 : 20<<20+8192]) // somebody's writer lost a cluster of a boot partition
	if q, err = open(lost); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(q); !errors.Is(err, ErrNoTalos) {
		t.Errorf("a disk with a hole boots: %v", err)
	}
}

// All that the Factory serves, converted by another program, is the same disk.
func TestOtherWritersImagesAreRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "disk.qcow2")
	if err := os.WriteFile(name, written(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, args := range map[string][]string{
		"version 2":           {"-o", "compat=0.10"},
		"large clusters":      {"-o", "cluster_size=2M"},
		"compressed":          {"-c"},
		"compressed, by zstd": {"-c", "-o", "compression_type=zstd"},
	} {
		t.Run(what, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.qcow2")
			tool(t, append(append([]string{"qemu-img", "convert", "-O", "qcow2"}, args...), name, out)...)
			b, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			q, err := open(b)
			if err != nil {
				t.Fatal(err)
			}
			if l, err := Read(q); err != nil || l.Schematic != label.Schematic {
				t.Errorf("%+v, %v", l, err)
			}
		})
	}
}

func TestWhatIsNoImage(t *testing.T) {
	whole := written(t)
	small := func(at int, v uint32) []byte {
		b := bytes.Clone(whole[:len(whole)])
		binary.BigEndian.PutUint32(b[at:], v)
		return b
	}
	for what, c := range map[string]struct {
		content []byte
		says    string
	}{
		"empty":                {nil, "no QCOW2"},
		"raw":                  {make([]byte, 4096), "no QCOW2"},
		"gzip":                 {append([]byte("\x1f\x8b\x08"), make([]byte, 4096)...), "no QCOW2"},
		"zst":                  {append([]byte("\x28\xb5\x2f\xfd"), make([]byte, 4096)...), "no QCOW2"},
		"HTML":                 {[]byte(strings.Repeat("<html>", 100)), "no QCOW2"},
		"a header alone":       {whole[:headerV3], "cut short"},
		"cut in the middle":    {whole[:len(whole)*6/10], "cut short"},
		"cut at the end":       {whole[:len(whole)-1], "cut short"},
		"another version":      {small(4, 4), "version 4"},
		"a backing file":       {small(16, 9), "backing file"},
		"huge clusters":        {small(20, 40), "2^40"},
		"nothing":              {small(28, 0), "does not fit"},
		"encrypted":            {small(32, 1), "encrypted"},
		"too small a table":    {small(36, 3), "does not fit"},
		"a dirty image":        {small(76, 1), "features"},
		"an external file":     {small(76, 4), "features"},
		"extended tables":      {small(76, 16), "features"},
		"a strange header":     {small(100, 99), "header of 99"},
		"a second table lost":  {small(8192+4, 0xfffe2000), "second table"},
		"a reserved bit":       {small(8192*2, 0x81000000), "byte 0"},
		"a cluster of nowhere": {small(8192*2+4, 0xffff2000), "byte 0"},
	} {
		if what == "nothing" {
			binary.BigEndian.PutUint32(c.content[24:], 0)
			c.says = "0 bytes"
		}
		if _, err := open(c.content); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want something about %q", what, err, c.says)
		}
	}
}

// FuzzOpenQCOW2 changes headers and tables: nothing may panic, hang or read
// outside.
func FuzzOpenQCOW2(f *testing.F) {
	small, err := New(label)
	if err != nil {
		f.Fatal(err)
	}
	small.size = efiStart + 8*sector
	var whole bytes.Buffer
	if err := small.WriteQCOW2(&whole); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add([]byte("QFI\xfb\x00\x00\x00\x02"))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := open(b)
		if err != nil {
			return
		}
		p := make([]byte, 8192)
		for _, at := range []int64{0, 8190, q.Size() - 1, q.Size()} {
			if n, err := q.ReadAt(p, at); err == nil && n < len(p) {
				t.Errorf("%d bytes at %d without an error", n, at)
			}
		}
		if _, err := Read(q); err == nil {
			t.Log("it boots")
		}
	})
}

func TestReadingEndsAtTheEnd(t *testing.T) {
	q, err := open(written(t))
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 1024)
	if n, err := q.ReadAt(p, Size-512); n != 512 || !errors.Is(err, io.EOF) || string(p[:8]) != "EFI PART" {
		t.Errorf("%d, %v: %q", n, err, p[:8])
	}
}
