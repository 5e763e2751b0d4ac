package sim

import "testing"

func TestSizeOfASnapshot(t *testing.T) {
	for disk, want := range map[int64]int64{
		1 << 30:    1 << 30, // as recorded
		4247 << 20: 5e9,
		3e9:        3e9,
		3e9 + 1:    4e9,
	} {
		if got := snapshotSize(disk); got != want {
			t.Errorf("%d: %d, want %d", disk, got, want)
		}
	}
}
