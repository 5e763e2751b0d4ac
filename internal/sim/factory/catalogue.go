package factory

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// newest is the last patch of each minor version that the Factory offers; those
// before 1.10 are left out here.
var newest = []struct{ minor, patch int }{{10, 9}, {11, 6}, {12, 9}, {13, 9}, {14, 1}}

// broken are versions that the Factory lists apart: none is known.
var broken = []string{}

// versions lists what images can be made of, oldest first.
func versions() []string {
	var all []string
	for _, n := range newest {
		for p := range n.patch + 1 {
			all = append(all, fmt.Sprintf("v1.%d.%d", n.minor, p))
		}
	}
	return all
}

var semver = regexp.MustCompile(`^v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)$`)

// findVersion reads a version with or without its v. The Factory tells a
// version that is none (malformed) from one that it does not have.
func findVersion(s string) (version string, malformed, known bool) {
	m := semver.FindStringSubmatch(s)
	if m == nil {
		return "", true, false
	}
	version = "v" + m[1]
	return version, false, slices.Contains(versions(), version)
}

// extension is one of the official ones, as the Factory lists it.
type extension struct {
	Name        string `json:"name"`
	Ref         string `json:"ref"`
	Digest      string `json:"digest"`
	Author      string `json:"author"`
	Description string `json:"description"`
}

// The file lists a name, the first minor version that has it, and what it is.
//
//go:embed extensions.txt
var extensionList string

// extensions lists the official ones of a version by name. Names and the
// versions that they came with are real as far as known; tags are not: all have
// the version of Talos.
func extensions(version string) []extension {
	out := []extension{}
	for line := range strings.Lines(extensionList) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(f) != 3 || strings.HasPrefix(line, "#") {
			continue
		}
		if since, _ := strconv.Atoi(f[1]); minorOf(version) < since {
			continue
		}
		ref := "ghcr.io/" + f[0] + ":" + version
		out = append(out, extension{f[0], ref, digestOf(ref), "Sidero Labs", f[2]})
	}
	slices.SortFunc(out, func(a, b extension) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func minorOf(version string) int {
	n, _ := strconv.Atoi(strings.Split(version, ".")[1])
	return n
}

// officialOverlay is one for a board that needs its own boot loader.
type officialOverlay struct {
	Name   string `json:"name"`
	Image  string `json:"image"`
	Ref    string `json:"ref"`
	Digest string `json:"digest"`
}

func overlays(version string) []officialOverlay {
	out := []officialOverlay{}
	for _, o := range []struct{ name, image string }{
		{"jetson_orin_nano", "siderolabs/sbc-jetson"}, {"nanopi-r4s", "siderolabs/sbc-rockchip"}, {"pine64", "siderolabs/sbc-allwinner"},
		{"rock64", "siderolabs/sbc-rockchip"}, {"rpi_generic", "siderolabs/sbc-raspberrypi"},
	} {
		ref := "ghcr.io/" + o.image + ":" + version
		out = append(out, officialOverlay{o.name, o.image, ref, digestOf(ref)})
	}
	return out
}

func digestOf(ref string) string {
	sum := sha256.Sum256([]byte(ref))
	return "sha256:" + hex.EncodeToString(sum[:])
}
