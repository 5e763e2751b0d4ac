package scaleway

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"bastide/internal/blueprint"

	"github.com/scaleway/scaleway-sdk-go/api/domain/v2beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// zone is a DNS zone with its records.
type zone struct {
	name    string
	status  domain.DNSZoneStatus
	message string
	records []*domain.Record
}

// canonicalName is a domain name as it is compared: in small letters, without
// the dot at its end.
func canonicalName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

func zoneName(z *domain.DNSZone) string {
	if z.Subdomain == "" {
		return canonicalName(z.Domain)
	}
	return canonicalName(z.Subdomain + "." + z.Domain)
}

// fullName is a record's name with its zone's. Records name themselves relative
// to the zone; the zone's top has no name, or @. An escaped asterisk is one.
func fullName(record, zone string) string {
	name := strings.ReplaceAll(canonicalName(record), `\052`, "*")
	switch {
	case name == "" || name == "@" || name == zone:
		return zone
	case strings.HasSuffix(record, "."):
		return name // absolute already
	}
	return name + "." + zone
}

func (c *Cloud) listZones(ctx context.Context) ([]*domain.DNSZone, error) {
	return list(ctx, c, "DNS zones", zoneName, func(ctx context.Context, n *int32, size *uint32) ([]*domain.DNSZone, uint64, error) {
		r, err := c.domains.ListDNSZones(&domain.ListDNSZonesRequest{Page: n, PageSize: size, OrderBy: domain.ListDNSZonesRequestOrderByDomainAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.DNSZones, uint64(r.TotalCount), nil
	})
}

func (c *Cloud) listRecords(ctx context.Context, zone string) ([]*domain.Record, error) {
	return list(ctx, c, "records of the DNS zone "+zone, func(v *domain.Record) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*domain.Record, uint64, error) {
		r, err := c.domains.ListDNSZoneRecords(&domain.ListDNSZoneRecordsRequest{DNSZone: zone, Page: n, PageSize: size,
			OrderBy: domain.ListDNSZoneRecordsRequestOrderByNameAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Records, uint64(r.TotalCount), nil
	})
}

// findZones reads the zones that can hold records of the estate: the file's,
// whosever project it is in, and all of the project's, where an earlier file may
// have left some.
func (c *Cloud) findZones(ctx context.Context) ([]*zone, error) {
	all, err := c.listZones(ctx)
	if err != nil {
		return nil, err
	}
	var zones []*zone
	for _, z := range all {
		name := zoneName(z)
		if z.ProjectID != c.project && name != c.dnsZone() {
			continue
		}
		v := &zone{name: name, status: z.Status}
		if z.Message != nil {
			v.message = *z.Message
		}
		zones = append(zones, v)
	}
	err = together(ctx, len(zones), func(ctx context.Context, i int) (err error) {
		zones[i].records, err = c.listRecords(ctx, zones[i].name)
		if notFound(err) {
			err = nil // the zone was being deleted and is gone now
		}
		return err
	})
	return zones, err
}

// dnsZone is the zone that the file names, or "".
func (c *Cloud) dnsZone() string {
	if c.estate.DNS == nil {
		return ""
	}
	return canonicalName(c.estate.DNS.Zone)
}

// comment is a record's mark. Records carry no tags; a comment is made and goes
// with its record in one call and is not published, unlike a TXT record beside
// it.
func (c *Cloud) comment() string { return blueprint.TagEstate + c.estate.Name }

func (c *Cloud) ownRecord(r *domain.Record) bool {
	return r.Comment != nil && slices.Contains(strings.Fields(*r.Comment), c.comment())
}

// recordSet is what a zone has under one name.
type recordSet struct {
	own []*domain.Record // with the estate's mark
	// other is a record without the mark that answers to the same question.
	other *domain.Record
}

// answering are the types of records that lead a name somewhere. An IPv6 address
// counts: most clients would prefer it to ours.
var answering = []domain.RecordType{domain.RecordTypeA, domain.RecordTypeAAAA, domain.RecordTypeCNAME, domain.RecordTypeALIAS, domain.RecordTypeDNAME}

// setOf gathers the records of a name. Texts of others do not matter; an address
// of either family, or an alias, of others would be answered beside ours or
// instead of it.
func (c *Cloud) setOf(records []*domain.Record, name, zone string) recordSet {
	var set recordSet
	for _, r := range records {
		switch {
		case fullName(r.Name, zone) != name:
		case c.ownRecord(r):
			set.own = append(set.own, r)
		case slices.Contains(answering, r.Type):
			set.other = r
		}
	}
	return set
}

// value is a record's data as it is compared.
func value(r *domain.Record) string {
	if a, err := netip.ParseAddr(r.Data); err == nil {
		return a.String()
	}
	return canonicalName(r.Data)
}

// spec is what a set of the estate's own records says. TTLs that differ count as
// one that the file cannot ask for.
func (s recordSet) spec(zone string) blueprint.DNSRecord {
	spec := blueprint.DNSRecord{Zone: zone, Type: string(s.own[0].Type), TTL: int(s.own[0].TTL)}
	for _, r := range s.own {
		spec.Values = append(spec.Values, value(r))
		if r.Type != s.own[0].Type {
			spec.Type = "several"
		}
		if int(r.TTL) != spec.TTL {
			spec.TTL = 0
		}
	}
	return spec
}

func recordStrange(r *domain.Record, name string) string {
	return fmt.Sprintf("the zone has the record %s %s %s, which is not the estate's", name, r.Type, r.Data)
}

// records claims records by their comment and their name.
func (r *reader) records() {
	for _, z := range r.f.zones {
		names := map[string]bool{}
		for _, v := range z.records {
			names[fullName(v.Name, z.name)] = true
		}
		for name := range names {
			r.record(z, name)
		}
	}
	r.zoneMissing()
}

func (r *reader) record(z *zone, name string) {
	set, step := r.setOf(z.records, name, z.name), string(blueprint.KindDNSRecord)+"/"+name
	if set.other != nil {
		r.inTheWay(step, fmt.Sprintf("%s; remove it, choose another name in dns, or hand it over: with the comment %s%s it is the estate's", recordStrange(set.other, name), blueprint.TagEstate, r.estate.Name))
	}
	if len(set.own) == 0 {
		return
	}
	it := Item{Kind: blueprint.KindDNSRecord, Step: step, Name: name, CloudID: set.own[0].ID, Settled: true, on: z.name, Spec: set.spec(z.name)}
	if z.status == domain.DNSZoneStatusError || z.status == domain.DNSZoneStatusLocked {
		it.Broken = fmt.Sprintf("the zone %s is in the state %s %s", z.name, z.status, z.message)
	}
	r.add(it)
}

// zoneMissing refuses the file's records when the listing, read to its end, has
// no such zone. One is never made: it is a person's, and costs money.
func (r *reader) zoneMissing() {
	name := r.dnsZone()
	if name == "" || slices.ContainsFunc(r.f.zones, func(z *zone) bool { return z.name == name }) {
		return
	}
	for _, relative := range []string{r.estate.DNS.API, r.estate.DNS.Edge} {
		if relative != "" {
			r.inTheWay(string(blueprint.KindDNSRecord)+"/"+blueprint.RecordName(relative, name), noZone(name))
		}
	}
}

func noZone(name string) string {
	return fmt.Sprintf("the API key sees no DNS zone %s, and bastide never makes one; correct dns.zone, or make the zone in the Scaleway console", name)
}
