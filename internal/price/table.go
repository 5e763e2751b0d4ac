package price

import (
	_ "embed"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// Item is something that Scaleway has a price for, such as instance/PLAY2-NANO.
type Item string

// Unit is what a price is for one of.
type Unit string

// The units of the table.
const (
	Hour   Unit = "hour"
	GBHour Unit = "GB-hour" // decimal GB
	Month  Unit = "month"   // billed by the month, whatever part of it is used
	Once   Unit = "once"    // a fee for setting up
	GB     Unit = "GB"      // for each GB that passes
)

// Price is what one unit of an item costs.
type Price struct {
	Amount Amount
	Unit   Unit
	Source string // the live catalogue, or when and from where the table has it
}

// Book holds prices. Its zero value holds none.
type Book struct {
	prices map[Item]Price
	// Note is what a reader of the prices has to know, such as that the
	// catalogue could not be read; empty when there is nothing.
	Note string
	// Files are the sizes in bytes, by key, of files that are in a bucket and whose
	// size is not in the estate's file.
	Files map[string]int64
}

// Find looks an item up.
func (b Book) Find(i Item) (Price, bool) {
	p, ok := b.prices[i]
	return p, ok
}

// Over is the book with other prices laid over its own.
func (b Book) Over(newer map[Item]Price) Book {
	b.prices = maps.Clone(b.prices)
	maps.Copy(b.prices, newer)
	return b
}

//go:embed table.txt
var tableText string

// sources say where a row of the table comes from.
var sources = map[string]string{
	"api":       "answer of the API",
	"catalogue": "public catalogue",
	"published": "published list",
	"page":      "price page",
}

// Table holds the prices that came with this build.
func Table() Book { return Book{prices: table()} }

var table = sync.OnceValue(func() map[Item]Price {
	prices, err := parseTable(tableText)
	if err != nil {
		panic("the table of prices: " + err.Error()) // a mistake in the source tree
	}
	return prices
})

func parseTable(text string) (map[Item]Price, error) {
	prices := map[Item]Price{}
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) != 5 {
			return nil, fmt.Errorf("line %d has %d columns, not 5", n+1, len(f))
		}
		amount, err := ParseAmount(f[1])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		switch Unit(f[2]) {
		case Hour, GBHour, Month, Once, GB:
		default:
			return nil, fmt.Errorf("line %d: %s is no unit", n+1, f[2])
		}
		if _, err := time.Parse(time.DateOnly, f[3]); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		if sources[f[4]] == "" {
			return nil, fmt.Errorf("line %d: %s is no source", n+1, f[4])
		}
		if _, twice := prices[Item(f[0])]; twice {
			return nil, fmt.Errorf("line %d: %s is there already", n+1, f[0])
		}
		prices[Item(f[0])] = Price{amount, Unit(f[2]), fmt.Sprintf("table %s (%s)", f[3], sources[f[4]])}
	}
	return prices, nil
}
