package estate

import (
	"crypto/rsa"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/util/validation"
)

// How wide the door may be. A home or office connection is one address, a
// company a few ranges; a /16 is already a whole provider's district.
const (
	widestAdmin    = 16      // prefix length of one range
	mostAdmitted   = 4 << 16 // addresses in all ranges together
	smallestRSAKey = 2048    // bits
)

var doors = []string{"bastion"}

// neverSources are ranges from which no packet reaches the gateway's public
// address. Documentation ranges are not among them: examples live there.
var neverSources = append([]netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("240.0.0.0/4"),
}, privateRanges...)

func (s *source) validateAdmin(a *Admin) {
	s.oneOf("admin.door", a.Door, doors, "this version of bastide comes in through the gateway's SSH bastion only")
	s.validateAdminRanges(a.CIDRs)
	for i, key := range a.SSHKeys {
		s.validateSSHKey(indexed("admin.sshKeys", i), key)
	}
	s.noRepeat("admin.sshKeys", a.SSHKeys)
}

func (s *source) validateAdminRanges(ranges []Prefix) {
	const path = "admin.cidrs"
	const own = "write the public address that you come from, such as 198.51.100.7/32"
	sound, admitted := 0, 0
	for i, r := range ranges {
		here := indexed(path, i)
		if !r.IsValid() {
			s.refuse(here, "is empty", "an empty element admits nobody", own) // silent where decoding has refused it
			continue
		}
		switch {
		case !r.Addr().Is4():
			s.refuse(here, r.String()+" is not IPv4", "the gateway's bastion has an IPv4 address only, so this would admit nobody", own)
			continue
		case r.Bits() == 0:
			s.refuse(here, r.String()+" is the whole world", "the door would stand open to everybody", own)
			continue
		case r.Bits() < widestAdmin:
			s.refuse(here, fmt.Sprintf("%s is a /%d", r, r.Bits()),
				fmt.Sprintf("a range wider than a /%d admits strangers, and two halves are the whole world", widestAdmin), own)
			continue
		case overlapsAny(r.Prefix, neverSources):
			s.refuse(here, r.String()+" is not a public range", "the gateway sees the public address behind which you are, so this would admit nobody", own)
			continue
		}
		for j, other := range ranges[:i] {
			if other.IsValid() && !s.refused[indexed(path, j)] && r.Overlaps(other.Prefix) {
				s.refuse(here, fmt.Sprintf("%s overlaps %s (%s)", r, indexed(path, j), other), "closing one would leave the other open", "keep the one that is meant")
			}
		}
		sound++
		admitted += 1 << (32 - r.Bits())
	}
	if sound == len(ranges) && admitted > mostAdmitted {
		s.refuse(path, fmt.Sprintf("admits %d addresses", admitted), fmt.Sprintf("all ranges together may hold %d (four /16)", mostAdmitted), "list only the addresses that you come from")
	}
}

func overlapsAny(p netip.Prefix, ranges []netip.Prefix) bool {
	for _, r := range ranges {
		if r.Overlaps(p) {
			return true
		}
	}
	return false
}

var inlineSSHKey = regexp.MustCompile(`^(ssh|ecdsa|sk)-\S+\s|\s(ssh|ecdsa|sk)-\S+\s`)

// isInlineSSHKey tells a key from the path of a file that holds one.
func isInlineSSHKey(entry string) bool { return inlineSSHKey.MatchString(entry) }

func (s *source) validateSSHKey(path, entry string) {
	switch {
	case entry == "":
		s.refuse(path, "is empty", "an empty element names no key", "write a public key, or the path of its file")
	case isInlineSSHKey(entry):
		if _, what, why := publicKey([]byte(entry)); what != "" {
			s.refuse(path, what, why, "copy the one line of the .pub file")
		}
	case strings.HasPrefix(entry, "ssh-"), strings.HasPrefix(entry, "ecdsa-"):
		s.refuse(path, "is half a public key", "a key is its type and a long word, on one line", "copy the one line of the .pub file")
	}
}

// publicKey reads exactly one SSH public key and gives it as one line without
// comment. When it cannot be used, what and why say so, and never repeat it.
func publicKey(text []byte) (line, what, why string) {
	key, _, options, rest, err := ssh.ParseAuthorizedKey(text)
	switch {
	case err != nil:
		return "", "is not an SSH public key", "it cannot be decoded"
	case len(options) > 0:
		return "", "carries options before the key", "Scaleway registers bare keys, so the options would not hold"
	case strings.TrimSpace(string(rest)) != "":
		return "", "holds more than one key", "each element is one key"
	}
	if key.Type() == "ssh-dss" {
		return "", "is a DSA key", "SSH servers refuse them as broken"
	}
	if crypto, ok := key.(ssh.CryptoPublicKey); ok {
		if r, ok := crypto.CryptoPublicKey().(*rsa.PublicKey); ok && r.N.BitLen() < smallestRSAKey {
			return "", fmt.Sprintf("is an RSA key of %d bits", r.N.BitLen()), fmt.Sprintf("fewer than %d can be broken", smallestRSAKey)
		}
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), "", ""
}

func (s *source) validateAPI(a *API) {
	s.oneOf("api.loadBalancer", a.LoadBalancer, loadBalancerTypes, "Scaleway offers no such load balancer")
	for i, name := range a.Names {
		path := indexed("api.names", i)
		switch _, err := netip.ParseAddr(name); {
		case err == nil:
			s.refuse(path, name+" is an address", "the addresses of the load balancer, gateway and nodes are in the certificate already", "list names only")
		case strings.HasSuffix(name, "."):
			s.refuse(path, fmt.Sprintf("%q ends in a dot", brief(name)), "certificates hold names without it", "remove the dot")
		case len(validation.IsDNS1123Subdomain(name)) > 0:
			s.refuse(path, fmt.Sprintf("%q is not a DNS name", brief(name)), "a client could not connect to it and check the certificate", "write a full name in lower case, such as k8s.staging.example.org")
		}
	}
	s.noRepeat("api.names", a.Names)
}
