package api_test

import "testing"

// What an estate is made of has a price, by product and place.
func TestPricesOfAnEstate(t *testing.T) {
	r := newRegion(t)
	const list = "/product-catalog/v2alpha1/public-catalog/products?page_size=100"
	for _, c := range []struct {
		query, product, variant string
		nanos                   float64
		unit                    string
	}{
		{"&zone=fr-par-1&product_types=load_balancer", "LB-S", "LB-S - fr-par-1", 23_000_000, "hour"},
		{"&zone=fr-par-2&api_ids=LB-GP-M", "LB-GP-M", "LB-GP-M - fr-par-2", 54_000_000, "hour"},
		{"&zone=fr-par-1&api_ids=PLAY2-NANO", "PLAY2-NANO", "PLAY2-NANO - fr-par-1", 27_540_000, "hour"},
		{"&zone=nl-ams-1&product_types=unknown_product_type&page=2", "VPC-GW-S", "VPC-GW-S - nl-ams-1", 26_000_000, "hour"},
		{"&zone=fr-par-1&product_types=block_storage", "Block Storage 15K", "SBS 15K - fr-par-1", 204_000, "gigabyte_hour"},
		{"&zone=fr-par-1&product_types=managed_relational_database", "DB-POP2-2C-8G", "Database management - fr-par-1", 67_400_000, "hour"},
		{"&region=fr-par&product_types=object_storage", "Standard One Zone", "Standard One Zone - fr-par", 11_000, "gigabyte_hour"},
		{"&region=fr-par&product_types=secret_manager", "Secret version", "Secret version - fr-par", 60_000, "version"},
		{"&region=pl-waw", "Private image storage", "Private image storage - pl-waw", 37_000, "gigabyte_hour"},
	} {
		found := 0
		for _, p := range r.do("GET", list+c.query, nil)["products"].([]any) {
			if str(p, "product") != c.product || str(p, "variant") != c.variant {
				continue
			}
			found++
			if nanos := dig(p, "price", "retail_price", "nanos"); nanos != c.nanos || str(p, "unit_of_measure", "unit") != c.unit {
				t.Errorf("%s: %v per %s", c.variant, nanos, str(p, "unit_of_measure", "unit"))
			}
		}
		if found != 1 {
			t.Errorf("%s has %s %d times", c.query, c.variant, found)
		}
	}
	if p := r.do("GET", list+"&zone=fr-par-1&api_ids=PLAY2-NANO", nil); str(p, "products", 0, "sku") != "/compute/play2_nano/run_par1" || p["total_count"] != 1.0 {
		t.Errorf("%v", p)
	}
}
