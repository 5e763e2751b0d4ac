package estate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The coarse forms of a replica's address and region, for the schema; what the
// validation checks goes further.
var (
	replicaAddress = regexp.MustCompile(`^[Hh][Tt][Tt][Pp][Ss]?://[^@\s]+$`)
	replicaRegion  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)
)

// sameDomain is why a replica beside the estate is none.
const sameDomain = "what takes the estate's own store away takes the copy with it"

// validateReplica refuses a replica that shares the estate's failure domain
// while nothing has been spent yet (field report 10).
func (s *source) validateReplica(e *Estate) {
	r := e.Store.Replica
	if r == nil {
		return
	}
	const endpoint, region, bucket = "store.replica.endpoint", "store.replica.region", "store.replica.bucket"
	if r.Region != "" && !replicaRegion.MatchString(r.Region) {
		s.refuse(region, fmt.Sprintf("%q cannot be the name of a region", brief(r.Region)), "every signature names it", "write it as the provider does, such as eu-west-1")
	}
	if r.Bucket != "" && !bucketName.MatchString(r.Bucket) {
		s.refuse(bucket, fmt.Sprintf("%q cannot be the name of a bucket", brief(r.Bucket)), "names of buckets have 3 to 63 lower-case letters, digits and dashes",
			"name a private bucket that you made there")
	}
	if r.Endpoint == "" {
		return
	}
	if what, why, hint := r.Shared(e.Scaleway.Region); what != "" {
		s.refuse(endpoint, what, why, hint)
		return
	}
	at, _, _ := ParseEndpoint(r.Endpoint)
	there, scaleway := at.atScaleway()
	switch {
	case r.Region == e.Scaleway.Region && slices.Contains(regions, r.Region):
		// A store of somebody else has other names for its regions. Scaleway's
		// behind another host name has not, and takes no signature for another.
		s.refuse(region, "is the estate's own region", "that is Scaleway's name for it, so the store behind this address is the estate's; "+sameDomain,
			"write the region of a store elsewhere")
	case scaleway && r.Region != "" && r.Region != there:
		s.refuse(region, fmt.Sprintf("is %q and the address is in %s", brief(r.Region), there), "the store would refuse every signature", "write "+there)
	}
}

// Shared says in what way a replica is no store of its own, beside an estate of a
// region; what is empty when it is one. It is asked of the file and of an
// address that the environment gives instead.
func (r *Replica) Shared(home string) (what, why, hint string) {
	const elsewhere = "name a store of another provider"
	at, wrong, hint := ParseReplica(r.Endpoint)
	if wrong != "" {
		return wrong, "copies of the secrets bundle go there", hint
	}
	region, scaleway := at.atScaleway()
	switch {
	case scaleway && region == "":
		return "is Scaleway's and does not say in which region it is", "it may be the estate's own; " + sameDomain, elsewhere + ", or write https://s3.REGION." + provider + " of another region"
	case scaleway && region == home:
		return fmt.Sprintf("is object storage of %s at Scaleway, as the estate's own store is", home), sameDomain, elsewhere + ", or at least of another region"
	case scaleway && at.Host != "s3."+region+"."+provider:
		return fmt.Sprintf("is not the address of object storage in %s", region), "a bucket's name does not belong into it", fmt.Sprintf("write https://s3.%s.%s", region, provider)
	case r.Bucket != "" && strings.HasPrefix(at.Host, r.Bucket+"."):
		return "has the bucket's name in it", "the bucket is named by store.replica.bucket alone", "write https://" + strings.TrimPrefix(at.Address(), r.Bucket+".")
	}
	return "", "", ""
}

// near is why a replica is less far away than it could be.
type near struct{ what, why, hint string }

// nearness is what may be done and should be known: another region of Scaleway
// is another failure domain, and the account is still the same one.
func (r *Replica) nearness() []near {
	at, wrong, _ := ParseEndpoint(r.Endpoint)
	if wrong != "" {
		return nil
	}
	var out []near
	if region, yes := at.atScaleway(); yes {
		out = append(out, near{"is in " + region + ", at Scaleway as the estate is", "another region fails by itself; a locked account, an unpaid bill or a lost login takes both",
			"use a store of another provider, or at least an account of its own"})
	}
	if at.Loopback() {
		out = append(out, near{"is on this machine", "a copy beside the file is lost with it", "use a store elsewhere, unless this is a rehearsal"})
	}
	return out
}
