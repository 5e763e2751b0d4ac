package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"bastide/internal/image/format"
	"bastide/internal/image/imagetest"
	"bastide/internal/outcome"
)

// memory is a sink that keeps the file.
type memory struct {
	body, head []byte
	heads      int
	fail       error // of the next write
}

func (m *memory) Write(p []byte) (int, error) {
	if m.fail != nil {
		return 0, m.fail
	}
	m.body = append(m.body, p...)
	return len(p), nil
}

func (m *memory) Head(head []byte) error {
	m.head = bytes.Clone(head)
	m.heads++
	return nil
}

func (m *memory) file() []byte { return append(bytes.Clone(m.head), m.body...) }

// talos is a small disk with some content.
func talos(labels ...string) *imagetest.Disk {
	if labels == nil {
		labels = imagetest.Fresh
	}
	return imagetest.New(7<<20+512, labels, imagetest.Extent{Offset: 2 << 20, Length: 1 << 20, Dense: true}, imagetest.Extent{Offset: 5 << 20, Length: 1 << 19})
}

func zst(t testing.TB, p []byte) []byte {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(p)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// talosXZ is made once, because making it takes longer than a test.
var talosXZ = sync.OnceValue(func() []byte {
	var out bytes.Buffer
	w, err := xz.NewWriter(&out)
	if err == nil {
		_, err = w.Write(talos().Bytes())
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		panic(err)
	}
	return out.Bytes()
})

// local is a source that can be read anywhere, as a file can.
type local struct {
	*bytes.Reader
}

func (l local) At() io.ReaderAt { return l.Reader }
func (l local) Length() int64   { return l.Size() }

func TestOneDiskInAllItsForms(t *testing.T) {
	raw := talos().Bytes()
	first := &memory{}
	want, err := Convert(context.Background(), bytes.NewReader(raw), first, Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := first.file()
	if want.VirtualSize != int64(len(raw)) || want.FileSize != int64(len(file)) || want.FileSize > 6<<20 || !want.Converted || want.Format != format.Raw {
		t.Errorf("got %+v", want)
	}
	sum := sha256.Sum256(append(bytes.Clone(file[HeadSize:]), file[:HeadSize]...))
	if want.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
		t.Errorf("the digest is not that of the body and then the head: %s", want.Digest)
	}
	if got := strings.Join(want.Disk.Labels(), " "); got != "EFI BIOS BOOT META" {
		t.Errorf("got partitions %s", got)
	}
	for name, c := range map[string]struct {
		source    []byte
		format    format.Kind
		content   format.Kind
		converted bool
	}{
		"raw":       {raw, format.Raw, format.Raw, true},
		"raw.zst":   {zst(t, raw), format.Zstd, format.Raw, true},
		"frames":    {append(zst(t, raw[:3_654_321]), zst(t, raw[3_654_321:])...), format.Zstd, format.Raw, true},
		"raw.xz":    {bytes.Clone(talosXZ()), format.XZ, format.Raw, true},
		"qcow2":     {file, format.QCOW2, format.QCOW2, false},
		"qcow2.zst": {zst(t, file), format.Zstd, format.QCOW2, false},
	} {
		t.Run(name, func(t *testing.T) {
			for how, source := range map[string]io.Reader{
				"as a stream":    bytes.NewBuffer(c.source),
				"in odd pieces":  iotest.HalfReader(bytes.NewReader(c.source)),
				"as a file":      local{bytes.NewReader(c.source)},
				"without a sink": nil,
			} {
				var got *Result
				var err error
				sink := &memory{}
				if source == nil {
					got, err = Check(context.Background(), bytes.NewReader(c.source), Options{SourceDigest: true})
				} else {
					got, err = Convert(context.Background(), source, sink, Options{SourceDigest: true})
				}
				if err != nil {
					t.Fatal(how, err)
				}
				if got.Digest != want.Digest || got.VirtualSize != want.VirtualSize || got.FileSize != want.FileSize {
					t.Errorf("%s: got %+v, want %+v", how, got, want)
				}
				if source != nil && (sink.heads != 1 || !bytes.Equal(sink.file(), file)) {
					t.Errorf("%s: another file was written", how)
				}
				sum := sha256.Sum256(c.source)
				if got.SourceDigest != "sha256:"+hex.EncodeToString(sum[:]) || got.SourceSize != int64(len(c.source)) {
					t.Errorf("%s: the source is said to have %d bytes and digest %s", how, got.SourceSize, got.SourceDigest)
				}
				if got.Format != c.format || got.Content != c.content || got.Converted != c.converted || got.Disk == nil {
					t.Errorf("%s: got %+v", how, got)
				}
			}
		})
	}
}

func TestQEMUComparesEqual(t *testing.T) {
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip("qemu-img is not installed (Debian: qemu-utils); this test compares what was written with it")
	}
	dir := t.TempDir()
	raw := talos().Bytes()
	if err := os.WriteFile(filepath.Join(dir, "disk.raw"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(dir, "disk.qcow2"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := Convert(context.Background(), bytes.NewReader(zst(t, raw)), NewFileSink(out), Options{}); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"check disk.qcow2", "compare disk.raw disk.qcow2"} {
		cmd := exec.Command("qemu-img", strings.Fields(args)...)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil || bytes.Contains(text, []byte("Warning")) {
			t.Errorf("qemu-img %s: %v\n%s", args, err, text)
		}
	}
	// The Factory's own: clusters of 8 KiB.
	cmd := exec.Command("qemu-img", strings.Fields("convert -f raw -O qcow2 -o cluster_size=8k disk.raw factory.qcow2")...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	factory, err := os.ReadFile(filepath.Join(dir, "factory.qcow2"))
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []io.Reader{bytes.NewBuffer(factory), local{bytes.NewReader(factory)}} {
		sink := &memory{}
		got, err := Convert(context.Background(), source, sink, Options{})
		if err != nil || got.Converted || got.VirtualSize != int64(len(raw)) || !bytes.Equal(sink.file(), factory) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	for _, cut := range []int{len(factory) - 100_000, len(factory) / 2, 100_000, 100} {
		for _, source := range []io.Reader{bytes.NewBuffer(factory[:cut]), local{bytes.NewReader(factory[:cut])}} {
			sink := &memory{}
			_, err := Convert(context.Background(), source, sink, Options{})
			if r := format.Refused(err); r == nil || r.Reason != format.Truncated || sink.heads != 0 {
				t.Errorf("cut to %d bytes: %v", cut, err)
			}
		}
	}
}

func TestWhatIsNotTaken(t *testing.T) {
	raw := talos().Bytes()
	flipped := zst(t, raw)
	flipped[len(flipped)/2] ^= 4
	padded := append(bytes.Clone(raw[:4<<20]), make([]byte, len(raw)-4<<20)...)
	without := func(at int64) []byte { // the file system that begins there
		p := bytes.Clone(raw)
		clear(p[at : at+512])
		return p
	}
	for name, c := range map[string]struct {
		source  []byte
		reason  format.Reason
		says    string
		touched bool // the sink may have got something before this could be known
	}{
		"empty":                  {nil, format.Truncated, "empty", false},
		"HTML":                   {[]byte("<!doctype html><html>busy"), format.ServerMessage, "HTML", false},
		"gzip":                   {[]byte("\x1f\x8b\x08\x00"), format.WrongFormat, "gzip", false},
		"VMDK":                   {[]byte("KDMV"), format.WrongFormat, "VMDK", false},
		"noise":                  {[]byte("hello"), format.WrongFormat, "no disk image", false},
		"raw of another system":  {talos("root", "boot").Bytes(), format.NotTalos, "root", false},
		"raw of a node that ran": {talos("EFI", "META", "STATE", "EPHEMERAL").Bytes(), format.NotTalos, "secrets", false},
		"raw without a GPT":      {append(bytes.Clone(raw[:512]), make([]byte, 4<<20)...), format.NoPartitions, "no GPT", false},
		"raw, its beginning":     {raw[:600], format.Corrupt, "partition table", false},
		"raw, half":              {raw[:len(raw)/2], format.Truncated, "partition table is that of", true},
		"raw, a sector short":    {raw[:len(raw)-512], format.Truncated, "partition table is that of", true},
		"raw, cut and filled up": {padded, format.Corrupt, "at the end of the disk", true},
		"zst, half":              {zst(t, raw)[:600_000], format.Truncated, "ends early", true},
		"zst, damaged":           {flipped, format.Corrupt, "damaged", true},
		"zst and junk":           {append(zst(t, raw), "junk"...), format.TrailingJunk, "follows", true},
		"zst of half a disk":     {zst(t, raw[:len(raw)/2]), format.Truncated, "partition table is that of", true},
		"zst of HTML":            {zst(t, []byte("<html>")), format.ServerMessage, "inside the zstd stream: it is HTML", false},
		"zst of nothing":         {zst(t, nil), format.Truncated, "empty", false},
		"zst of zst":             {zst(t, zst(t, raw)), format.WrongFormat, "inside the zstd stream: it is compressed with zstd", false},
		"raw, twice":             {append(bytes.Clone(raw), raw...), format.TrailingJunk, "something else follows", true},
		"raw and one byte":       {append(bytes.Clone(raw), 1), format.TrailingJunk, "something else follows, at byte 7340544", true},
		"raw, far behind":        {append(append(bytes.Clone(raw), make([]byte, 3<<20)...), 1), format.TrailingJunk, "something else follows", true},
		"zst, twice":             {append(zst(t, raw), zst(t, raw)...), format.TrailingJunk, "something else follows", true},
		"raw with an empty EFI":  {without(1 << 20), format.NotTalos, "EFI begins with zeros where a FAT", true},
		"raw with an empty BOOT": {without(3 << 20), format.NotTalos, "BOOT begins with zeros where a XFS", true},
		"zst with an empty EFI":  {zst(t, without(1<<20)), format.NotTalos, "EFI begins with zeros", true},
		"a program with a [":     {[]byte("[\x00\x01\xff"), format.WrongFormat, "no disk image", false},
		"JSON":                   {[]byte("[{\"ä\": 1}]\n"), format.ServerMessage, "JSON", false},
		"xz, half":               {bytes.Clone(talosXZ())[:600_000], format.Truncated, "ends early", true},
		"xz and junk":            {append(bytes.Clone(talosXZ()), 'x'), format.TrailingJunk, "follows", true},
	} {
		t.Run(name, func(t *testing.T) {
			sink := &memory{}
			_, err := Convert(context.Background(), bytes.NewReader(c.source), sink, Options{})
			r := format.Refused(err)
			if r == nil || r.Reason != c.reason || !strings.Contains(r.Text, c.says) {
				t.Errorf("got %v (%+v)", err, r)
			}
			if sink.heads != 0 || !c.touched && len(sink.body) > 0 {
				t.Errorf("the sink was given %d bytes and %d heads", len(sink.body), sink.heads)
			}
		})
	}
}

func TestTheLimit(t *testing.T) {
	raw := talos().Bytes()
	qcow := &memory{}
	if _, err := Convert(context.Background(), bytes.NewReader(raw), qcow, Options{Limit: int64(len(raw))}); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string][]byte{
		"by its table": raw, "by its length": append(bytes.Clone(raw), make([]byte, 4096)...), "qcow2": qcow.file(), "zst": zst(t, raw),
	} {
		limit := int64(len(raw))
		if name != "by its length" {
			limit--
		}
		_, err := Convert(context.Background(), bytes.NewReader(p), &memory{}, Options{Limit: limit})
		if r := format.Refused(err); r == nil || r.Reason != format.TooLarge {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Neither a full store nor a broken line nor the user ends with a head.
func TestOtherPeoplesErrorsStayThemselves(t *testing.T) {
	full, reset := errors.New("no room"), errors.New("connection reset")
	raw := talos().Bytes()
	for kind, p := range map[string][]byte{"raw": raw, "zst": zst(t, raw), "xz": bytes.Clone(talosXZ())} {
		sink := &memory{fail: full}
		if _, err := Convert(context.Background(), bytes.NewReader(p), sink, Options{}); !errors.Is(err, full) || sink.heads != 0 {
			t.Errorf("%s: a sink's error became %v", kind, err)
		}
		cuts := []int{0, 100, len(p) / 2, len(p)}
		if kind == "xz" {
			cuts = cuts[:2] // the others take long, and are in unpack
		}
		for _, cut := range cuts {
			for _, broken := range []error{reset, io.ErrUnexpectedEOF} {
				sink := &memory{}
				_, err := Convert(context.Background(), io.MultiReader(bytes.NewReader(p[:cut]), iotest.ErrReader(broken)), sink, Options{})
				if !errors.Is(err, broken) || format.Refused(err) != nil || sink.heads != 0 {
					t.Errorf("%s after %d bytes: %v became %v", kind, cut, broken, err)
				}
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		sink = &memory{}
		source := io.MultiReader(bytes.NewReader(p[:len(p)/2]), readerFunc(func([]byte) (int, error) { cancel(); return 0, nil }), bytes.NewReader(p[len(p)/2:]))
		if _, err := Convert(ctx, source, sink, Options{}); !errors.Is(err, context.Canceled) || sink.heads != 0 {
			t.Errorf("%s: after a cancel: %v", kind, err)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A look ends where the beginning has shown what it is, and refuses what it can.
func TestALookReadsTheBeginningOnly(t *testing.T) {
	raw := talos().Bytes()
	file := &memory{}
	if _, err := Convert(t.Context(), bytes.NewReader(raw), file, Options{}); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string][]byte{"raw": raw, "raw.zst": zst(t, raw), "raw.xz": talosXZ(), "qcow2": file.file()} {
		read := &counter{r: bytes.NewReader(p)}
		if err := Look(t.Context(), read, Options{}); err != nil || name == "raw" && read.n >= len(raw)/2 {
			t.Errorf("%s: %v after %d of %d bytes", name, err, read.n, len(p))
		}
		r := format.Refused(Look(t.Context(), bytes.NewReader(p), Options{Limit: 1 << 20}))
		if r == nil || r.Reason != format.TooLarge || r.Do == "" {
			t.Errorf("%s, too large: %+v", name, r)
		}
	}
	if r := format.Refused(Look(t.Context(), bytes.NewReader(talos("root").Bytes()), Options{})); r == nil || r.Reason != format.NotTalos {
		t.Errorf("another disk: %+v", r)
	}
}

// One layer is taken off, so nobody is told to let it be done who has two.
func TestCompressedTwice(t *testing.T) {
	r := format.Refused(Look(t.Context(), bytes.NewReader(zst(t, zst(t, talos().Bytes()))), Options{}))
	if r == nil || r.Reason != format.WrongFormat || !strings.Contains(r.Do, "`zstd -d`") || strings.Contains(r.Do, "bastide") {
		t.Errorf("%+v", r)
	}
}

// Every refusal says what to do.
func TestARefusalWithoutAdviceGetsSome(t *testing.T) {
	var told *outcome.Error
	if err := Explain("it was not taken", format.Refuse(format.Corrupt, format.Raw, "it is damaged")); !errors.As(err, &told) || told.Do == "" {
		t.Errorf("%v", err)
	}
}

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}
