package api

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

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
		if t.Arch != i.Arch || (i.Type == "instance_local" && t.LocalMax == 0) || windows != strings.HasSuffix(n, "-WIN") || i.GPU != (t.GPUs > 0) {
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
	label, zone, kinds := c.query("image_label"), c.query("zone"), c.known("type")
	var out []localImage
	known := label == "" // an image id or version id is not looked up
	for _, i := range allLocalImages() {
		known = known || i.Label == label
		if (label == "" || i.Label == label) && (zone == "" || i.Zone == zone) && oneOf(i.Type, kinds) && oneOf(i.Arch, c.known("arch")) &&
			oneOf(i.product(), c.values("image_id")) {
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

// product is the id of an image in all its zones and shapes.
func (i localImage) product() string { return localImage{i.catalogueImage, "", "", ""}.part("product") }

func viewMarketplaceImage(i catalogueImage) doc {
	category := "distribution"
	switch {
	case i.GPU:
		category = "Machine Learning"
	case slices.Contains([]string{"docker", "gitlab", "nextcloud", "openvpn", "wordpress"}, i.Label):
		category = "instantapp"
	}
	return doc{"id": localImage{catalogueImage: i}.product(), "name": i.Name, "label": i.Label, "description": "", "logo": "",
		"categories": []string{category}, "created_at": "2026-01-01T00:00:00.000000Z", "updated_at": "2026-01-01T00:00:00.000000Z", "valid_until": nil}
}

func getMarketplaceImage(c *call) (any, error) {
	for _, i := range catalogue().images {
		if (localImage{catalogueImage: i}).product() == c.path("id") {
			return viewMarketplaceImage(i), nil
		}
	}
	return nil, notFound("MarketplaceImage", c.path("id"))
}

func listMarketplaceImages(c *call) (any, error) {
	out := []doc{}
	for _, i := range catalogue().images {
		v, arch := viewMarketplaceImage(i), c.known("arch")
		if (oneOf("x86_64", arch) || (i.ARM && oneOf("arm64", arch))) && oneOf(v["categories"].([]string)[0], c.values("category")) {
			out = append(out, v)
		}
	}
	return doc{"images": page(c, out, "page_size", 50), "total_count": len(out)}, nil
}
