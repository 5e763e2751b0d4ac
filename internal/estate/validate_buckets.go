package estate

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Limits of S3 that hold at Scaleway too.
const (
	longestTagKey   = 128 // characters
	longestTagValue = 256
	longestPrefix   = 1024 // of a key
	mostRuleDays    = 36500
)

var (
	versionings   = []string{"enabled", "disabled"}
	corsMethods   = []string{"GET", "PUT", "POST", "DELETE", "HEAD"}
	tagText       = regexp.MustCompile(`\A[A-Za-z0-9 +=._:/@-]*\z`)
	headerPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

func (s *source) validateBuckets(buckets []Bucket, own string) {
	const path = "services.buckets"
	first := map[string]int{}
	for i := range buckets {
		b, here := &buckets[i], indexed(path, i)
		s.validateBucketName(here+".name", b.Name, own)
		if at, twice := first[b.Name]; twice && b.Name != "" {
			s.refuse(here+".name", fmt.Sprintf("%q is the name of %s too", brief(b.Name), indexed(path, at)), "names of buckets are unique among all customers", "choose another name")
		} else {
			first[b.Name] = i
		}
		s.oneOf(here+".versioning", b.Versioning, versionings, "versions of objects are kept or they are not")
		s.validateBucketTags(here+".tags", b.Tags)
		s.validateLifecycle(here+".lifecycle", b.Lifecycle)
		s.validateCORS(here+".cors", b.CORS)
	}
}

// validateBucketName applies the rules of object storage to the name of one of
// the application's buckets.
func (s *source) validateBucketName(path, name, own string) {
	const hint = "write 3 to 63 lower-case letters, digits and dashes, with a letter or digit at both ends"
	switch {
	case name == "":
	case !bucketName.MatchString(name):
		s.refuse(path, fmt.Sprintf("%q cannot be the name of a bucket", brief(name)), "it becomes a host name of one label under the region's certificate", hint)
	case slices.ContainsFunc(reservedBeginnings, func(r string) bool { return strings.HasPrefix(name, r) }),
		slices.ContainsFunc(reservedEnds, func(r string) bool { return strings.HasSuffix(name, r) }):
		s.refuse(path, fmt.Sprintf("%q is reserved", brief(name)), "object storage keeps such names for itself", "choose another name")
	case name == own:
		s.refuse(path, "is the estate's own bucket", "it holds the lock, and the application must not write there", "choose another name")
	}
}

func (s *source) validateBucketTags(path string, tags map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		here := keyed(path, key)
		switch {
		case key == "" || len([]rune(key)) > longestTagKey:
			s.refuse(here, "cannot be a tag's key", fmt.Sprintf("S3 takes 1 to %d characters", longestTagKey), "shorten it, or write one")
		case strings.HasPrefix(key, OwnTags), strings.HasPrefix(key, "aws:"):
			s.refuse(here, fmt.Sprintf("%q is reserved", brief(key)), "such tags are bastide's, or S3's own", "choose another key")
		case !tagText.MatchString(key), !tagText.MatchString(tags[key]):
			s.refuse(here, fmt.Sprintf("%q is no tag of a bucket", brief(key+"="+tags[key])), "object storage may refuse other characters than letters, digits, spaces and + - = . _ : / @", "write it with these")
		case len([]rune(tags[key])) > longestTagValue:
			s.refuse(here, fmt.Sprintf("has %d characters", len([]rune(tags[key]))), fmt.Sprintf("S3 takes at most %d", longestTagValue), "shorten it")
		}
	}
}

func (s *source) validateLifecycle(path string, rules []LifecycleRule) {
	first := map[string]int{}
	for i, r := range rules {
		here := indexed(path, i)
		if at, twice := first[r.Name]; twice && r.Name != "" {
			s.refuse(here+".name", fmt.Sprintf("%q is the name of %s too", brief(r.Name), indexed(path, at)), "rules are told apart by name", "choose another name")
		} else {
			first[r.Name] = i
		}
		if len(r.Name) > 255 {
			s.refuse(here+".name", fmt.Sprintf("has %d characters", len(r.Name)), "S3 takes at most 255", "shorten it")
		}
		if len(r.Prefix) > longestPrefix {
			s.refuse(here+".prefix", fmt.Sprintf("has %d characters", len(r.Prefix)), fmt.Sprintf("a key has at most %d", longestPrefix), "shorten it")
		}
		sound := true
		for _, d := range []struct {
			key  string
			days int
		}{{"expireDays", r.ExpireDays}, {"oldVersionDays", r.OldVersionDays}, {"abortDays", r.AbortDays}} {
			if d.days < 0 || d.days > mostRuleDays {
				sound = false
				s.refuse(here+"."+d.key, fmt.Sprintf("is %d", d.days), "objects expire after a number of whole days", "write 1 or more, or leave it out")
			}
		}
		if sound && r.ExpireDays == 0 && r.OldVersionDays == 0 && r.AbortDays == 0 {
			s.refuse(here, "does nothing", "a rule without days deletes nothing, and Object Storage refuses it", "write expireDays, oldVersionDays or abortDays, or remove the rule")
		}
	}
}

func (s *source) validateCORS(path string, rules []CORSRule) {
	for i, r := range rules {
		here := indexed(path, i)
		for j, o := range r.Origins {
			if !isOrigin(o) {
				s.refuse(indexed(here+".origins", j), fmt.Sprintf("%q is not an origin", brief(o)), "browsers send scheme, host and port, and nothing behind", "write such as https://app.example.org, or *")
			}
		}
		s.noRepeat(here+".origins", r.Origins)
		s.unknownWord(here+".methods", r.Methods, corsMethods, "S3 knows these methods: "+strings.Join(corsMethods, ", "))
		s.noRepeat(here+".methods", r.Methods)
		for _, list := range []struct {
			key    string
			values []string
			star   bool
		}{{"headers", r.Headers, true}, {"exposeHeaders", r.ExposeHeaders, false}} {
			for j, h := range list.values {
				if !headerPattern.MatchString(h) || strings.Contains(h, "*") && !list.star || strings.Count(h, "*") > 1 {
					s.refuse(indexed(here+"."+list.key, j), fmt.Sprintf("%q is not a header's name", brief(h)), "Object Storage would refuse the rule", "write a name such as ETag")
				}
			}
		}
		if r.MaxAgeSeconds < 0 {
			s.refuse(here+".maxAgeSeconds", fmt.Sprintf("is %d", r.MaxAgeSeconds), "it is a number of seconds", "write 0 or more")
		}
	}
}

// isOrigin knows what browsers call an origin; S3 takes one asterisk in it.
func isOrigin(o string) bool {
	if o == "*" {
		return true
	}
	u, err := url.Parse(strings.Replace(o, "*", "any", 1))
	return err == nil && !strings.Contains(u.Host, "*") && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.Path == "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}
