package estate

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Endpoint is the address of an object store in the one form in which two of
// them can be compared: lower case, no final dot, no default port.
type Endpoint struct {
	Scheme string // http or https
	Host   string // a name, or an IP address without brackets
	Port   string // always given
}

// hostName is what bastide takes for the name of a host: letters that are not
// ASCII, underscores and escapes have many spellings, and with them two addresses
// that are one would not compare equal.
var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// ParseEndpoint reads the address of an object store. What is wrong with it is
// given in words that never repeat the address, because somebody may have
// written a key into it; they are empty when nothing is.
func ParseEndpoint(text string) (e Endpoint, wrong, hint string) {
	const form = "write it as https://s3.example.net"
	if strings.Contains(text, "@") {
		return e, "holds a user name or a key", "take it out, and see that it is nowhere else in the file's history; keys come from the environment"
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Opaque != "" || u.Scheme != "http" && u.Scheme != "https" {
		return e, "is not the https address of an object store", form
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#") {
		return e, "has more than a scheme, a host and a port", "leave off the path; the bucket is named by store.replica.bucket"
	}
	e = Endpoint{Scheme: u.Scheme, Host: strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), Port: u.Port()}
	if e.Port == "" {
		e.Port = map[string]string{"http": "80", "https": "443"}[e.Scheme]
	}
	if port, err := strconv.Atoi(e.Port); err != nil || port < 1 || port > 65535 {
		return e, "has a port that is none", form
	}
	e.Port = strings.TrimLeft(e.Port, "0")
	switch ip, err := netip.ParseAddr(e.Host); {
	case err == nil && ip.Zone() == "":
		e.Host = ip.Unmap().String()
	case e.Host == "localhost":
		e.Host = "127.0.0.1"
	case !hostName.MatchString(e.Host) || numeric(e.Host):
		return e, "has a host that is neither a plain name nor an IP address", form
	}
	return e, "", ""
}

// ParseReplica reads the address of a replica, which others than this machine
// reach over TLS alone.
func ParseReplica(text string) (e Endpoint, wrong, hint string) {
	e, wrong, hint = ParseEndpoint(text)
	if wrong == "" && e.Scheme == "http" && !e.Loopback() {
		return e, "is not encrypted", "write https; http is for a store on this very machine"
	}
	return e, wrong, hint
}

// numeric says that a name is one of the short or padded spellings of an IPv4
// address, such as 127.1, that some resolvers take.
func numeric(host string) bool {
	last := host[strings.LastIndex(host, ".")+1:]
	return strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")
}

// Loopback says that the store is on this machine.
func (e Endpoint) Loopback() bool {
	ip, err := netip.ParseAddr(e.Host)
	return err == nil && ip.IsLoopback()
}

// URL is the address without what a default port would add.
func (e Endpoint) URL() string { return e.Scheme + "://" + e.Address() }

// Address is the host, with a port where that is not the default.
func (e Endpoint) Address() string {
	host := e.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if e.Scheme == "https" && e.Port == "443" || e.Scheme == "http" && e.Port == "80" {
		return host
	}
	return host + ":" + e.Port
}

// Meets says that two addresses lead to one store: the same host, whatever the
// port, or a bucket's host name under the other. On one machine ports tell
// stores apart.
func (e Endpoint) Meets(other Endpoint) bool {
	if e.Loopback() && other.Loopback() {
		return e.Port == other.Port
	}
	return e.Host == other.Host || strings.HasSuffix(e.Host, "."+other.Host) || strings.HasSuffix(other.Host, "."+e.Host)
}

// provider is the domain under which all of Scaleway's object storage answers.
const provider = "scw.cloud"

// atScaleway says that a host is Scaleway's, and in which of its regions: "" when
// the name does not say.
func (e Endpoint) atScaleway() (region string, yes bool) {
	if e.Host != provider && !strings.HasSuffix(e.Host, "."+provider) && e.Host != "scaleway.com" && !strings.HasSuffix(e.Host, ".scaleway.com") {
		return "", false
	}
	for label := range strings.SplitSeq(e.Host, ".") {
		if slices.Contains(regions, label) {
			region = label
		}
	}
	return region, true
}
