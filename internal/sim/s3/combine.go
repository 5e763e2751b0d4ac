package s3

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
)

// A CRC of a whole object can be had from those of its parts, without reading
// the parts again. Appending n zero bytes to what was summed multiplies the sum
// by x^8n in the field of the polynomial.

// crc describes a reflected CRC of 32 or 64 bits.
type crc struct {
	poly uint64
	bits int
}

func crcOf(algorithm string) (crc, bool) {
	switch algorithm {
	case "crc32":
		return crc{uint64(crc32.IEEE), 32}, true
	case "crc32c":
		return crc{uint64(crc32.Castagnoli), 32}, true
	case "crc64nvme":
		return crc{0x9a6c9329ac4bc9b5, 64}, true
	}
	return crc{}, false
}

// times multiplies two polynomials, of which the highest bit is x^0.
func (c crc) times(a, b uint64) uint64 {
	var product uint64
	for i := c.bits - 1; i >= 0; i-- {
		if a>>i&1 == 1 {
			product ^= b
		}
		if b&1 == 1 {
			b = b>>1 ^ c.poly
		} else {
			b >>= 1
		}
	}
	return product
}

// shift is x to the power of 8n.
func (c crc) shift(n int64) uint64 {
	one := uint64(1) << (c.bits - 1)
	power, square := one, one>>8 // x^8
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			power = c.times(power, square)
		}
		square = c.times(square, square)
	}
	return power
}

// combine is the checksum of two pieces joined, in base64; length is that of
// the second.
func (c crc) combine(first, second string, length int64) string {
	return c.encode(c.times(c.decode(first), c.shift(length)) ^ c.decode(second))
}

func (c crc) decode(text string) uint64 {
	raw, _ := base64.StdEncoding.DecodeString(text) // made here
	var b [8]byte
	copy(b[8-len(raw):], raw)
	return binary.BigEndian.Uint64(b[:])
}

func (c crc) encode(v uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	return base64.StdEncoding.EncodeToString(b[8-c.bits/8:])
}
