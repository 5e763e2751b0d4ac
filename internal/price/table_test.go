package price

import (
	"strings"
	"testing"
)

func TestTheTableIsWhole(t *testing.T) {
	prices, err := parseTable(tableText)
	if err != nil {
		t.Fatal(err)
	}
	for item, p := range prices {
		if p.Amount <= 0 {
			t.Errorf("%s costs %s", item, p.Amount)
		}
		if kind, _, _ := strings.Cut(string(item), "/"); (kind == "block" || kind == "database-storage") != (p.Unit == GBHour) &&
			kind != "snapshot" && kind != "object-storage" && kind != "registry" && kind != "database-backup" {
			t.Errorf("%s is billed by the %s", item, p.Unit)
		}
	}
	// A machine by the month has a price by the hour beside it.
	for item := range prices {
		if name, monthly := strings.CutPrefix(string(item), "metal-monthly/"); monthly {
			if _, ok := prices[Item("metal/"+name)]; !ok {
				t.Errorf("%s has no price by the hour", item)
			}
		}
	}
}

func TestATableThatIsWrongIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"ipv4 0.005 hour 2026-09-03":                                         "4 columns",
		"ipv4 0,005 hour 2026-09-03 api":                                     "no amount",
		"ipv4 0.005 day 2026-09-03 api":                                      "no unit",
		"ipv4 0.005 hour 3.9.2026 api":                                       "cannot parse",
		"ipv4 0.005 hour 2026-09-03 hearsay":                                 "no source",
		"ipv4 0.005 hour 2026-09-03 api\nipv4 0.004 hour 2026-09-03 api\n":   "there already",
		"ipv4 0.0050000001 hour 2026-09-03 api # a tenth of a nano-euro odd": "9 decimals",
	} {
		if _, err := parseTable(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %q in it", text, err, want)
		}
	}
}

func TestABookLaidOverAnotherLeavesThatAlone(t *testing.T) {
	below := Table()
	above := below.Over(map[Item]Price{"ipv4": {Amount: 1, Unit: Hour, Source: "test"}})
	if p, _ := above.Find("ipv4"); p.Amount != 1 {
		t.Errorf("the newer price is not found: %v", p)
	}
	if p, _ := Table().Find("ipv4"); p.Amount != 5_000_000 {
		t.Errorf("the table itself was changed: %v", p)
	}
	if p, _ := above.Find("snapshot"); p.Amount == 0 {
		t.Error("what the newer book does not have is lost")
	}
}
