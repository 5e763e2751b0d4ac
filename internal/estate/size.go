package estate

import (
	"fmt"
	"strconv"
	"strings"
)

// units of a Size, largest first; Scaleway counts in decimal units.
var units = []struct {
	suffix string
	bytes  int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6},
}

// String writes the size in the largest unit that divides it, decimal first.
func (s Size) String() string {
	for _, suffix := range []string{"TB", "GB", "MB", "TiB", "GiB", "MiB"} {
		for _, u := range units {
			if u.suffix == suffix && s != 0 && int64(s)%u.bytes == 0 {
				return fmt.Sprintf("%d%s", int64(s)/u.bytes, u.suffix)
			}
		}
	}
	return fmt.Sprintf("%dB", int64(s))
}

// ParseSize reads a size such as 20GB or 8GiB; a unit is required.
func ParseSize(text string) (Size, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 || n > (1<<62)/u.bytes {
			break
		}
		return Size(n * u.bytes), nil
	}
	return 0, fmt.Errorf("%q is not a size: write a whole number and a unit, such as 20GB or 8GiB", text)
}
