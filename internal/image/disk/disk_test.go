package disk

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"bastide/internal/image/format"
	"bastide/internal/image/imagetest"
)

const size = 64 << 20

// whole is a disk's bytes, changed.
func whole(labels []string, change ...func([]byte)) []byte {
	p := imagetest.New(size, labels).Bytes()
	for _, c := range change {
		c(p)
	}
	return p
}

// reseal makes the header's checksums right again, so that a test is about what
// it changed and not about the checksum.
func reseal(p []byte) {
	binary.LittleEndian.PutUint32(p[512+88:], crc32.ChecksumIEEE(p[1024:1024+128*128]))
	clear(p[512+16 : 512+20])
	binary.LittleEndian.PutUint32(p[512+16:], crc32.ChecksumIEEE(p[512:512+92]))
}

func put64(at int, v uint64) func([]byte) {
	return func(p []byte) { binary.LittleEndian.PutUint64(p[at:], v) }
}

func TestAFreshTalosDisk(t *testing.T) {
	p := whole(imagetest.Fresh)
	table, err := Read(bytes.NewReader(p))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(table.Labels(), " "); got != "EFI BIOS BOOT META" || table.SectorSize != 512 {
		t.Errorf("got %s with sectors of %d bytes", got, table.SectorSize)
	}
	for _, err := range []error{table.Talos(), table.Fits(size), table.CheckBackup(p[table.Backup() : table.Backup()+512])} {
		if err != nil {
			t.Error(err)
		}
	}
	if first := table.Partitions[0]; first.Number != 1 || first.Offset != 1<<20 || first.Size != table.Partitions[1].Offset-1<<20 {
		t.Errorf("got %+v", first)
	}
	if table.Fits(size-512) == nil {
		t.Error("a disk that is a sector short fits")
	}
}

func TestSectorsOf4096Bytes(t *testing.T) {
	small := whole(imagetest.Fresh)
	p := make([]byte, size)
	copy(p, small[:512])
	copy(p[4096:], small[512:1024])
	copy(p[2*4096:], small[1024:1024+128*128])
	table, err := Parse(p)
	if err != nil || table.SectorSize != 4096 || table.Partitions[0].Offset != 8<<20 {
		t.Errorf("got %+v, %v", table, err)
	}
}

func TestDamagedTables(t *testing.T) {
	for name, c := range map[string]struct {
		change []func([]byte)
		reason format.Reason
		says   string
	}{
		"no GPT":                 {[]func([]byte){func(p []byte) { clear(p[512:1024]) }}, format.NoPartitions, "no GPT"},
		"no protective MBR":      {[]func([]byte){func(p []byte) { clear(p[:512]) }}, format.NoPartitions, "protective MBR"},
		"MBR of another kind":    {[]func([]byte){func(p []byte) { p[450] = 0x83 }}, format.NoPartitions, "protective MBR"},
		"a bit of the header":    {[]func([]byte){func(p []byte) { p[512+50] ^= 1 }}, format.Corrupt, "header's checksum"},
		"a bit of the entries":   {[]func([]byte){func(p []byte) { p[1024+300] ^= 1 }}, format.Corrupt, "checksum of its entries"},
		"a header too long":      {[]func([]byte){func(p []byte) { p[512+12], p[512+14] = 0xff, 0xff }}, format.Corrupt, "bytes"},
		"entries without end":    {[]func([]byte){func(p []byte) { p[512+83] = 0xff }, reseal}, format.Corrupt, "announces"},
		"entries of odd size":    {[]func([]byte){func(p []byte) { p[512+84] = 0x81 }, reseal}, format.Corrupt, "announces"},
		"entries far away":       {[]func([]byte){put64(512+72, 1<<40), reseal}, format.Corrupt, "not in front"},
		"entries over all":       {[]func([]byte){put64(512+72, 1<<63), reseal}, format.Corrupt, "names sector"},
		"in another place":       {[]func([]byte){put64(512+24, 7), reseal}, format.Corrupt, "says that it is in 7"},
		"a partition outside":    {[]func([]byte){put64(1024+40, 1<<50), reseal}, format.Corrupt, "outside"},
		"a partition backwards":  {[]func([]byte){put64(1024+40, 1), reseal}, format.Corrupt, "outside"},
		"partitions one on one":  {[]func([]byte){put64(1024+128+32, 2048), reseal}, format.Corrupt, "overlap"},
		"a revision of tomorrow": {[]func([]byte){func(p []byte) { p[512+10] = 2 }, reseal}, format.Corrupt, "revision"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(whole(imagetest.Fresh, c.change...)[:Prefix])
			if r := format.Refused(err); r == nil || r.Reason != c.reason || !strings.Contains(r.Text, c.says) {
				t.Errorf("got %v (%+v)", err, r)
			}
		})
	}
}

func TestTheCopyAtTheEnd(t *testing.T) {
	p := whole(imagetest.Fresh)
	table, err := Parse(p)
	if err != nil {
		t.Fatal(err)
	}
	at := table.Backup()
	other, err := Parse(whole([]string{"EFI", "META"}))
	if err != nil {
		t.Fatal(err)
	}
	for name, check := range map[string]error{
		"zeros":         table.CheckBackup(make([]byte, 512)),
		"short":         table.CheckBackup(p[at : at+60]),
		"the first one": table.CheckBackup(p[512:1024]),
		"another table": other.CheckBackup(p[at : at+512]),
	} {
		if r := format.Refused(check); r == nil || r.Reason != format.Corrupt {
			t.Errorf("%s was taken: %v", name, check)
		}
	}
}

func TestWhatIsNoFreshTalosDisk(t *testing.T) {
	for _, c := range []struct {
		labels string
		taken  bool
		says   string
	}{
		{"EFI BIOS BOOT META", true, ""},
		{"EFI META", true, ""},
		{"EFI META STATE", true, ""}, // as versions before 1.10 made them
		{"EFI BIOS BOOT", false, "META"},
		{"META", false, "boots from"},
		{"cloudimg-rootfs UEFI", false, "cloudimg-rootfs"},
		{"EFI BIOS BOOT META STATE EPHEMERAL", false, "secrets"},
	} {
		table, err := Parse(whole(strings.Fields(c.labels)))
		if err != nil {
			t.Fatal(err)
		}
		if err := table.Talos(); (err == nil) != c.taken || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.labels, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	p := whole(imagetest.Fresh)[:64<<10]
	f.Add(p)
	f.Add(p[:600])
	f.Add(p[:1024])
	f.Fuzz(func(t *testing.T, p []byte) {
		for _, change := range []func([]byte){func([]byte) {}, func(p []byte) {
			if len(p) >= 1024+128*128 {
				reseal(p)
			}
		}} {
			p := bytes.Clone(p)
			change(p)
			table, err := Parse(p)
			if err != nil {
				if format.Refused(err) == nil {
					t.Errorf("not a refusal: %v", err)
				}
				continue
			}
			_ = table.Talos()
			_ = table.Fits(int64(len(p)))
			_ = table.CheckBackup(p[:512])
			for _, part := range table.Partitions {
				if part.Offset < 0 || part.Size <= 0 || part.Offset+part.Size < 0 {
					t.Errorf("got %+v", part)
				}
			}
		}
	})
}
