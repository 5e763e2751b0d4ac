package estate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// How long an answer may be kept, in seconds. Below a minute resolvers do as
// they like; above a week a wrong address stays for longer than anybody waits.
const (
	shortestTTL = 60
	longestTTL  = 604800
)

// longestName is what the DNS carries, in characters.
const longestName = 253

func (s *source) validateDNS(e *Estate) {
	d := e.DNS
	zone := canonicalName(d.Zone)
	if d.Zone != "" && (len(validation.IsDNS1123Subdomain(zone)) > 0 || !strings.Contains(zone, ".")) {
		s.refuse("dns.zone", fmt.Sprintf("%q is not a zone", brief(d.Zone)), "a zone is a domain of yours, or a part of one", "write such as example.org")
	}
	if d.API == "" && d.Edge == "" {
		s.refuse("dns", "names no record", "without api and edge there is nothing to point at the estate", "write dns.api or dns.edge, or leave dns out")
	}
	s.validateRecord("dns.api", d.API, zone, false)
	s.validateRecord("dns.edge", d.Edge, zone, true)
	if d.API != "" && d.Edge != "" && canonicalName(d.API) == canonicalName(d.Edge) {
		s.refuse("dns.edge", fmt.Sprintf("%q is the name of dns.api too", brief(d.Edge)), "one name cannot point at both the private and the public address", "choose another name")
	}
	if d.Edge != "" && e.Network.EdgeAddress != "reserved" && !s.silenced("network.edgeAddress") {
		s.refuse("dns.edge", "has no address to point at", "an address that the cluster's load balancer gets by itself is not known beforehand", "write network.edgeAddress: reserved")
	}
	if d.TTL < shortestTTL || d.TTL > longestTTL {
		s.refuse("dns.ttl", fmt.Sprintf("is %d", d.TTL), fmt.Sprintf("it is the number of seconds that an answer is kept, %d to %d", shortestTTL, longestTTL), "write 300")
	}
}

// validateRecord checks a name that stands in front of the zone's. @ is the zone
// itself; an asterisk in front stands for any name.
func (s *source) validateRecord(path, relative, zone string, wildcard bool) {
	if relative == "" || relative == "@" {
		return
	}
	name := canonicalName(relative)
	switch plain := strings.TrimPrefix(name, "*."); {
	case zone != "" && (name == zone || strings.HasSuffix(name, "."+zone)):
		short := strings.TrimSuffix(strings.TrimSuffix(name, zone), ".")
		if short == "" {
			short = "@"
		}
		s.refuse(path, fmt.Sprintf("%q holds the zone", brief(relative)), "the zone's name is added to it", "write "+short)
	case strings.Contains(name, "*") && !wildcard:
		s.refuse(path, fmt.Sprintf("%q is a wildcard", brief(relative)), "the API has one name, which is in its certificate", "write such as k8s")
	case name != "*" && len(validation.IsDNS1123Subdomain(plain)) > 0:
		s.refuse(path, fmt.Sprintf("%q is not a DNS name", brief(relative)), "no client could ask for it", "write a name relative to the zone, such as k8s.staging, or @ for the zone itself")
	case len(name)+1+len(zone) > longestName:
		s.refuse(path, fmt.Sprintf("makes a name of %d characters", len(name)+1+len(zone)), fmt.Sprintf("the DNS carries at most %d", longestName), "shorten it")
	}
}

// APIName is the full DNS name of the Kubernetes API that the file asks for, or
// "". It is in the API server's certificate as api.names are.
func (e *Estate) APIName() string {
	if e.DNS == nil || e.DNS.API == "" {
		return ""
	}
	zone := canonicalName(e.DNS.Zone)
	if name := canonicalName(e.DNS.API); name != "@" {
		return name + "." + zone
	}
	return zone
}

// canonicalName is a domain name as it is compared: in small letters, without
// the dot at its end.
func canonicalName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
