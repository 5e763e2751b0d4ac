package api

import (
	"fmt"
	"math"
	"strings"
)

// listProducts serves the public catalogue: what a unit of a product costs in a
// place, Instances first.
func listProducts(c *call) (any, error) {
	zones, places := cataloguePlaces(c.query("zone"), c.query("region"))
	ids, kinds := c.values("api_ids"), c.known("product_types")
	out := []doc{}
	for _, z := range zones {
		for _, n := range catalogue().names {
			t := catalogue().types[n]
			if t.in(z) && oneOf(n, ids) && oneOf("instance", kinds) {
				out = append(out, viewProduct(t, z))
			}
		}
	}
	out = append(out, otherProducts(zones, places, ids, kinds)...)
	return doc{"products": list(page(c, out, "page_size", 20)), "total_count": len(out)}, nil
}

// cataloguePlaces are the zones and regions that a query is about. One that asks
// for a zone does not get what is sold by region, and the other way round.
func cataloguePlaces(zone, region string) (zones, places []string) {
	switch {
	case zone != "":
		return []string{zone}, nil
	case region != "":
		return nil, []string{region}
	}
	for _, r := range regions {
		zones = append(zones, r+"-1", r+"-2", r+"-3")
	}
	return zones, regions
}

func viewProduct(t *serverType, zone string) doc {
	nanos := int64(math.Round(t.Hourly * 1e9))
	arch := "x64"
	if t.Arch == "arm64" {
		arch = "arm64"
	}
	return doc{"sku": "/compute/" + skuWord(t.Name) + "/run_" + skuPlace(zone),
		"service_category": "Compute", "product_category": "Instance", "product": t.Name, "variant": t.Name + " - " + zone,
		"description": fmt.Sprintf("%s - %s (%v€ per hour)", t.Name, zone, t.Hourly), "locality": doc{"zone": zone},
		"price": doc{"retail_price": doc{"currency_code": "EUR", "units": nanos / 1e9, "nanos": nanos % 1e9}},
		"properties": doc{
			"hardware": doc{
				"cpu": doc{"description": fmt.Sprintf("%s, vCPUs: %d", arch, t.CPUs), "arch": arch, "type": arch,
					"virtual": doc{"count": t.CPUs}, "threads": t.CPUs, "shared": true},
				"ram":     doc{"description": fmt.Sprintf("%d GiB", t.RAM>>30), "size": t.RAM, "type": "", "ecc_type": "standard"},
				"storage": doc{"description": "Block", "total": 0},
				"network": doc{"description": fmt.Sprintf("Public: %d Mb/s", t.Internet/1e6), "internal_bandwidth": t.Internal,
					"public_bandwidth": t.Internet, "max_public_bandwidth": t.Internet}},
			"instance": doc{"range": t.Name[:strings.IndexByte(t.Name+"-", '-')], "offer_id": t.Name, "recommended_replacement_offer_ids": []string{}}},
		"environmental_impact_estimation": doc{"kg_co2_equivalent": 0.0, "m3_water_usage": 0.0},
		"unit_of_measure":                 doc{"unit": "hour", "size": 1}, "status": "general_availability", "badges": []string{}}
}
