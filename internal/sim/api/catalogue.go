package api

import (
	"crypto/sha1"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// What the provider sells: Instance types with prices as of 30 July 2026, and
// the images of the marketplace that clients ask for most.

//go:embed catalogue/servers.csv
var serversCSV string

//go:embed catalogue/images.csv
var imagesCSV string

// serverType is an Instance offer.
type serverType struct {
	Name, Arch             string
	AltNames               []string
	CPUs, GPUs             int
	RAM                    int64
	GPU                    string
	GPUMemory              int64
	LocalMin, LocalMax     int64 // of all local volumes together
	VolumeMin, VolumeMax   int64 // of one l_ssd volume
	ScratchMax             int64
	ScratchCount           int
	Hourly, Monthly        float64
	HotSnapshots           bool
	FileSystems            int
	Internal, Internet     int64 // bit/s
	Block                  int64 // byte/s
	EndOfService           bool
	zones, scarce, outages []string
}

// catalogueImage is a marketplace image; it has an id for each zone, kind of
// storage and architecture.
type catalogueImage struct {
	Label, Name string
	Size        int64
	Local, ARM  bool
}

// The catalogue never changes while the program runs, and is read on first use.
var catalogue = sync.OnceValue(func() (c struct {
	types  map[string]*serverType
	names  []string
	images []catalogueImage
}) {
	c.types = map[string]*serverType{}
	for _, row := range rows(serversCSV) {
		t := row.serverType()
		c.types[t.Name] = t
		c.names = append(c.names, t.Name)
	}
	for _, row := range rows(imagesCSV) {
		c.images = append(c.images, catalogueImage{Label: row["label"], Name: row["name"], Size: row.int("size"),
			Local: row.int("local") == 1, ARM: row.int("arm") == 1})
	}
	return c
})

type row map[string]string

func rows(text string) []row {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		panic("embedded catalogue: " + err.Error()) // a mistake in the source tree
	}
	var out []row
	for _, l := range lines[1:] {
		r := row{}
		for i, k := range lines[0] {
			r[k] = l[i]
		}
		out = append(out, r)
	}
	return out
}

func (r row) int(k string) int64 {
	n, _ := strconv.ParseInt(r[k], 10, 64)
	return n
}

func (r row) float(k string) float64 {
	f, _ := strconv.ParseFloat(r[k], 64)
	return f
}

func (r row) serverType() *serverType {
	t := &serverType{Name: r["name"], Arch: r["arch"], CPUs: int(r.int("cpus")), RAM: r.int("ram"), GPUs: int(r.int("gpus")),
		GPU: r["gpu"], GPUMemory: r.int("gpu_memory"), LocalMin: r.int("local_min"), LocalMax: r.int("local_max"),
		VolumeMin: r.int("lssd_min"), VolumeMax: r.int("lssd_max"), ScratchMax: r.int("scratch_max"),
		ScratchCount: int(r.int("scratch_count")), Hourly: r.float("hourly"), Monthly: r.float("monthly"),
		HotSnapshots: r.int("hot_snapshots") == 1, FileSystems: int(r.int("file_systems")), Internal: r.int("internal_mbps") * 1e6,
		Internet: r.int("internet_mbps") * 1e6, Block: r.int("block_bandwidth"), EndOfService: r.int("end_of_service") == 1,
		zones: strings.Split(r["zones"], "|"), AltNames: []string{}}
	if r["alt_names"] != "" {
		t.AltNames = strings.Split(r["alt_names"], "|")
	}
	for _, z := range strings.Split(r["shortage"], "|") {
		if zone, scarce := strings.CutSuffix(z, "~"); scarce {
			t.scarce = append(t.scarce, zone)
		} else if z != "" {
			t.outages = append(t.outages, z)
		}
	}
	return t
}

// in says whether a type is sold in a zone. Zones that were never recorded sell
// what the smallest recorded ones do.
func (t *serverType) in(zone string) bool {
	if strings.HasPrefix(zone, "it-") {
		zone = "pl-waw-3"
	}
	return slices.Contains(t.zones, zone)
}

func findType(name, zone string) (*serverType, bool) {
	t, ok := catalogue().types[name]
	return t, ok && t.in(zone)
}

func (r *Region) catalogueRoutes() {
	r.route("GET /metadata", http.StatusOK, func(*call) (any, error) {
		return doc{"platform": "scaleway", "partition": "scw", "domain": "scaleway.com"}, nil
	})
	const base = "/instance/v1/zones/{zone}/products"
	r.route("GET "+base+"/servers", http.StatusOK, listServerTypes)
	r.route("GET "+base+"/servers/availability", http.StatusOK, listAvailability)
	r.route("GET "+base+"/volumes", http.StatusOK, listLocalVolumeTypes)
	r.route("GET /marketplace/v2/local-images", http.StatusOK, listLocalImages)
	r.route("GET /marketplace/v2/local-images/{id}", http.StatusOK, getLocalImage)
	r.route("GET /marketplace/v2/images", http.StatusOK, listMarketplaceImages)
	r.route("GET /product-catalog/v2alpha1/public-catalog/products", http.StatusOK, listProducts)
}

func viewServerType(t *serverType) doc {
	var gpu any
	if t.GPUs > 0 {
		gpu = doc{"gpu_manufacturer": "NVIDIA", "gpu_name": t.GPU, "gpu_memory": t.GPUMemory}
	}
	return doc{"alt_names": t.AltNames, "arch": t.Arch, "ncpus": t.CPUs, "ram": t.RAM, "gpu": t.GPUs, "gpu_info": gpu,
		"mig_profile": nil, "volumes_constraint": doc{"min_size": t.LocalMin, "max_size": t.LocalMax},
		"per_volume_constraint":    doc{"l_ssd": doc{"min_size": t.VolumeMin, "max_size": t.VolumeMax}},
		"scratch_storage_max_size": t.ScratchMax, "scratch_storage_max_volumes_count": t.ScratchCount,
		"monthly_price": t.Monthly, "hourly_price": t.Hourly, "end_of_service": t.EndOfService, "block_bandwidth": t.Block,
		"capabilities": doc{"boot_types": []string{"local", "rescue"}, "placement_groups": true, "block_storage": true,
			"hot_snapshots_local_volume": t.HotSnapshots, "private_network": 8, "max_file_systems": t.FileSystems},
		"network": doc{"ipv6_support": true, "sum_internal_bandwidth": t.Internal, "sum_internet_bandwidth": t.Internet,
			"interfaces": []doc{{"internal_bandwidth": t.Internal, "internet_bandwidth": t.Internet}}}}
}

// typesPage is a page of the zone's types by name, with the total in the header.
func (c *call) typesPage(view func(*serverType) doc) (any, error) {
	var names []string
	for _, n := range catalogue().names {
		if catalogue().types[n].in(c.zone()) {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	c.total(len(names))
	out := doc{}
	for _, n := range page(c, names, "per_page", 50) {
		out[n] = view(catalogue().types[n])
	}
	return doc{"servers": out}, nil
}

func listServerTypes(c *call) (any, error) { return c.typesPage(viewServerType) }

func listAvailability(c *call) (any, error) {
	return c.typesPage(func(t *serverType) doc {
		state := "available"
		if slices.Contains(t.scarce, c.zone()) {
			state = "scarce"
		}
		if slices.Contains(t.outages, c.zone()) {
			state = "shortage"
		}
		return doc{"availability": state}
	})
}

func listLocalVolumeTypes(c *call) (any, error) {
	c.total(2)
	kind := func(name string, snapshot bool) doc {
		return doc{"display_name": name, "capabilities": doc{"snapshot": snapshot},
			"constraints": doc{"min": gigabyte, "max": 1_000 * gigabyte}}
	}
	return doc{"volumes": doc{"l_ssd": kind("Local SSD", true), "scratch": kind("Scratch", false)}}, nil
}

// marketplaceOwner is the organization behind catalogue images.
const marketplaceOwner = "51b656e3-4865-41e8-adbc-0c45bdd780db"

// localImage is a catalogue image in one zone, for one kind of root volume.
type localImage struct {
	catalogueImage
	Zone string
	Type string // instance_local or instance_sbs
	Arch string
}

func (i localImage) part(what string) string {
	sum := sha1.Sum([]byte(what + "/" + i.Label + "/" + i.Zone + "/" + i.Type + "/" + i.Arch))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func (i localImage) id() string     { return i.part("image") }
func (i localImage) volume() string { return i.part("snapshot") }

func localImages(zone string) []localImage {
	var out []localImage
	for _, c := range catalogue().images {
		if c.Local {
			out = append(out, localImage{c, zone, "instance_local", "x86_64"})
		}
		out = append(out, localImage{c, zone, "instance_sbs", "x86_64"})
		if c.ARM {
			out = append(out, localImage{c, zone, "instance_sbs", "arm64"})
		}
	}
	return out
}

func findLocalImage(id string) (localImage, bool) {
	for _, i := range allLocalImages() {
		if i.id() == id {
			return i, true
		}
	}
	return localImage{}, false
}

var allLocalImages = sync.OnceValue(func() []localImage {
	var out []localImage
	for _, r := range regions {
		for n := 1; n <= 3; n++ {
			out = append(out, localImages(r+"-"+strconv.Itoa(n))...)
		}
	}
	return out
})

// catalogueSnapshots are the ids behind images; they belong to somebody else.
var catalogueSnapshots = sync.OnceValue(func() map[string]bool {
	ids := map[string]bool{}
	for _, i := range allLocalImages() {
		if i.Type == "instance_sbs" {
			ids[i.volume()] = true
		}
	}
	return ids
})

func isCatalogueSnapshot(id string) bool { return catalogueSnapshots()[id] }

// runs lists the types that an image can start: local ones need local storage.
func (i localImage) runs() []string {
	out := []string{}
	windows := strings.HasPrefix(i.Label, "windows")
	for _, n := range catalogue().names {
		t := catalogue().types[n]
		if t.Arch != i.Arch || (i.Type == "instance_local" && t.LocalMax == 0) || windows != strings.HasSuffix(n, "-WIN") {
			continue
		}
		out = append(out, n)
	}
	return out
}

func viewLocalImage(i localImage) doc {
	return doc{"id": i.id(), "arch": i.Arch, "zone": i.Zone, "compatible_commercial_types": i.runs(), "label": i.Label, "type": i.Type}
}

func listLocalImages(c *call) (any, error) {
	label, zone, kind := c.query("image_label"), c.query("zone"), c.query("type")
	if kind == "unknown_type" {
		kind = ""
	}
	var out []localImage
	known := label == "" // an image id or version id is not looked up
	for _, i := range allLocalImages() {
		known = known || i.Label == label
		if (label == "" || i.Label == label) && (zone == "" || i.Zone == zone) && (kind == "" || i.Type == kind) {
			out = append(out, i)
		}
	}
	if !known {
		return nil, notFound("MarketplaceImage", label)
	}
	return doc{"local_images": views(page(c, out, "page_size", 50), viewLocalImage), "total_count": len(out)}, nil
}

func getLocalImage(c *call) (any, error) {
	if i, ok := findLocalImage(c.path("id")); ok {
		return viewLocalImage(i), nil
	}
	return nil, notFound("LocalImage", c.path("id"))
}

func listMarketplaceImages(c *call) (any, error) {
	out := []doc{}
	for _, i := range catalogue().images {
		out = append(out, doc{"id": localImage{i, "", "", ""}.part("product"), "name": i.Name, "label": i.Label,
			"description": "", "logo": "", "categories": []string{"distribution"},
			"created_at": "2026-01-01T00:00:00.000000Z", "updated_at": "2026-01-01T00:00:00.000000Z", "valid_until": nil})
	}
	return doc{"images": page(c, out, "page_size", 50), "total_count": len(out)}, nil
}

// listProducts serves the Instances of the public catalogue: what an hour costs.
func listProducts(c *call) (any, error) {
	zone, ids, kinds := c.query("zone"), c.values("api_ids"), c.values("product_types")
	out := []doc{}
	for _, z := range catalogueZones(zone) {
		for _, n := range catalogue().names {
			t := catalogue().types[n]
			if t.in(z) && oneOf(n, ids) && oneOf("instance", kinds) {
				out = append(out, viewProduct(t, z))
			}
		}
	}
	return doc{"products": list(page(c, out, "page_size", 20)), "total_count": len(out)}, nil
}

func catalogueZones(zone string) []string {
	if zone != "" {
		return []string{zone}
	}
	var all []string
	for _, r := range regions {
		all = append(all, r+"-1", r+"-2", r+"-3")
	}
	return all
}

func viewProduct(t *serverType, zone string) doc {
	nanos := int64(math.Round(t.Hourly * 1e9))
	arch := "x64"
	if t.Arch == "arm64" {
		arch = "arm64"
	}
	return doc{"sku": "/compute/" + strings.ToLower(strings.ReplaceAll(t.Name, "-", "_")) + "/run_" + zone,
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
