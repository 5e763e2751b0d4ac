package unpack

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"bastide/internal/image/format"
)

// gappy draws content with runs of zeros on both sides of what a window holds, and
// with data that refers to what was before them.
func gappy(t *rapid.T) []byte {
	var p []byte
	word := make([]byte, 3000)
	_, _ = rand.NewChaCha8([32]byte{byte(rapid.IntRange(0, 255).Draw(t, "seed"))}).Read(word)
	for range rapid.IntRange(1, 4).Draw(t, "runs") {
		p = append(p, word[:rapid.IntRange(0, len(word)).Draw(t, "word")]...)
		p = append(p, make([]byte, rapid.OneOf(rapid.IntRange(0, 5000), rapid.IntRange(300_000, 1_200_000)).Draw(t, "zeros"))...)
	}
	return p
}

// walked is the content by its blocks, and how much of it came as a number.
func walked(t interface{ Fatal(...any) }, in []byte) (p []byte, holes int64) {
	u, err := NewReader(format.Zstd, bytes.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for {
		b, err := u.(Blocks).Next()
		if errors.Is(err, io.EOF) {
			return p, holes
		}
		if err != nil {
			t.Fatal(err)
		}
		p = append(append(p, b.Data...), make([]byte, b.Zeros)...)
		holes += b.Zeros
		u.(Blocks).Free(b)
	}
}

func TestLongRunsOfZerosArePutBack(t *testing.T) {
	var holes int64
	rapid.Check(t, func(r *rapid.T) {
		var want, in []byte
		for range rapid.IntRange(1, 3).Draw(r, "frames") {
			p := gappy(r)
			want = append(want, p...)
			in = append(in, zst(t, p, zstd.WithEncoderCRC(rapid.Bool().Draw(r, "sum")),
				zstd.WithWindowSize(1<<rapid.IntRange(14, 18).Draw(r, "window")), zstd.WithEncoderLevel(rapid.SampledFrom([]zstd.EncoderLevel{
					zstd.SpeedDefault, zstd.SpeedBetterCompression, zstd.SpeedBestCompression}).Draw(r, "level")))...)
		}
		got, n := walked(r, in)
		holes += n
		if !bytes.Equal(got, want) {
			r.Fatal("the blocks make another content")
		}
		read, err := unpacked(format.Zstd, bytes.NewReader(in))
		if err != nil || !bytes.Equal(read, want) {
			r.Fatal("what is read is another content", err)
		}
	})
	if holes == 0 {
		t.Error("no run of zeros came as a number")
	}
}

// A checksum over zeros that were never made is checked all the same.
func TestDamageAroundHolesIsNotOverlooked(t *testing.T) {
	p := append(append([]byte("before"), make([]byte, 1<<20)...), "after"...)
	in := zst(t, p, zstd.WithWindowSize(64<<10), zstd.WithEncoderLevel(zstd.SpeedBetterCompression)) // lower levels write no runs
	if _, holes := walked(t, in); holes < 1<<19 {
		t.Fatalf("only %d bytes of zeros came as a number", holes)
	}
	for at := range in {
		for _, bit := range []int{at % 8, (at + 3) % 8} {
			damaged := bytes.Clone(in)
			damaged[at] ^= 1 << bit
			got, err := unpacked(format.Zstd, bytes.NewReader(damaged))
			if err == nil && !bytes.Equal(got, p) || err != nil && format.Refused(err) == nil {
				t.Fatalf("bit %d of byte %d: %d bytes, %v", bit, at, len(got), err)
			}
		}
		if _, err := unpacked(format.Zstd, bytes.NewReader(in[:at])); at > 0 && format.Refused(err) == nil {
			t.Fatalf("cut to %d bytes: %v", at, err)
		}
	}
}

// Whoever stops in the middle leaves no goroutine behind that waits for him.
func TestCloseInTheMiddle(t *testing.T) {
	u, err := NewReader(format.Zstd, bytes.NewReader(zst(t, bytes.Repeat(content(), 30))))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(u, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
}
