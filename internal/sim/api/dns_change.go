package api

import (
	"net/http"
	"slices"
	"strings"
)

type recordChange struct {
	Add *struct {
		Records []recordInput `json:"records"`
	} `json:"add"`
	Set *struct {
		recordChoice
		Records []recordInput `json:"records"`
	} `json:"set"`
	Delete *recordChoice `json:"delete"`
	Clear  *struct{}     `json:"clear"`
}

// recordChoice names records: one by its id, or those with the same fields.
type recordChoice struct {
	ID     string        `json:"id"`
	Fields *recordFields `json:"id_fields"`
}

type recordFields struct {
	Name string  `json:"name"`
	Type string  `json:"type"`
	Data *string `json:"data"`
	TTL  *int    `json:"ttl"`
}

// updateDNSRecords makes all changes of a call or none. A zone that does not
// exist is made on the way, unless the caller says not to.
func updateDNSRecords(c *call) (any, error) {
	var in struct {
		Changes   []recordChange `json:"changes"`
		All       opt[bool]      `json:"return_all_records"`
		NoNewZone bool           `json:"disallow_new_zone_creation"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	name := canonical(c.path("dns_zone"))
	root, sub, ours := c.domainOf(name)
	if !ours {
		return nil, forbidden("dns_record", "write")
	}
	z, exists := c.Zones.get(name)
	if !exists {
		if in.NoNewZone {
			return nil, noSuchZone(name)
		}
		z = newDNSZone(root.Project, root.Domain, sub)
	}
	records, touched := slices.Clone(z.Records), []*dnsRecord{}
	for _, ch := range in.Changes {
		var err error
		var made []*dnsRecord
		if records, made, err = ch.apply(records, z.Name); err != nil {
			return nil, err
		}
		touched = append(touched, made...)
	}
	if err := consistent(records); err != nil {
		return nil, err
	}
	if !exists {
		add(c.world, c.Zones, z)
	}
	z.Records = records
	c.unsettle(z)
	if in.All.or(true) {
		touched = records
	}
	return doc{"records": views(touched, viewDNSRecord)}, nil
}

// apply is one change; made are the records that it wrote.
func (ch recordChange) apply(records []*dnsRecord, zone string) (after, made []*dnsRecord, err error) {
	switch {
	case ch.Add != nil:
		made, err = written(ch.Add.Records, zone)
		return append(records, made...), made, err
	case ch.Set != nil:
		if made, err = written(ch.Set.Records, zone); err != nil {
			return nil, nil, err
		}
		after, at := ch.Set.without(records, zone)
		switch {
		case ch.Set.ID != "" && at < 0:
			return nil, nil, untyped(http.StatusNotFound, "record %s not found", ch.Set.ID)
		case ch.Set.ID != "" && len(made) > 0:
			made[0].ID = ch.Set.ID // a record that was set by its id keeps it; all others get new ones
		case at < 0:
			at = len(after)
		}
		return slices.Insert(after, at, made...), made, nil
	case ch.Delete != nil:
		after, at := ch.Delete.without(records, zone)
		if at < 0 {
			return nil, nil, untyped(http.StatusNotFound, "record not found")
		}
		return after, nil, nil
	case ch.Clear != nil:
		return onlyNS(records), nil, nil
	}
	return nil, nil, invalid("changes", "required", "a change is one of add, set, delete and clear")
}

func written(in []recordInput, zone string) ([]*dnsRecord, error) {
	var out []*dnsRecord
	for _, r := range in {
		record, err := r.record(zone)
		if err != nil {
			return nil, err
		}
		out = append(out, record)
	}
	return out, nil
}

// without leaves the chosen records out, and tells where the first of them was,
// or -1.
func (ch recordChoice) without(records []*dnsRecord, zone string) (after []*dnsRecord, at int) {
	at = -1
	for i, r := range records {
		if !ch.names(r, zone) {
			after = append(after, r)
		} else if at < 0 {
			at = i
		}
	}
	return after, at
}

func (ch recordChoice) names(r *dnsRecord, zone string) bool {
	f := ch.Fields
	if f == nil {
		return ch.ID != "" && r.ID == ch.ID
	}
	data := true
	if f.Data != nil {
		want, err := recordData(recordInput{Type: f.Type, Data: *f.Data, Priority: r.Priority}, zone)
		data = err == nil && want == r.Data
	}
	return r.Name == relative(f.Name, zone) && r.Type == f.Type && data && (f.TTL == nil || *f.TTL == r.TTL)
}

// onlyNS are the records that a zone cannot do without.
func onlyNS(records []*dnsRecord) []*dnsRecord {
	return slices.DeleteFunc(slices.Clone(records), func(r *dnsRecord) bool { return r.Type != "NS" || r.Name != "" })
}

// consistent refuses what no zone can hold: the same line twice, and a CNAME
// beside another record of its name.
func consistent(records []*dnsRecord) error {
	lines, kinds := map[string]bool{}, map[string][]string{}
	for _, r := range records {
		line := r.Name + " " + r.Type + " " + r.Data
		if lines[line] {
			return untyped(http.StatusConflict, "record %s already exists", strings.TrimSpace(line))
		}
		lines[line] = true
		kinds[r.Name] = append(kinds[r.Name], r.Type)
	}
	for name, k := range kinds {
		if len(k) > 1 && slices.Contains(k, "CNAME") {
			return untyped(http.StatusConflict, "a CNAME record cannot be beside other records of the name %s", name)
		}
	}
	return nil
}

func clearDNSRecords(c *call) (any, error) {
	z, err := c.dnsZone()
	if err != nil {
		return nil, err
	}
	z.Records = onlyNS(z.Records)
	c.unsettle(z)
	return doc{}, nil
}
