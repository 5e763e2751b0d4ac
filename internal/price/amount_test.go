package price

import (
	"encoding/json"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestAmountsAreReadAndWrittenExactly(t *testing.T) {
	for text, want := range map[string]Amount{
		"0": 0, "27.99": 27_990_000_000, "0.02754": 27_540_000, "0.000003": 3_000, "0.000000001": 1, "12": 12 * Euro, "0.5": Euro / 2,
	} {
		got, err := ParseAmount(text)
		if err != nil || got != want {
			t.Errorf("ParseAmount(%q) = %d, %v; want %d", text, got, err, want)
		}
		if got.String() != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
	for _, text := range []string{"", "-1", "1e3", "0.0000000001", "1,5", "1.2.3", "1.+5", "+1", " 1", "99999999999"} {
		if got, err := ParseAmount(text); err == nil {
			t.Errorf("ParseAmount(%q) = %s, want an error", text, got)
		}
	}
}

func TestEurosRoundHalfAwayFromZero(t *testing.T) {
	for _, c := range []struct {
		nanos    Amount
		decimals int
		want     string
	}{
		{20_104_200_000, 2, "20.10"}, {5_000_000, 2, "0.01"}, {4_999_999, 2, "0.00"}, {-5_000_000, 2, "-0.01"}, {-4_999_999, 2, "0.00"},
		{1_999_999_999, 0, "2"}, {27_540_000, 5, "0.02754"}, {999_995_000, 2, "1.00"}, {-12_345_678_901, 9, "-12.345678901"},
	} {
		if got := c.nanos.Euros(c.decimals); got != c.want {
			t.Errorf("%d with %d decimals is %q, want %q", c.nanos, c.decimals, got, c.want)
		}
	}
}

func TestAmountsAreJSONNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Amount(rapid.Int64Range(-1e15, 1e15).Draw(t, "nanos"))
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var n json.Number
		if err := json.Unmarshal(text, &n); err != nil {
			t.Fatalf("%s is no JSON number: %v", text, err)
		}
		r, ok := new(big.Rat).SetString(n.String())
		if !ok || r.Cmp(big.NewRat(int64(a), 1e9)) != 0 {
			t.Fatalf("%d nano-euros are written as %s", a, text)
		}
	})
}

// A share agrees with arithmetic of any precision.
func TestShareIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64Range(0, int64(1000*Euro)).Draw(t, "amount")
		n := rapid.Int64Range(0, 100e12).Draw(t, "bytes")
		twice := new(big.Int).Mul(big.NewInt(2*a), big.NewInt(n))
		want := twice.Add(twice, big.NewInt(gigabyte)).Div(twice, big.NewInt(2*gigabyte))
		if got := Amount(a).share(uint64(n), gigabyte); big.NewInt(int64(got)).Cmp(want) != 0 {
			t.Fatalf("%d of %d is %d, want %s", a, n, got, want)
		}
	})
}
