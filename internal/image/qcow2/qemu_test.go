package qcow2

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"bastide/internal/image/format"
)

// made is an image that QEMU's tool made of a disk.
func made(t interface{ Fatalf(string, ...any) }, dir string, disk []byte, args ...string) []byte {
	raw, out := filepath.Join(dir, "in.raw"), filepath.Join(dir, "out.qcow2")
	if err := os.WriteFile(raw, disk, 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	args = append(append([]string{"convert", "-f", "raw", "-O", "qcow2"}, args...), raw, out)
	if text, err := exec.Command("qemu-img", args...).CombinedOutput(); err != nil {
		t.Fatalf("qemu-img %v: %v\n%s", args, err, text)
	}
	image, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return image
}

var qemuOptions = [][]string{
	nil,
	{"-o", "cluster_size=8k"}, // the Factory's
	{"-o", "cluster_size=512"},
	{"-o", "cluster_size=2M"},
	{"-o", "compat=0.10"}, // version 2
	{"-o", "lazy_refcounts=on,refcount_bits=64"},
	{"-c"},
	{"-c", "-o", "cluster_size=8k"},
	{"-o", "preallocation=metadata"},
	{"-o", "extended_l2=off,compression_type=zlib"},
}

func TestImagesOfQEMUAreTakenAndRead(t *testing.T) {
	qemu(t)
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		disk := sparse(t)
		disk = append(disk, make([]byte, -len(disk)&511)...)
		args := rapid.SampledFrom(qemuOptions).Draw(t, "options")
		image := made(t, dir, disk, args...)
		length := int64(len(image))
		h, err := Check(bytes.NewReader(image), length, limit)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		for _, known := range []int64{-1, length} {
			if err := stream(image, known); err != nil {
				t.Fatalf("%v, as a stream: %v", args, err)
			}
		}
		got := make([]byte, len(disk))
		if n, err := NewGuest(h, bytes.NewReader(image), length).ReadAt(got, 0); err != nil || n != len(disk) || !bytes.Equal(got, disk) {
			t.Fatalf("%v: the disk inside reads differently: %d bytes, %v", args, n, err)
		}
	})
}

func TestACutImageOfQEMUIsRefused(t *testing.T) {
	qemu(t)
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		disk := sparse(t)
		disk = append(disk, make([]byte, -len(disk)&511)...)
		disk[len(disk)-1] = 1
		args := rapid.SampledFrom(qemuOptions).Draw(t, "options")
		image := made(t, dir, disk, args...)
		image = image[:rapid.IntRange(0, len(image)-1).Draw(t, "cut")]
		if h, err := Check(bytes.NewReader(image), int64(len(image)), limit); err == nil {
			// What was cut off is in no table's use, such as refcounts; the disk must be whole.
			got := make([]byte, len(disk))
			if _, err := NewGuest(h, bytes.NewReader(image), int64(len(image))).ReadAt(got, 0); err != nil || !bytes.Equal(got, disk) {
				t.Fatalf("%v cut to %d was taken and reads differently: %v", args, len(image), err)
			}
		} else if format.Refused(err) == nil {
			t.Fatal(err)
		}
	})
}

func TestWhatQEMUCallsByItsName(t *testing.T) {
	qemu(t)
	dir := t.TempDir()
	base := filepath.Join(dir, "base.qcow2")
	for _, c := range []struct {
		reason format.Reason
		args   []string
	}{
		{format.NeedsOther, []string{"-f", "qcow2", "-b", base, "-F", "qcow2"}},
		{format.NeedsOther, []string{"-f", "qcow2", "-o", "data_file=" + filepath.Join(dir, "data.raw")}},
		{format.NeedsOther, []string{"-f", "qcow2", "-o", "data_file_raw=on,data_file=" + filepath.Join(dir, "data2.raw")}},
		{format.Encrypted, []string{"-f", "qcow2", "--object", "secret,id=s,data=abc", "-o", "encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=10"}},
		{format.Unsupported, []string{"-f", "qcow2", "-o", "extended_l2=on"}},
		{format.Unsupported, []string{"-f", "qcow2", "-o", "compression_type=zstd"}},
		{format.WrongFormat, []string{"-f", "vmdk"}},
		{format.WrongFormat, []string{"-f", "vdi"}},
		{format.WrongFormat, []string{"-f", "vhdx"}},
		{format.WrongFormat, []string{"-f", "vpc"}},
		{format.WrongFormat, []string{"-f", "qed"}},
	} {
		if err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", base, "8M").Run(); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "image")
		if text, err := exec.Command("qemu-img", append(append([]string{"create", "-q"}, c.args...), name, "8M")...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c.args, err, text)
		}
		image, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Check(bytes.NewReader(image), int64(len(image)), limit)
		if r := format.Refused(err); r == nil || r.Reason != c.reason {
			t.Errorf("%v: got %v", c.args, err)
		}
	}
}
