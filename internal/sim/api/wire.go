package api

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// doc is a JSON object on its way out.
type doc = map[string]any

var uuidPattern = regexp.MustCompile(`(?i)^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$`)

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by the package's contract
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// now is a timestamp with the precision that the API shows.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// stamp is how every product but instance v1 writes a time.
func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000Z") }

// stampV1 is how instance v1 writes a time.
func stampV1(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000+00:00") }

// opt tells apart a field that is absent, null, or set.
type opt[T any] struct {
	given, null bool
	value       T
}

func (o *opt[T]) UnmarshalJSON(b []byte) error {
	o.given = true
	if string(b) == "null" {
		o.null = true
		return nil
	}
	return json.Unmarshal(b, &o.value)
}

// set writes the value where one was given; null counts as the zero value.
func (o opt[T]) set(into *T) {
	if o.given {
		*into = o.value
	}
}

// or is the value given, or another.
func (o opt[T]) or(other T) T {
	if o.given && !o.null {
		return o.value
	}
	return other
}

// noSRN is what the API says in a resource's srn: clients make that name up
// themselves, from /metadata.
const noSRN = ""

// list is a JSON array that is never null.
func list[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

// orNull is null for the empty string.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// regionOf is the region that a zone lies in.
func regionOf(zone string) string { return zone[:strings.LastIndexByte(zone, '-')] }

// zones are all there are; each region's zones end in -1 to -3.
var regions = []string{"fr-par", "nl-ams", "pl-waw", "it-mil"}

func knownZone(zone string) bool {
	for _, r := range regions {
		for _, n := range []string{"-1", "-2", "-3"} {
			if zone == r+n {
				return true
			}
		}
	}
	return false
}

func knownRegion(region string) bool {
	for _, r := range regions {
		if r == region {
			return true
		}
	}
	return false
}
