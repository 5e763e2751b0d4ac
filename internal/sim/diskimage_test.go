package sim

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

func TestSizeOfADiskImage(t *testing.T) {
	good := qcow2Header{Magic: qcow2Magic, Version: 3, ClusterBits: 16, Size: 1 << 30}
	for _, c := range []struct {
		name   string
		change func(*qcow2Header)
		size   int64
		says   string
	}{
		{name: "as recorded: 1 GiB stays", size: 1 << 30},
		{name: "Talos's 4247 MiB become 5 GB", change: func(h *qcow2Header) { h.Size = 4247 << 20 }, size: 5e9},
		{name: "version 2", change: func(h *qcow2Header) { h.Version = 2 }, size: 1 << 30},
		{name: "raw", change: func(h *qcow2Header) { h.Magic = 0 }, says: "no QCOW2"},
		{name: "an unknown version", change: func(h *qcow2Header) { h.Version = 4 }, says: "no QCOW2"},
		{name: "an overlay", change: func(h *qcow2Header) { h.BackingOffset, h.BackingLength = 104, 9 }, says: "backing file"},
		{name: "nothing", change: func(h *qcow2Header) { h.Size = 0 }, says: "not possible"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := good
			if c.change != nil {
				c.change(&h)
			}
			var b bytes.Buffer
			if err := binary.Write(&b, binary.BigEndian, h); err != nil {
				t.Fatal(err)
			}
			size, err := qcow2Size(&b)
			if size != c.size || (err == nil) != (c.says == "") || (err != nil && !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%d, %v; want %d, %q", size, err, c.size, c.says)
			}
		})
	}
	if _, err := qcow2Size(strings.NewReader("QFI")); err == nil {
		t.Error("a cut image has a size")
	}
}
