package api

import (
	"net/http"
	"net/netip"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// dnsRecord is one line of a zone, in the form in which it is kept.
type dnsRecord struct {
	ID       string
	Name     string // relative to the zone; empty at its top
	Type     string
	Data     string
	Priority int
	TTL      int
	Comment  *string
	Updated  time.Time
	Config   map[string]doc // geo_ip_config and its like, as given
}

// recordInput is a record as clients write it.
type recordInput struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Data     string  `json:"data"`
	Priority int     `json:"priority"`
	TTL      int     `json:"ttl"`
	Comment  *string `json:"comment"`
	GeoIP    doc     `json:"geo_ip_config"`
	HTTP     doc     `json:"http_service_config"`
	Weighted doc     `json:"weighted_config"`
	View     doc     `json:"view_config"`
}

const defaultTTL = 3600

var dnsTypes = []string{"A", "AAAA", "CNAME", "TXT", "SRV", "TLSA", "MX", "NS", "PTR", "CAA", "ALIAS", "LOC", "SSHFP", "HINFO", "RP", "URI",
	"DS", "NAPTR", "DNAME", "SVCB", "HTTPS"}

func viewDNSRecord(r *dnsRecord) doc {
	d := doc{"id": r.ID, "name": r.Name, "type": r.Type, "data": r.Data, "priority": r.Priority, "ttl": r.TTL, "comment": nil, "updated_at": stampDNS(r.Updated)}
	if r.Comment != nil {
		d["comment"] = *r.Comment
	}
	for k, v := range r.Config {
		d[k] = v
	}
	return d
}

func listDNSRecords(c *call) (any, error) {
	z, err := c.dnsZone()
	if err != nil {
		return nil, err
	}
	// An empty name does not ask for the top of the zone: it does not filter.
	name, id, kinds := c.query("name"), c.query("id"), c.known("type")
	var found []*dnsRecord
	for _, r := range z.Records {
		if (name == "" || r.Name == name) && (id == "" || r.ID == id) && oneOf(r.Type, kinds) {
			found = append(found, r)
		}
	}
	sort.SliceStable(found, func(i, j int) bool {
		if c.query("order_by") == "name_desc" {
			i, j = j, i
		}
		return found[i].Name < found[j].Name
	})
	total := len(found)
	return doc{"records": views(page(c, found, "page_size", 20), viewDNSRecord), "total_count": total}, nil
}

// record turns what a client wrote into what a zone keeps.
func (in recordInput) record(zone string) (*dnsRecord, error) {
	r := &dnsRecord{ID: newID(), Name: relative(in.Name, zone), Type: in.Type, Priority: in.Priority, TTL: in.TTL, Comment: in.Comment, Updated: now()}
	if !slices.Contains(dnsTypes, in.Type) {
		return nil, invalid("type", "constraint", "record type "+in.Type+" does not exist")
	}
	if in.TTL < 0 || in.Priority < 0 {
		return nil, invalid("ttl", "constraint", "ttl and priority cannot be negative")
	}
	if r.TTL == 0 {
		r.TTL = defaultTTL
	}
	if r.Type == "CNAME" && r.Name == "" {
		return nil, untyped(http.StatusBadRequest, "a CNAME record cannot be at the top of a zone")
	}
	for k, v := range map[string]doc{"geo_ip_config": in.GeoIP, "http_service_config": in.HTTP, "weighted_config": in.Weighted, "view_config": in.View} {
		if v != nil {
			if r.Config != nil {
				return nil, invalid(k, "constraint", "a record has one dynamic configuration at most")
			}
			r.Config = map[string]doc{k: v}
		}
	}
	data, err := recordData(in, zone)
	r.Data = data
	return r, err
}

// relative is a name as a zone keeps it: what ends in a dot is absolute, all
// else is relative already, whatever it ends in.
func relative(name, zone string) string {
	name = strings.ToLower(name)
	if name == "@" || name == zone+"." {
		return ""
	}
	if absolute, ok := strings.CutSuffix(name, "."+zone+"."); ok {
		return absolute
	}
	return strings.TrimSuffix(name, ".")
}

// recordData is a record's data as a zone keeps it: targets are absolute, and
// what lacks the dot at the end gets the zone appended; texts are quoted.
func recordData(in recordInput, zone string) (string, error) {
	data := strings.TrimSpace(in.Data)
	if data == "" {
		return "", invalid("data", "required", "data is required")
	}
	switch in.Type {
	case "A", "AAAA":
		a, err := netip.ParseAddr(data)
		if err != nil || a.Is4() != (in.Type == "A") {
			return "", invalid("data", "format", "data is no address of the record's type")
		}
		return a.String(), nil
	case "CNAME", "NS", "PTR", "ALIAS", "DNAME":
		return absolute(data, zone), nil
	case "MX":
		target := data[strings.LastIndexByte(data, ' ')+1:]
		return strconv.Itoa(in.Priority) + " " + absolute(target, zone), nil
	case "SRV":
		fields := strings.Fields(data)
		if len(fields) == 3 { // the priority is a field of its own
			fields = append([]string{strconv.Itoa(in.Priority)}, fields...)
		}
		if len(fields) != 4 {
			return "", invalid("data", "format", "data must be a priority, a weight, a port and a target")
		}
		fields[3] = absolute(fields[3], zone)
		return strings.Join(fields, " "), nil
	case "TXT":
		if strings.HasPrefix(data, `"`) && strings.HasSuffix(data, `"`) && len(data) > 1 {
			return data, nil
		}
		return `"` + strings.ReplaceAll(in.Data, `"`, `\"`) + `"`, nil
	}
	return data, nil
}

func absolute(target, zone string) string {
	if strings.HasSuffix(target, ".") {
		return target
	}
	return target + "." + zone + "."
}
