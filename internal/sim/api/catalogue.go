package api

import (
	_ "embed"
	"encoding/csv"
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
	GPU         bool // runs on types with a GPU, and on no other
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
			Local: row.int("local") == 1, ARM: row.int("arm") == 1, GPU: row.int("gpu") == 1})
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
		return doc{"platform": "external", "partition": "scw", "domain": "scw.eu"}, nil
	})
	const base = "/instance/v1/zones/{zone}/products"
	r.route("GET "+base+"/servers", http.StatusOK, listServerTypes)
	r.route("GET "+base+"/servers/availability", http.StatusOK, listAvailability)
	r.route("GET "+base+"/volumes", http.StatusOK, listLocalVolumeTypes)
	r.route("GET /marketplace/v2/local-images", http.StatusOK, listLocalImages)
	r.route("GET /marketplace/v2/local-images/{id}", http.StatusOK, getLocalImage)
	r.route("GET /marketplace/v2/images", http.StatusOK, listMarketplaceImages)
	r.route("GET /marketplace/v2/images/{id}", http.StatusOK, getMarketplaceImage)
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
