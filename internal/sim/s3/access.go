package s3

import "strings"

// need is what a call wants to do: the action of a bucket policy, and the
// permission of an ACL that is as good, "" where only the owner may.
type need struct {
	action string
	acl    string
	// onObject looks at the object's ACL instead of the bucket's.
	onObject *version
}

// bucket finds the call's bucket and checks that the caller may do what it is
// about to. A bucket of another region is as good as none, as recorded.
func (c *call) bucket(n need) (*bucket, error) {
	b := c.buckets[c.name]
	if b == nil || b.region != c.region {
		return nil, noSuchBucket()
	}
	return b, c.may(b, c.key, n)
}

// object finds the version that a call names and checks the caller's rights.
// It may be a delete marker.
func (c *call) object(action, acl string) (*bucket, *version, error) {
	b := c.buckets[c.name]
	if b == nil || b.region != c.region {
		return nil, nil, noSuchBucket()
	}
	id := c.query.Get("versionId")
	v := b.current(c.key)
	if id != "" {
		v = b.find(c.key, id)
		action += "Version"
	}
	if err := c.may(b, c.key, need{action, acl, v}); err != nil {
		return nil, nil, err
	}
	switch {
	case v == nil && id != "" && !versionIDPattern.MatchString(id):
		return nil, nil, invalidArgument("Invalid version id specified").with("ArgumentName", "versionId").with("ArgumentValue", id)
	case v == nil && id != "":
		return nil, nil, notFound("NoSuchVersion", "The specified version does not exist.").with("Key", c.key).with("VersionId", id)
	case v == nil:
		return nil, nil, noSuchKey(c.key)
	}
	return b, v, nil
}

// content is object, but a delete marker has no content.
func (c *call) content(action, acl string) (*bucket, *version, error) {
	b, v, err := c.object(action, acl)
	if err != nil || !v.marker {
		return b, v, err
	}
	no := noSuchKey(c.key)
	if c.query.Get("versionId") != "" {
		no = refuse(405, "MethodNotAllowed", "The specified method is not allowed against this resource.").heading("Last-Modified", httpTime(v.modified))
	}
	return nil, nil, no.heading("X-Amz-Delete-Marker", "true").heading("X-Amz-Version-Id", v.id)
}

func (c *call) may(b *bucket, key string, n need) error {
	who, owner := c.proof.caller, c.proof.caller.project == b.owner
	verdict := b.policy.judge(who, n.action, b.name, key)
	// The owner can always get at the policy, or nobody could undo one that
	// denies everything.
	if verdict == denied && !(owner && strings.HasSuffix(n.action, "BucketPolicy")) {
		return accessDenied("Access Denied.")
	}
	if owner || verdict == allowed {
		return nil
	}
	grants := b.acl
	if n.onObject != nil {
		grants = n.onObject.acl
	}
	if n.acl != "" && granted(grants, who, n.acl) {
		return nil
	}
	return accessDenied("Access Denied.")
}

// signedIn refuses anonymous callers.
func (c *call) signedIn() error {
	if c.proof.caller.anonymous() {
		return accessDenied("Access Denied.")
	}
	return nil
}
