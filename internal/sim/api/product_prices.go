package api

import (
	"fmt"
	"strconv"
	"strings"
)

// sold is what the public catalogue has besides Instances. The names of the SKUs
// follow the few that are known; who looks for a price goes by product and place.
type sold struct {
	service, category string // as the catalogue groups them
	product, variant  string
	sku               string // a place is added
	kind              string // product_types, and the key of its properties; empty where the SDK knows none
	part              string // of the properties
	detail            doc
	offer             string // what api_ids names it by; empty for what it cannot name
	zonal             bool
	nanos             int64 // billionths of a euro, without tax
	unit              string
}

// priceList is from the public catalogue of September 2026, excluding tax. The
// catalogue bills a database as a node and its management; of DB-DEV and
// DB-PLAY2-NANO only the sum of both is known, and is the node's here.
var priceList = append(append([]sold{}, networkPrices...), storagePrices...)

var networkPrices = []sold{
	lbPrice("LB-S", 23_000_000, 200), lbPrice("LB-GP-M", 54_000_000, 500), lbPrice("LB-GP-L", 94_000_000, 1000), lbPrice("LB-GP-XL", 941_000_000, 4000),
	{"Network", "Load Balancer", "Flexible IPv4", "Load Balancer IPv4", "/network/lb/ipv4", "load_balancer", "ipv4", doc{}, "", true, 5_000_000, "hour"},
	gatewayPrice("VPC-GW-S", 26_000_000), gatewayPrice("VPC-GW-M", 95_000_000), gatewayPrice("VPC-GW-L", 439_000_000), gatewayPrice("VPC-GW-XL", 949_000_000),
	{"Network", "Public Gateway", "Flexible IPv4", "Public Gateway IPv4", "/network/vpc_gw/ipv4", "", "", nil, "", true, 5_000_000, "hour"},
	{"Network", "Flexible IP", "Flexible IPv4", "Instance IPv4", "/network/ip/ipv4", "", "", nil, "", true, 5_000_000, "hour"},
	{"Network", "Domains and DNS", "External DNS zone", "External DNS zone", "/network/dns/external_zone", "", "", nil, "", false, 7_000_000, "hour"},
}

var storagePrices = []sold{
	{"Storage", "Block Storage", "Block Storage 5K", "SBS 5K", "/storage/block/sbs_5k", "block_storage", "volume", volumeSizes, "", true, 136_000, "gigabyte_hour"},
	{"Storage", "Block Storage", "Block Storage 15K", "SBS 15K", "/storage/block/sbs_15k", "block_storage", "volume", volumeSizes, "", true, 204_000, "gigabyte_hour"},
	{"Storage", "Block Storage", "Block Storage snapshot", "SBS snapshot", "/storage/block/sbs_snapshot", "block_storage", "snapshot", doc{}, "", true, 44_000, "gigabyte_hour"},
	nodePrice("DB-DEV-S", 15_600_000), nodePrice("DB-DEV-M", 38_200_000), nodePrice("DB-DEV-L", 75_600_000), nodePrice("DB-PLAY2-NANO", 43_200_000),
	nodePrice("DB-PLAY2-PICO", 20_300_000), managementPrice("DB-PLAY2-PICO", 3_000_000),
	nodePrice("DB-PRO2-XXS", 58_300_000), managementPrice("DB-PRO2-XXS", 51_700_000),
	nodePrice("DB-PRO2-XS", 116_600_000), managementPrice("DB-PRO2-XS", 103_400_000),
	nodePrice("DB-POP2-2C-8G", 76_000_000), managementPrice("DB-POP2-2C-8G", 67_400_000),
	nodePrice("DB-POP2-4C-16G", 151_900_000), managementPrice("DB-POP2-4C-16G", 134_700_000),
	nodePrice("DB-POP2-8C-32G", 306_900_000), managementPrice("DB-POP2-8C-32G", 261_500_000),
	databaseStorage("Block Storage 5K", "sbs_5k", 136_000), databaseStorage("Block Storage 15K", "sbs_15k", 204_000),
	databaseStorage("Snapshot", "sbs_5k_snapshot", 44_000), databaseStorage("Backup", "backup", 40_000),
	{"Storage", "Object Storage", "Standard Multi-AZ", "Standard Multi-AZ", "/storage/object/standard_multi_az", "object_storage", "class",
		doc{"storage_class": "standard"}, "", false, 22_000, "gigabyte_hour"},
	{"Storage", "Object Storage", "Standard One Zone", "Standard One Zone", "/storage/object/standard_one_zone", "object_storage", "class",
		doc{"storage_class": "onezone_ia"}, "", false, 11_000, "gigabyte_hour"},
	{"Storage", "Object Storage", "Egress to internet", "Egress to internet", "/storage/object/egress_internet", "object_storage", "internet_traffic",
		doc{"traffic_type": "egress"}, "", false, 10_000_000, "gigabyte"},
	{"Containers", "Container Registry", "Private image storage", "Private image storage", "/containers/registry/private_storage", "", "", nil, "", false, 37_000, "gigabyte_hour"},
	{"Security", "Secret Manager", "Secret version", "Secret version", "/security/secret_manager/version", "secret_manager", "", nil, "", false, 60_000, "version"},
	{"Security", "Secret Manager", "Secret request", "Secret request", "/security/secret_manager/request", "secret_manager", "", nil, "", false, 3_000, "request"},
}

var volumeSizes = doc{"min_size": smallestVolume, "max_size": largestVolume}

func lbPrice(name string, nanos, megabits int64) sold {
	return sold{"Network", "Load Balancer", name, name, "/network/lb/" + skuWord(name), "load_balancer", "node",
		doc{"offer_id": name, "multi_cloud_provider": name == "LB-GP-L" || name == "LB-GP-XL", "bandwidth": megabits * 1_000_000}, name, true, nanos, "hour"}
}

func gatewayPrice(name string, nanos int64) sold {
	return sold{"Network", "Public Gateway", name, name, "/network/vpc_gw/" + skuWord(name), "", "", nil, "", true, nanos, "hour"}
}

func nodePrice(name string, nanos int64) sold {
	return sold{"Managed Databases", "Managed Database for PostgreSQL and MySQL", name, "Database Node", "/rdb/" + skuWord(name) + "/node",
		"managed_relational_database", "node", doc{}, "", true, nanos, "hour"}
}

func managementPrice(name string, nanos int64) sold {
	return sold{"Managed Databases", "Managed Database for PostgreSQL and MySQL", name, "Database management", "/rdb/" + skuWord(name) + "/management",
		"managed_relational_database", "management", doc{}, "", true, nanos, "hour"}
}

func databaseStorage(name, word string, nanos int64) sold {
	return sold{"Managed Databases", "Managed Database for PostgreSQL and MySQL", "Database " + name, name, "/rdb/storage/" + word,
		"managed_relational_database", "storage", doc{"storage_class": word}, "", true, nanos, "gigabyte_hour"}
}

func skuWord(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "_")) }

// skuPlace is a zone as SKUs write it: the two oldest have names of their own.
func skuPlace(zone string) string {
	switch zone {
	case "fr-par-1":
		return "par1"
	case "nl-ams-1":
		return "ams1"
	}
	return zone
}

// view is a product in one place.
func (s sold) view(place string) doc {
	locality, price := doc{"region": place}, strconv.FormatFloat(float64(s.nanos)/1e9, 'f', -1, 64)
	if s.zonal {
		locality = doc{"zone": place}
	}
	properties := doc{"hardware": nil}
	switch {
	case s.part != "":
		properties[s.kind] = doc{s.part: s.detail}
	case s.kind != "":
		properties[s.kind] = doc{}
	}
	return doc{"sku": s.sku + "_" + skuPlace(place), "service_category": s.service, "product_category": s.category, "product": s.product,
		"variant": s.variant + " - " + place, "description": fmt.Sprintf("%s - %s (%s€ per %s)", s.product, place, price, strings.ReplaceAll(s.unit, "_", " ")),
		"locality": locality, "price": doc{"retail_price": doc{"currency_code": "EUR", "units": 0, "nanos": s.nanos}}, "properties": properties,
		"environmental_impact_estimation": nil, "unit_of_measure": doc{"unit": s.unit, "size": 1}, "status": "general_availability", "badges": []string{}}
}

// otherProducts are those besides Instances that a query asks for.
func otherProducts(zones, places []string, ids, kinds []string) []doc {
	var out []doc
	for _, s := range priceList {
		if len(ids) > 0 && (s.offer == "" || !oneOf(s.offer, ids)) || !oneOf(s.kind, kinds) {
			continue
		}
		where := places
		if s.zonal {
			where = zones
		}
		for _, place := range where {
			out = append(out, s.view(place))
		}
	}
	return out
}
