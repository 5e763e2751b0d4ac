// Package price says what an estate costs: euros an hour and a month, line by
// line, of what the file asks for and of what runs. It is pure: values in,
// values out. Sums are of whole nano-euros, so that none depends on an order or
// on a rounding.
package price

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Amount is a sum of money in nano-euros, excluding tax. A nano-euro is a
// thousandth of the finest price that Scaleway asks for anything.
type Amount int64

// Euro is one euro.
const Euro Amount = 1e9

// HoursAMonth is how many hours Scaleway's own monthly prices count.
const HoursAMonth = 730

// ParseAmount reads euros such as 0.02754. It refuses what a nano-euro cannot
// hold, instead of rounding it.
func ParseAmount(text string) (Amount, error) {
	whole, part, _ := strings.Cut(text, ".")
	if len(part) > 9 {
		return 0, fmt.Errorf("%q has more than 9 decimals", text)
	}
	euros, err := strconv.ParseUint(whole, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no amount in euros", text)
	}
	nanos, err := strconv.ParseUint((part + "000000000")[:9], 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no amount in euros", text)
	}
	return Amount(euros)*Euro + Amount(nanos), nil
}

// Euros writes the amount with so many decimals, at most 9, rounded half away
// from zero.
func (a Amount) Euros(decimals int) string {
	sign := ""
	if a < 0 {
		sign, a = "-", -a
	}
	step := Amount(1)
	for range 9 - decimals {
		step *= 10
	}
	a = (a + step/2) / step
	if a == 0 {
		sign = ""
	}
	digits := fmt.Sprintf("%0*d", decimals+1, int64(a))
	if decimals == 0 {
		return sign + digits
	}
	return sign + digits[:len(digits)-decimals] + "." + digits[len(digits)-decimals:]
}

// String writes the amount exactly, such as 0.02754 or 12.
func (a Amount) String() string {
	return strings.TrimSuffix(strings.TrimRight(a.Euros(9), "0"), ".")
}

// MarshalJSON writes the amount as an exact decimal number of euros.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// share is the part of the amount that n of whole make, rounded half up. It is
// how a price for a GB becomes the price of some bytes.
func (a Amount) share(n, whole uint64) Amount {
	hi, lo := bits.Mul64(uint64(a), n)
	lo, carry := bits.Add64(lo, whole/2, 0)
	if hi += carry; hi >= whole {
		return 0 // more than 9 billion euros: no such bill exists
	}
	q, _ := bits.Div64(hi, lo, whole)
	return Amount(q)
}
