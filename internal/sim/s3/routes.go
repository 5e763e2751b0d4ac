package s3

import "net/http"

// operation is one thing that the store can do. Of the operations of a method
// the first whose sub-resource is in the query is meant; the one without a
// sub-resource comes last.
type operation struct {
	method string
	sub    string // a query field
	// free operations read large bodies and take the store's lock themselves;
	// all others run under it.
	free bool
	run  func(*call) (*reply, error)
	need Right // none where no key is asked for
}

var onService = []operation{{http.MethodGet, "", false, (*call).listBuckets, Right{Buckets, List}}}

var onBucket = []operation{
	{http.MethodHead, "", false, (*call).headBucket, Right{Buckets, Read}},
	{http.MethodPut, "acl", false, (*call).putBucketACL, Right{Buckets, Write}},
	{http.MethodPut, "versioning", false, (*call).putVersioning, Right{Buckets, Write}},
	{http.MethodPut, "lifecycle", false, (*call).putLifecycle, Right{Buckets, Write}},
	{http.MethodPut, "tagging", false, (*call).putBucketTagging, Right{Buckets, Write}},
	{http.MethodPut, "cors", false, (*call).putCORS, Right{Buckets, Write}},
	{http.MethodPut, "policy", false, (*call).putPolicy, Right{Policies, Write}},
	{http.MethodPut, "website", false, (*call).putWebsite, Right{Buckets, Write}},
	{http.MethodPut, "encryption", false, (*call).putEncryption, Right{Buckets, Write}},
	{http.MethodPut, "object-lock", false, (*call).putLock, Right{Objects, Write}},
	{http.MethodPut, "", false, (*call).createBucket, Right{Buckets, Create}},
	{http.MethodGet, "location", false, (*call).getLocation, Right{Buckets, Read}},
	{http.MethodGet, "acl", false, (*call).getBucketACL, Right{Buckets, Read}},
	{http.MethodGet, "versioning", false, (*call).getVersioning, Right{Buckets, Read}},
	{http.MethodGet, "versions", false, (*call).listVersions, Right{Objects, List}},
	{http.MethodGet, "uploads", false, (*call).listUploads, Right{Objects, List}},
	{http.MethodGet, "lifecycle", false, (*call).getLifecycle, Right{Buckets, Read}},
	{http.MethodGet, "tagging", false, (*call).getBucketTagging, Right{Buckets, Read}},
	{http.MethodGet, "cors", false, (*call).getCORS, Right{Buckets, Read}},
	{http.MethodGet, "policy", false, (*call).getPolicy, Right{Policies, Read}},
	{http.MethodGet, "website", false, (*call).getWebsite, Right{Buckets, Read}},
	{http.MethodGet, "encryption", false, (*call).getEncryption, Right{Buckets, Read}},
	{http.MethodGet, "object-lock", false, (*call).getLock, Right{Objects, Read}},
	{http.MethodGet, "list-type", false, (*call).listObjectsV2, Right{Objects, List}},
	{http.MethodGet, "", false, (*call).listObjects, Right{Objects, List}},
	{http.MethodDelete, "lifecycle", false, (*call).deleteLifecycle, Right{Buckets, Write}},
	{http.MethodDelete, "tagging", false, (*call).deleteBucketTagging, Right{Buckets, Write}},
	{http.MethodDelete, "cors", false, (*call).deleteCORS, Right{Buckets, Write}},
	{http.MethodDelete, "policy", false, (*call).deletePolicy, Right{Policies, Write}},
	{http.MethodDelete, "website", false, (*call).deleteWebsite, Right{Buckets, Write}},
	{http.MethodDelete, "encryption", false, (*call).deleteEncryption, Right{Buckets, Write}},
	{http.MethodDelete, "", false, (*call).deleteBucket, Right{Buckets, Delete}},
	{http.MethodPost, "delete", false, (*call).deleteObjects, Right{Objects, Delete}},
	{http.MethodOptions, "", false, (*call).preflight, Right{}},
}

var onObject = []operation{
	{http.MethodHead, "", false, (*call).getObject, Right{Objects, Read}},
	{http.MethodGet, "uploadId", false, (*call).listParts, Right{Objects, List}},
	{http.MethodGet, "acl", false, (*call).getObjectACL, Right{Objects, Read}},
	{http.MethodGet, "tagging", false, (*call).getObjectTagging, Right{Objects, Read}},
	{http.MethodGet, "retention", false, (*call).getRetention, Right{Objects, Read}},
	{http.MethodGet, "legal-hold", false, (*call).getLegalHold, Right{Objects, Read}},
	{http.MethodGet, "", false, (*call).getObject, Right{Objects, Read}},
	{http.MethodPut, "uploadId", true, (*call).putPart, Right{Objects, Write}},
	{http.MethodPut, "acl", false, (*call).putObjectACL, Right{Objects, Write}},
	{http.MethodPut, "tagging", false, (*call).putObjectTagging, Right{Objects, Write}},
	{http.MethodPut, "retention", false, (*call).putRetention, Right{Objects, Write}},
	{http.MethodPut, "legal-hold", false, (*call).putLegalHold, Right{Objects, Write}},
	{http.MethodPut, "", true, (*call).putObject, Right{Objects, Create}},
	{http.MethodPost, "uploads", false, (*call).createUpload, Right{Objects, Create}},
	{http.MethodPost, "uploadId", false, (*call).completeUpload, Right{Objects, Create}},
	{http.MethodDelete, "uploadId", false, (*call).abortUpload, Right{Objects, Delete}},
	{http.MethodDelete, "tagging", false, (*call).deleteObjectTagging, Right{Objects, Write}},
	{http.MethodDelete, "", false, (*call).deleteObject, Right{Objects, Delete}},
	{http.MethodOptions, "", false, (*call).preflight, Right{}},
}

// unserved are sub-resources of S3 that this store does not have. Without the
// list they would be taken for the operation without a sub-resource.
var unserved = []string{"accelerate", "analytics", "attributes", "intelligent-tiering", "inventory", "logging", "metrics", "notification",
	"ownershipControls", "policyStatus", "publicAccessBlock", "replication", "requestPayment", "restore", "select", "torrent"}

// operation finds what a request asks for.
func (c *call) operation() (operation, error) {
	table := onObject
	switch {
	case c.name == "":
		table = onService
	case c.key == "":
		table = onBucket
	}
	for _, sub := range unserved {
		if c.query.Has(sub) {
			return operation{}, notImplemented("The sub-resource " + sub)
		}
	}
	if len(c.key) > maxKey {
		return operation{}, badRequest("KeyTooLongError", "Your key is too long").with("MaxSizeAllowed", "1024")
	}
	for _, op := range table {
		if op.method == c.req.Method && (op.sub == "" || c.query.Has(op.sub)) {
			if op.sub == "" && c.misplaced(table) {
				break
			}
			return op, nil
		}
	}
	return operation{}, refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource.").
		with("Method", c.req.Method)
}

// misplaced says whether the query has a sub-resource that goes with another
// method, such as DELETE ?acl: that must not delete the object.
func (c *call) misplaced(table []operation) bool {
	if c.req.Method == http.MethodHead || c.req.Method == http.MethodOptions {
		return false
	}
	for _, op := range table {
		if op.sub != "" && op.sub != "list-type" && c.query.Has(op.sub) {
			return true
		}
	}
	return false
}
