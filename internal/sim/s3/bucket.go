package s3

import (
	"encoding/xml"
	"net"
	"net/http"
	"regexp"
	"sort"
	"strings"
	"time"
)

var (
	bucketNamePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	versionIDPattern  = regexp.MustCompile(`^(null|[0-9]{16})$`)
)

// validBucketName holds a name against the rules of S3.
func validBucketName(name string) bool {
	return bucketNamePattern.MatchString(name) && !strings.Contains(name, "..") && !strings.Contains(name, ".-") && !strings.Contains(name, "-.") &&
		net.ParseIP(name) == nil && !strings.HasPrefix(name, "xn--") && !strings.HasSuffix(name, "-s3alias")
}

// did notes an effect for the request log.
func (c *call) did(verb, kind, id string) {
	c.effects = append(c.effects, Effect{verb, kind, id})
}

// stamp writes a time as bodies have it: whole seconds, with thousandths that
// are always zero.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") + ".000Z" }

func httpTime(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

func now() time.Time { return time.Now().UTC() }

func (c *call) listBuckets() (*reply, error) {
	if err := c.signedIn(); err != nil {
		return nil, err
	}
	type item struct {
		CreationDate string
		Name         string
	}
	out := struct {
		XMLName xml.Name `xml:"ListAllMyBucketsResult"`
		Buckets struct{ Bucket []item }
		Owner   *owner
	}{Owner: ownerOf(c.proof.caller.project)}
	for _, b := range c.buckets {
		if b.owner == c.proof.caller.project && b.region == c.region {
			out.Buckets.Bucket = append(out.Buckets.Bucket, item{stamp(b.created), b.name})
		}
	}
	list := out.Buckets.Bucket
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	out.Buckets.Bucket = list[:max(0, len(list)-c.short)]
	return xmlReply(out)
}

type bucketConfig struct {
	XMLName            xml.Name
	LocationConstraint string
}

func (c *call) createBucket() (*reply, error) {
	if err := c.signedIn(); err != nil {
		return nil, err
	}
	if !validBucketName(c.name) {
		return nil, badRequest("InvalidBucketName", "The specified bucket is not valid.").with("BucketName", c.name)
	}
	if len(c.config) > 0 {
		var in bucketConfig
		if err := decodeXML(c.config, "CreateBucketConfiguration", &in); err != nil {
			return nil, err
		}
		if in.LocationConstraint != "" && in.LocationConstraint != c.region {
			return nil, badRequest("InvalidLocationConstraint", "The specified location-constraint is not valid").with("LocationConstraint", in.LocationConstraint)
		}
	}
	me := c.proof.caller.project
	// Names are global: a bucket of another region or another customer counts.
	if b := c.buckets[c.name]; b != nil && b.owner == me {
		return nil, refuse(http.StatusConflict, "BucketAlreadyOwnedByYou", "Your previous request to create the named bucket succeeded and you already own it.").with("BucketName", c.name)
	} else if b != nil {
		return nil, refuse(http.StatusConflict, "BucketAlreadyExists", "The requested bucket name is not available. The bucket namespace is shared by all users of the system. Please select a different name and try again.").with("BucketName", c.name)
	}
	acl, err := c.headerACL(me)
	if err != nil {
		return nil, err
	}
	b := &bucket{name: c.name, region: c.region, owner: me, created: now(), acl: acl, keys: map[string][]*version{}, uploads: map[string]*upload{}}
	switch h := c.req.Header.Get("X-Amz-Bucket-Object-Lock-Enabled"); strings.ToLower(h) {
	case "", "false":
	case "true":
		b.lock, b.versioning = &lockConfig{ObjectLockEnabled: stateOn}, stateOn
	default:
		return nil, invalidArgument("The value of x-amz-bucket-object-lock-enabled is invalid").with("ArgumentValue", h)
	}
	c.s.buckets[c.name] = b
	c.did("created", "bucket", c.name)
	r := newReply(http.StatusOK)
	r.header.Set("Location", "/"+c.name)
	return r, nil
}

func (c *call) headBucket() (*reply, error) {
	b, err := c.bucket(need{"s3:ListBucket", aclRead, nil})
	if err != nil {
		return nil, err
	}
	r := newReply(http.StatusOK)
	r.header.Set("X-Amz-Bucket-Region", b.region)
	r.header.Set("Content-Type", "application/xml")
	return r, nil
}

func (c *call) deleteBucket() (*reply, error) {
	b, err := c.bucket(need{action: "s3:DeleteBucket"})
	if err != nil {
		return nil, err
	}
	if !b.empty() {
		return nil, refuse(http.StatusConflict, "BucketNotEmpty", "The bucket that you tried to delete is not empty.")
	}
	delete(c.s.buckets, b.name)
	c.did("deleted", "bucket", b.name)
	return newReply(http.StatusNoContent), nil
}

func (c *call) getLocation() (*reply, error) {
	b, err := c.bucket(need{action: "s3:GetBucketLocation"})
	if err != nil {
		return nil, err
	}
	return xmlReply(struct {
		XMLName xml.Name
		Region  string `xml:",chardata"`
	}{root("LocationConstraint"), b.region})
}

type versioningConfig struct {
	XMLName   xml.Name
	Status    string
	MfaDelete string `xml:",omitempty"`
}

func (c *call) getVersioning() (*reply, error) {
	b, err := c.bucket(need{action: "s3:GetBucketVersioning"})
	if err != nil {
		return nil, err
	}
	return xmlReply(versioningConfig{XMLName: bare("VersioningConfiguration"), Status: b.versioning})
}

func (c *call) putVersioning() (*reply, error) {
	b, err := c.bucket(need{action: "s3:PutBucketVersioning"})
	if err != nil {
		return nil, err
	}
	var in versioningConfig
	if err := decodeXML(c.config, "VersioningConfiguration", &in); err != nil {
		return nil, err
	}
	switch {
	case in.Status != stateOn && in.Status != stateOff:
		return nil, malformedXML()
	case in.MfaDelete != "" && in.MfaDelete != "Disabled":
		return nil, notImplemented("MfaDelete")
	case in.Status == stateOff && b.lock != nil:
		return nil, refuse(http.StatusConflict, "InvalidBucketState", "An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.")
	}
	b.versioning = in.Status
	c.did("changed", "bucket", b.name)
	return newReply(http.StatusOK), nil
}
