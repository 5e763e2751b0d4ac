package estate

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// Units of a Size. Scaleway counts volumes in decimal units, etcd and memory
// are counted in binary ones.
const (
	MB  Size = 1e6
	GB  Size = 1e9
	TB  Size = 1e12
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

var (
	writtenSize = regexp.MustCompile(`^([0-9]{1,12})(MB|GB|TB|MiB|GiB)$`)
	sizeUnits   = map[string]Size{"MB": MB, "GB": GB, "TB": TB, "MiB": MiB, "GiB": GiB}
)

// ParseSize reads a whole number with a unit: MB, GB, TB (decimal) or MiB, GiB (binary).
func ParseSize(text string) (Size, error) {
	m := writtenSize.FindStringSubmatch(text)
	if m == nil {
		return 0, errors.New("it has to be a whole number directly followed by MB, GB, TB, MiB or GiB")
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the number cannot be read: %w", err)
	}
	unit := sizeUnits[m[2]]
	if n > math.MaxInt64/int64(unit) {
		return 0, errors.New("it is larger than any disk")
	}
	return Size(n) * unit, nil
}

// String writes the size in the largest unit that holds it in whole numbers,
// in a form that ParseSize reads back; a size that has none is given in bytes.
func (s Size) String() string {
	for _, u := range []struct {
		name string
		unit Size
	}{{"TB", TB}, {"GiB", GiB}, {"GB", GB}, {"MiB", MiB}, {"MB", MB}} {
		if s != 0 && s%u.unit == 0 {
			return fmt.Sprintf("%d%s", s/u.unit, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", int64(s))
}
