package unpack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"

	"bastide/internal/image/format"
)

func zst(t testing.TB, p []byte, o ...zstd.EOption) []byte {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, o...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(p); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func xzip(t testing.TB, p []byte, c xz.WriterConfig) []byte {
	var out bytes.Buffer
	w, err := c.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(p); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// windowed is a frame that asks for a window of 1<<log bytes, of blocks that are not
// compressed.
func windowed(log int, p []byte) []byte {
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, byte(log-10) << 3}
	for len(p) > 0 {
		n := min(len(p), maxBlock)
		frame = append(header(frame, blockRaw, int64(n), n == len(p)), p[:n]...)
		p = p[n:]
	}
	return frame
}

func unpacked(kind format.Kind, r io.Reader) ([]byte, error) {
	u, err := NewReader(kind, r)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	return io.ReadAll(u)
}

// content is 80 KB of which some can be compressed.
func content() []byte {
	p := make([]byte, 80_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(p[:20_000])
	copy(p[50_000:], p[:15_000])
	return p
}

// short is a beginning of it, for tests that unpack it a thousand times.
func short() []byte { return content()[15_000:35_000] }

func samples(t testing.TB) map[format.Kind][]byte {
	return map[format.Kind][]byte{
		format.Zstd: zst(t, short(), zstd.WithWindowSize(64<<10)),
		format.XZ:   xzip(t, short(), xz.WriterConfig{BlockSize: 10_000, DictCap: 64 << 10}), // three blocks
	}
}

func TestWholeStreams(t *testing.T) {
	p := content()
	frame := zst(t, p)
	skip := append(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 0x184d2a53), 5), "hello"...)
	stream := xzip(t, p, xz.WriterConfig{})
	padding := make([]byte, 8)
	for name, c := range map[string]struct {
		kind  format.Kind
		in    []byte
		times int
	}{
		"a frame":                    {format.Zstd, frame, 1},
		"three frames":               {format.Zstd, bytes.Repeat(frame, 3), 3},
		"frames to skip":             {format.Zstd, bytes.Join([][]byte{skip, frame, skip, frame, skip}, nil), 2},
		"an empty frame between":     {format.Zstd, bytes.Join([][]byte{frame, zst(t, nil, zstd.WithZeroFrames(true)), frame}, nil), 2},
		"no checksum, no size":       {format.Zstd, zst(t, p, zstd.WithEncoderCRC(false), zstd.WithSingleSegment(false)), 1},
		"a large window":             {format.Zstd, windowed(27, p), 1},
		"a stream":                   {format.XZ, stream, 1},
		"three streams":              {format.XZ, bytes.Repeat(stream, 3), 3},
		"padding between and behind": {format.XZ, bytes.Join([][]byte{stream, padding, stream, padding}, nil), 2},
		"many blocks":                {format.XZ, xzip(t, p, xz.WriterConfig{BlockSize: 9_999}), 1},
		"CRC-32":                     {format.XZ, xzip(t, p, xz.WriterConfig{CheckSum: xz.CRC32}), 1},
		"SHA-256":                    {format.XZ, xzip(t, p, xz.WriterConfig{CheckSum: xz.SHA256}), 1},
		"no checksum":                {format.XZ, xzip(t, p, xz.WriterConfig{NoCheckSum: true}), 1},
		"an empty stream":            {format.XZ, xzip(t, nil, xz.WriterConfig{}), 0},
		"a dictionary of 64 MiB":     {format.XZ, xzip(t, p, xz.WriterConfig{DictCap: MaxDictionary}), 1},
		"other properties than xz's": {format.XZ, xzip(t, p, xz.WriterConfig{Properties: &lzma.Properties{LC: 0, LP: 2, PB: 0}}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{bytes.NewReader(c.in), iotest.OneByteReader(bytes.NewReader(c.in)), iotest.DataErrReader(bytes.NewReader(c.in))} {
				got, err := unpacked(c.kind, r)
				if err != nil || !bytes.Equal(got, bytes.Repeat(p, c.times)) {
					t.Errorf("got %d bytes, %v", len(got), err)
				}
			}
		})
	}
}

// otherCheck is a stream whose header, itself sound, announces a checksum of a kind
// that nobody has defined.
func otherCheck(stream []byte) []byte {
	p := bytes.Clone(stream)
	p[7] = 5 // eight bytes, as CRC-64 has
	binary.LittleEndian.PutUint32(p[8:], crc32.ChecksumIEEE(p[6:8]))
	return p
}

// A reader may give nothing now and something later.
func TestAReadOfNothingIsNotTheEnd(t *testing.T) {
	for kind, in := range samples(t) {
		got, err := unpacked(kind, &hesitant{r: iotest.OneByteReader(bytes.NewReader(in))})
		if err != nil || !bytes.Equal(got, short()) {
			t.Errorf("%s: got %d bytes, %v", kind, len(got), err)
		}
	}
}

type hesitant struct {
	r     io.Reader
	times int
}

func (h *hesitant) Read(p []byte) (int, error) {
	if h.times++; h.times%4 != 0 {
		return 0, nil
	}
	return h.r.Read(p)
}

func TestWhatIsRefused(t *testing.T) {
	p := content()
	frame, stream := zst(t, p), xzip(t, p, xz.WriterConfig{})
	crc := bytes.Clone(frame)
	crc[len(crc)-1] ^= 1
	// Descriptor without a window: the content's size, 1 GiB, is the history's as well.
	single := []byte{0x28, 0xb5, 0x2f, 0xfd, 0b10_1_0_0_0_00, 0, 0, 0, 0x40, 1, 0, 0}
	dictionary := []byte{0x28, 0xb5, 0x2f, 0xfd, 0b00_1_0_0_0_01, 77, 1, 1, 0, 0}
	for name, c := range map[string]struct {
		kind   format.Kind
		in     []byte
		reason format.Reason
	}{
		"zstd: a checksum":           {format.Zstd, crc, format.Corrupt},
		"zstd: a byte behind":        {format.Zstd, append(bytes.Clone(frame), 0), format.Truncated}, // which could be a frame's beginning
		"zstd: junk behind":          {format.Zstd, append(bytes.Clone(frame), "<html>"...), format.TrailingJunk},
		"zstd: zeros behind":         {format.Zstd, append(bytes.Clone(frame), make([]byte, 512)...), format.TrailingJunk},
		"zstd: the second cut":       {format.Zstd, append(bytes.Clone(frame), frame[:100]...), format.Truncated},
		"zstd: a window too large":   {format.Zstd, windowed(28, p), format.TooLarge},
		"zstd: a window without one": {format.Zstd, single, format.TooLarge},
		"zstd: a dictionary":         {format.Zstd, dictionary, format.Unsupported},
		"xz: a byte behind":          {format.XZ, append(bytes.Clone(stream), 0), format.TrailingJunk},
		"xz: junk behind":            {format.XZ, append(bytes.Clone(stream), "<html>"...), format.TrailingJunk},
		"xz: junk behind padding":    {format.XZ, append(bytes.Clone(stream), "\x00\x00\x00\x00junk"...), format.TrailingJunk},
		"xz: the second cut":         {format.XZ, append(bytes.Clone(stream), stream[:100]...), format.Truncated},
		"xz: a dictionary too large": {format.XZ, xzip(t, p, xz.WriterConfig{DictCap: MaxDictionary + 1}), format.TooLarge},
		"xz: an unknown checksum":    {format.XZ, otherCheck(stream), format.Unsupported},
		"xz: a second one too large": {format.XZ, append(bytes.Clone(stream), xzip(t, p, xz.WriterConfig{DictCap: 1 << 30})...), format.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unpacked(c.kind, bytes.NewReader(c.in))
			if r := format.Refused(err); r == nil || r.Reason != c.reason {
				t.Errorf("got %v (%+v)", err, r)
			}
		})
	}
}

func TestAStreamThatIsCutAnywhereIsRefused(t *testing.T) {
	for kind, in := range samples(t) {
		for cut := range len(in) {
			if cut > 100 && cut < len(in)-200 && cut%97 != 0 {
				continue
			}
			_, err := unpacked(kind, bytes.NewReader(in[:cut]))
			if cut == 0 {
				continue // nothing at all is recognised as empty before
			}
			if r := format.Refused(err); r == nil || r.Reason != format.Truncated {
				t.Fatalf("%s cut to %d of %d bytes: %v", kind, cut, len(in), err)
			}
		}
	}
}

func TestABitThatFlipsIsNotOverlooked(t *testing.T) {
	p := short()
	for kind, in := range samples(t) {
		for at := 0; at < len(in); at += 1 + at/40 {
			for _, bit := range []int{at % 8, (at + 3) % 8} {
				damaged := bytes.Clone(in)
				damaged[at] ^= 1 << bit
				got, err := unpacked(kind, bytes.NewReader(damaged))
				if err == nil && !bytes.Equal(got, p) {
					t.Errorf("%s with bit %d of byte %d flipped gives something else without an error", kind, bit, at)
				}
				if err != nil && format.Refused(err) == nil {
					t.Errorf("%s with bit %d of byte %d flipped: not a refusal: %v", kind, bit, at, err)
				}
			}
		}
	}
}

// What the network says is the network's error, even where a decoder would take it
// for the stream's end.
func TestErrorsOfTheSourceStayThemselves(t *testing.T) {
	for kind, in := range samples(t) {
		for _, cut := range []int{3, 100, len(in) / 2, len(in)} {
			for _, broken := range []error{errors.New("connection reset"), io.ErrUnexpectedEOF} {
				_, err := unpacked(kind, io.MultiReader(bytes.NewReader(in[:cut]), iotest.ErrReader(broken)))
				if !errors.Is(err, broken) || format.Refused(err) != nil {
					t.Errorf("%s after %d bytes: %v became %v", kind, cut, broken, err)
				}
			}
		}
	}
}

func FuzzUnpack(f *testing.F) {
	small := bytes.Repeat([]byte("bastide "), 100)
	f.Add(true, zst(f, small))
	f.Add(true, bytes.Repeat(zst(f, small), 2))
	f.Add(false, xzip(f, small, xz.WriterConfig{}))
	f.Add(false, append(xzip(f, small, xz.WriterConfig{BlockSize: 50}), make([]byte, 4)...))
	f.Fuzz(func(t *testing.T, isZstd bool, p []byte) {
		kind := format.XZ
		if isZstd {
			kind = format.Zstd
		}
		if format.Sniff(p) != kind {
			return
		}
		u, err := NewReader(kind, bytes.NewReader(p))
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		if _, err := io.Copy(io.Discard, io.LimitReader(u, 64<<20)); err != nil && format.Refused(err) == nil {
			t.Errorf("not a refusal: %v", err)
		}
	})
}
