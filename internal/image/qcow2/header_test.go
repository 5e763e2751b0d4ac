package qcow2

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"bastide/internal/image/format"
)

const limit = 128 << 30

// sample is an image with a few clusters.
func sample(t interface{ Fatal(...any) }) []byte {
	disk := make([]byte, 40*cluster)
	for i := range disk[:5*cluster] {
		disk[i] = byte(i>>8 + i)
	}
	disk[30*cluster] = 9
	return file(t, disk)
}

func be32(at int, v uint32) func([]byte) []byte {
	return func(p []byte) []byte { binary.BigEndian.PutUint32(p[at:], v); return p }
}

func be64(at int, v uint64) func([]byte) []byte {
	return func(p []byte) []byte { binary.BigEndian.PutUint64(p[at:], v); return p }
}

func both(changes ...func([]byte) []byte) func([]byte) []byte {
	return func(p []byte) []byte {
		for _, c := range changes {
			p = c(p)
		}
		return p
	}
}

func TestFilesThatAreNotTaken(t *testing.T) {
	ends := func(text string) func([]byte) []byte {
		return func([]byte) []byte { return append([]byte(text), make([]byte, 4096)...) }
	}
	for name, c := range map[string]struct {
		change func([]byte) []byte
		reason format.Reason
		says   string
	}{
		"nothing":                 {func([]byte) []byte { return nil }, format.Truncated, "empty"},
		"raw disk":                {func(p []byte) []byte { clear(p); p[510], p[511] = 0x55, 0xaa; return p }, format.WrongFormat, "raw disk"},
		"gzip":                    {ends("\x1f\x8b\x08"), format.WrongFormat, "gzip"},
		"zstd":                    {ends("\x28\xb5\x2f\xfd"), format.WrongFormat, "zstd"},
		"xz":                      {ends("\xfd7zXZ\x00"), format.WrongFormat, "xz"},
		"HTML":                    {ends(" \n<!DOCTYPE html><title>502 Bad Gateway</title>"), format.ServerMessage, "HTML"},
		"JSON":                    {func([]byte) []byte { return []byte(`{"message":"not found"}`) }, format.ServerMessage, "JSON"},
		"begins as JSON":          {ends(`{"`), format.WrongFormat, "no disk image"},
		"XML":                     {ends(`<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>`), format.ServerMessage, "XML"},
		"VMDK":                    {ends("KDMV\x01"), format.WrongFormat, "VMDK"},
		"VHD":                     {ends("conectix"), format.WrongFormat, "VHD"},
		"VHDX":                    {ends("vhdxfile"), format.WrongFormat, "VHDX"},
		"VDI":                     {func(p []byte) []byte { clear(p); copy(p[0x40:], "\x7f\x10\xda\xbe"); return p }, format.WrongFormat, "VDI"},
		"ISO":                     {func(p []byte) []byte { clear(p); copy(p[16*2048+1:], "CD001"); return p }, format.WrongFormat, "ISO"},
		"tar":                     {func(p []byte) []byte { clear(p); copy(p[257:], "ustar"); return p }, format.WrongFormat, "tar"},
		"zip":                     {ends("PK\x03\x04"), format.WrongFormat, "zip"},
		"EFI program":             {ends("MZ"), format.WrongFormat, "EFI program"},
		"noise":                   {ends("\x01\x02\x03"), format.WrongFormat, "no disk image"},
		"ends in its header":      {func(p []byte) []byte { return p[:60] }, format.Truncated, "60 bytes"},
		"ends in version 3":       {func(p []byte) []byte { return p[:80] }, format.Truncated, "80 bytes"},
		"ends before its table":   {func(p []byte) []byte { return p[:cluster] }, format.Truncated, "first table"},
		"ends before its content": {func(p []byte) []byte { return p[:len(p)-3*cluster] }, format.Truncated, "ends after"},
		"version 1":               {be32(4, 1), format.Unsupported, "version 1"},
		"version 4":               {be32(4, 4), format.Unsupported, "version 4"},
		"backing file":            {both(be64(8, 120), be32(16, 10), func(p []byte) []byte { copy(p[120:], "/etc/passwd"); return p }), format.NeedsOther, "backing file"},
		"backing file, no name":   {be32(16, 10), format.NeedsOther, "backing file"},
		"backing format":          {both(be32(104, extBackingName), be32(108, 3)), format.NeedsOther, "backing file"},
		"external data file":      {be64(72, 4), format.NeedsOther, "external data file"},
		"external data by name":   {both(be32(104, extExternalData), be32(108, 11)), format.NeedsOther, "external data file"},
		"AES":                     {be32(32, 1), format.Encrypted, "encrypted"},
		"LUKS":                    {be32(32, 2), format.Encrypted, "encrypted"},
		"LUKS by its extension":   {both(be32(104, extEncryption), be32(108, 16)), format.Encrypted, "encrypted"},
		"dirty":                   {be64(72, 1), format.Corrupt, "closed"},
		"corrupt":                 {be64(72, 2), format.Corrupt, "corrupt"},
		"other compression":       {be64(72, 8), format.Unsupported, "compressed in another way"},
		"extended entries":        {be64(72, 16), format.Unsupported, "extended L2"},
		"feature of tomorrow":     {be64(72, 1<<40), format.Unsupported, "not known"},
		"snapshots inside":        {be32(60, 2), format.Unsupported, "2 internal snapshots"},
		"clusters too small":      {be32(20, 8), format.Corrupt, "2^8"},
		"clusters too large":      {be32(20, 22), format.Corrupt, "2^22"},
		"clusters absurd":         {be32(20, 1<<31), format.Corrupt, "clusters"},
		"header too short":        {be32(100, 72), format.Corrupt, "72 bytes"},
		"header too long":         {be32(100, 1<<30), format.Corrupt, "bytes"},
		"refcounts too wide":      {be32(96, 7), format.Corrupt, "2^7 bits"},
		"extensions without end":  {both(be32(104, 77), be32(108, 1<<31)), format.Corrupt, "does not end"},
		"no disk":                 {be64(24, 0), format.Corrupt, "no bytes"},
		"odd size":                {be64(24, 40*cluster-7), format.Corrupt, "multiple of 512"},
		"too large":               {be64(24, limit+512), format.TooLarge, "limit"},
		"size of all bits":        {be64(24, 1<<64-512), format.TooLarge, "limit"},
		"first table too short":   {be32(36, 0), format.Corrupt, "needs 1"},
		"first table too long":    {be32(36, 1<<30), format.Corrupt, "first table"},
		"first table at 0":        {be64(40, 0), format.Corrupt, "first table"},
		"first table askew":       {be64(40, l1At+512), format.Corrupt, "first table"},
		"first table far away":    {be64(40, 1<<62), format.Corrupt, "first table"},
		"first table behind":      {be64(40, 1<<40), format.Truncated, "first table"},
		"no refcounts":            {be32(56, 0), format.Corrupt, "refcount table"},
		"refcounts behind":        {be64(48, 1<<40), format.Truncated, "refcount table"},
		"second table askew":      {be64(l1At, 1<<20+512), format.Corrupt, "second table"},
		"second table in header":  {be64(l1At, 1<<9), format.Corrupt, "second table"},
		"second table behind":     {be64(l1At, 1<<40), format.Truncated, "second table"},
		"unknown bits in L1":      {func(p []byte) []byte { p[l1At] |= 0x40; return p }, format.Corrupt, "unknown bits"},
	} {
		t.Run(name, func(t *testing.T) {
			image := c.change(sample(t))
			_, err := Check(bytes.NewReader(image), int64(len(image)), limit)
			r := format.Refused(err)
			if r == nil || r.Reason != c.reason || !strings.Contains(r.Text, c.says) {
				t.Errorf("got %v (%+v)", err, r)
			}
			if err := stream(image, int64(len(image))); format.Refused(err) == nil || format.Refused(err).Reason != c.reason {
				t.Errorf("as a stream: %v", err)
			}
			if err := stream(image, -1); format.Refused(err) == nil {
				t.Errorf("as a stream of unknown length: %v", err)
			}
		})
	}
}

// stream checks an image as it comes in pieces.
func stream(image []byte, length int64) error {
	begin := min(len(image), Beginning)
	s, err := NewStream(image[:begin], length, limit)
	if err != nil {
		return err
	}
	for rest := image[begin:]; len(rest) > 0; {
		n := min(len(rest), 100_003)
		if _, err := s.Write(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return s.Close()
}

func TestEntriesThatLeadOutside(t *testing.T) {
	good := sample(t)
	l2 := binary.BigEndian.Uint64(good[l1At:]) & offsetMask
	for name, c := range map[string]struct {
		entry  uint64
		reason format.Reason
	}{
		"behind":            {1 << 40, format.Truncated},
		"askew":             {1<<20 + 512, format.Corrupt},
		"in the header":     {512, format.Corrupt},
		"unknown bits":      {1<<20 | 1<<3, format.Corrupt},
		"compressed at 0":   {compressed, format.Corrupt},
		"compressed behind": {compressed | 1<<40, format.Truncated},
	} {
		image := be64(int(l2), c.entry)(bytes.Clone(good))
		_, err := Check(bytes.NewReader(image), int64(len(image)), limit)
		if r := format.Refused(err); r == nil || r.Reason != c.reason {
			t.Errorf("%s: %v", name, err)
		}
		if r := format.Refused(stream(image, -1)); r == nil {
			t.Errorf("%s, as a stream, was taken", name)
		}
		h, err := ParseHeader(image[:prefix], int64(len(image)), limit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewGuest(h, bytes.NewReader(image), int64(len(image))).ReadAt(make([]byte, 4096), 0); format.Refused(err) == nil {
			t.Errorf("%s, read, gave %v", name, err)
		}
	}
}

func TestAnImageMayHaveAnEmptyDisk(t *testing.T) {
	image := file(t, make([]byte, 3*cluster))
	h, err := Check(bytes.NewReader(image), int64(len(image)), limit)
	if err != nil || h.VirtualSize != 3*cluster || h.Version != 3 || h.ClusterSize != cluster {
		t.Fatal(h, err)
	}
	if err := stream(image, -1); err != nil {
		t.Error(err)
	}
}

// tiny is an image with clusters of 512 bytes, small enough to be changed at random:
// header, refcount table and block, first and second table, and content, a cluster each.
func tiny() []byte {
	p := make([]byte, 6*512)
	for _, put := range []func([]byte) []byte{
		be32(0, magic), be32(4, 3), be32(20, 9), be64(24, 64*512), be32(36, 1), be64(40, 3*512), be64(48, 512), be32(56, 1), be32(96, 4), be32(100, headerLength),
		be64(512, 2*512), be64(3*512, 4*512|copied), be64(4*512, 5*512|copied), be64(4*512+8, 1), be64(4*512+16, compressed|5*512),
	} {
		p = put(p)
	}
	for i := range 6 {
		p[2*512+2*i+1] = 1
	}
	return p
}

func FuzzCheck(f *testing.F) {
	good := tiny()
	if _, err := Check(bytes.NewReader(good), int64(len(good)), limit); err != nil {
		f.Fatal(err)
	}
	for _, p := range [][]byte{good, good[:100], be64(8, 120)(bytes.Clone(good)), be32(20, 12)(bytes.Clone(good)), be64(3*512, 1<<40)(bytes.Clone(good))} {
		f.Add(p, int64(0))
	}
	f.Fuzz(func(t *testing.T, p []byte, at int64) {
		r := &bounded{t: t, p: p}
		h, err := Check(r, int64(len(p)), limit)
		if err != nil && format.Refused(err) == nil {
			t.Errorf("not a refusal: %v", err)
		}
		streamed := stream(p, int64(len(p)))
		if streamed != nil && format.Refused(streamed) == nil {
			t.Errorf("as a stream: not a refusal: %v", streamed)
		}
		if len(p) <= Beginning && (err == nil) != (streamed == nil) {
			t.Errorf("as a whole: %v; as a stream: %v", err, streamed)
		}
		if h == nil {
			return
		}
		if h.VirtualSize <= 0 || h.VirtualSize > limit {
			t.Errorf("a disk of %d bytes was taken", h.VirtualSize)
		}
		g := NewGuest(h, r, int64(len(p)))
		for _, at := range []int64{0, 512, at & (1<<62 - 1), h.VirtualSize - 1} {
			_, _ = g.ReadAt(make([]byte, 2048), at)
		}
	})
}

// bounded fails a test in which something outside of the file is asked for.
type bounded struct {
	t *testing.T
	p []byte
}

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > int64(len(b.p))+1024 { // the sectors of a compressed cluster may end behind
		b.t.Errorf("%d bytes at %d of %d were asked for", len(p), off, len(b.p))
	}
	return bytes.NewReader(b.p).ReadAt(p, max(off, 0))
}
