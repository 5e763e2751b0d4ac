package estate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// bucketName is what bastide takes for the name of a bucket: S3's rules without
// dots, because a bucket is also a host name under the region's certificate,
// which covers one label.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$`)

// Beginnings and ends that S3 keeps for itself.
var (
	reservedBeginnings = []string{"xn--", "sthree-", "amzn-s3-demo-"}
	reservedEnds       = []string{"-s3alias", "--ol-s3", "--x-s3", "--table-s3"}
)

func (s *source) validateStore(store *Store) {
	const path = "store.bucket"
	name := store.Bucket
	switch {
	case name == "":
	case len(name) < 3 || len(name) > 63:
		s.refuse(path, fmt.Sprintf("has %d characters", len(name)), "names of buckets have 3 to 63", "choose another, or leave it out and bastide makes one")
	case !bucketName.MatchString(name):
		s.refuse(path, fmt.Sprintf("%q cannot be the name of a bucket", brief(name)), "it becomes a host name of one label under the region's certificate",
			"write lower-case letters, digits and dashes, beginning and ending with a letter or digit")
	default:
		for _, r := range reservedBeginnings {
			if strings.HasPrefix(name, r) {
				s.refuse(path, "begins with "+r, "object storage keeps such names for itself", "choose another")
			}
		}
		for _, r := range reservedEnds {
			if strings.HasSuffix(name, r) {
				s.refuse(path, "ends with "+r, "object storage keeps such names for itself", "choose another")
			}
		}
	}
}

// BucketName is the name of the estate's own bucket, in the one place that
// derives it. Names are shared by all customers, so the derived one carries a
// digest of project and estate: nobody else comes to it by chance, and the same
// file comes to it always.
func (e *Estate) BucketName() string {
	if e.Store.Bucket != "" {
		return e.Store.Bucket
	}
	sum := sha256.Sum256([]byte(e.Scaleway.Project + "/" + e.Name))
	return "bastide-" + e.Name + "-" + hex.EncodeToString(sum[:])[:8]
}
