package scaleway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"bastide/internal/outcome"
	"bastide/internal/price"
	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"
	"bastide/internal/sim/fault"
)

// The catalogue prices what the file asks for in two calls, whatever else it has.
func TestTheCatalogueIsAskedInTwoCalls(t *testing.T) {
	w := newWorld(t, privateEstate(2))
	before := len(w.region.Requests(0))
	prices, err := w.cloud().Prices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if calls := len(w.region.Requests(0)) - before; calls != 2 {
		t.Errorf("%d calls", calls)
	}
	for item, want := range map[price.Item]string{
		"instance/PLAY2-NANO": "0.02754", "instance/PLAY2-MICRO": "0.05508", "block/5000": "0.000136", "block/15000": "0.000204", "snapshot": "0.000044",
	} {
		if got := prices[item]; got.Amount.String() != want || got.Source != "the catalogue of fr-par-1" {
			t.Errorf("%s costs %s by %q, want %s", item, got.Amount, got.Source, want)
		}
	}
	if len(prices) != 5 {
		t.Errorf("prices %v", prices)
	}
}

// A catalogue that does not answer whole has no price at all, and says why.
func TestACatalogueThatCannotBeReadIsAnError(t *testing.T) {
	for name, rule := range map[string]fault.HTTPRule{
		"refused":     {Path: "/product-catalog/**", Status: 403, Body: map[string]any{"type": "permissions_denied", "message": "m", "details": []map[string]any{{"action": "read", "resource": "product_catalog"}}}},
		"page":        {Path: "/block/v1/zones/*/volume-types", Status: 404, Body: "<html>", Headers: map[string]string{"Content-Type": "text/html"}},
		"cut short":   {Path: "/block/v1/zones/*/volume-types", ShortPage: 1},
		"no listing":  {Path: "/product-catalog/**", Status: 200, Body: map[string]any{"total_count": 2}},
		"unavailable": {Path: "/product-catalog/**", Status: 501, Body: map[string]any{"message": "m"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, privateEstate(2))
			rule.Name = name
			if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{rule}}); err != nil {
				t.Fatal(err)
			}
			if prices, err := w.cloud().Prices(t.Context()); len(prices) > 0 || outcome.CodeOf(err) != outcome.Unknown {
				t.Errorf("got %v and %v", prices, err)
			}
		})
	}
}

// What the catalogue says in another currency, for another zone or unit, or in
// two ways, is no price.
func TestWhatIsNoPriceOfTheZoneIsLeftOut(t *testing.T) {
	product := func(change func(p map[string]any)) map[string]any {
		p := map[string]any{"sku": "/compute/x", "locality": map[string]any{"zone": zone},
			"price":           map[string]any{"retail_price": map[string]any{"currency_code": "EUR", "units": 0, "nanos": 28000000}},
			"properties":      map[string]any{"instance": map[string]any{"offer_id": "PLAY2-NANO"}},
			"unit_of_measure": map[string]any{"unit": "hour", "size": 1}}
		change(p)
		return p
	}
	set := func(key string, value any) func(map[string]any) { return func(p map[string]any) { p[key] = value } }
	money := func(currency string, nanos int) any {
		return map[string]any{"retail_price": map[string]any{"currency_code": currency, "units": 0, "nanos": nanos}}
	}
	for name, c := range map[string]struct {
		products []map[string]any
		want     string
	}{
		"as it should be": {[]map[string]any{product(func(map[string]any) {})}, "0.028"},
		"dollars":         {[]map[string]any{product(set("price", money("USD", 28000000)))}, "0"},
		"nothing":         {[]map[string]any{product(set("price", money("EUR", 0)))}, "0"},
		"no price":        {[]map[string]any{product(set("price", nil))}, "0"},
		"another zone":    {[]map[string]any{product(set("locality", map[string]any{"zone": "nl-ams-1"}))}, "0"},
		"by the minute":   {[]map[string]any{product(set("unit_of_measure", map[string]any{"unit": "minute", "size": 1}))}, "0"},
		"by the day":      {[]map[string]any{product(set("unit_of_measure", map[string]any{"unit": "hour", "size": 24}))}, "0"},
		"no Instance":     {[]map[string]any{product(set("properties", map[string]any{}))}, "0"},
		"two prices": {[]map[string]any{product(func(map[string]any) {}), product(func(p map[string]any) {
			p["sku"], p["price"] = "/compute/y", money("EUR", 29000000)
		}), product(set("sku", "/compute/z"))}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			region := api.New(api.Options{Clock: clock.New(speed)})
			t.Cleanup(region.Close)
			w := serve(t, privateEstate(0), region, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if !strings.HasPrefix(r.URL.Path, "/product-catalog/") {
					region.ServeHTTP(rw, r)
					return
				}
				rw.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(rw).Encode(map[string]any{"products": c.products, "total_count": len(c.products)})
			}), speed)
			prices, err := w.cloud().Prices(t.Context())
			if got := prices["instance/PLAY2-NANO"].Amount.String(); err != nil || got != c.want {
				t.Errorf("PLAY2-NANO costs %s, %v; want %s", got, err, c.want)
			}
		})
	}
}
