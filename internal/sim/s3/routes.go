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
}

var onService = []operation{{http.MethodGet, "", false, (*call).listBuckets}}

var onBucket = []operation{
	{http.MethodHead, "", false, (*call).headBucket},
	{http.MethodPut, "acl", false, (*call).putBucketACL},
	{http.MethodPut, "versioning", false, (*call).putVersioning},
	{http.MethodPut, "lifecycle", false, (*call).putLifecycle},
	{http.MethodPut, "tagging", false, (*call).putBucketTagging},
	{http.MethodPut, "cors", false, (*call).putCORS},
	{http.MethodPut, "policy", false, (*call).putPolicy},
	{http.MethodPut, "website", false, (*call).putWebsite},
	{http.MethodPut, "encryption", false, (*call).putEncryption},
	{http.MethodPut, "object-lock", false, (*call).putLock},
	{http.MethodPut, "", false, (*call).createBucket},
	{http.MethodGet, "location", false, (*call).getLocation},
	{http.MethodGet, "acl", false, (*call).getBucketACL},
	{http.MethodGet, "versioning", false, (*call).getVersioning},
	{http.MethodGet, "versions", false, (*call).listVersions},
	{http.MethodGet, "uploads", false, (*call).listUploads},
	{http.MethodGet, "lifecycle", false, (*call).getLifecycle},
	{http.MethodGet, "tagging", false, (*call).getBucketTagging},
	{http.MethodGet, "cors", false, (*call).getCORS},
	{http.MethodGet, "policy", false, (*call).getPolicy},
	{http.MethodGet, "website", false, (*call).getWebsite},
	{http.MethodGet, "encryption", false, (*call).getEncryption},
	{http.MethodGet, "object-lock", false, (*call).getLock},
	{http.MethodGet, "list-type", false, (*call).listObjectsV2},
	{http.MethodGet, "", false, (*call).listObjects},
	{http.MethodDelete, "lifecycle", false, (*call).deleteLifecycle},
	{http.MethodDelete, "tagging", false, (*call).deleteBucketTagging},
	{http.MethodDelete, "cors", false, (*call).deleteCORS},
	{http.MethodDelete, "policy", false, (*call).deletePolicy},
	{http.MethodDelete, "website", false, (*call).deleteWebsite},
	{http.MethodDelete, "encryption", false, (*call).deleteEncryption},
	{http.MethodDelete, "", false, (*call).deleteBucket},
	{http.MethodPost, "delete", false, (*call).deleteObjects},
	{http.MethodOptions, "", false, (*call).preflight},
}

var onObject = []operation{
	{http.MethodHead, "", false, (*call).getObject},
	{http.MethodGet, "uploadId", false, (*call).listParts},
	{http.MethodGet, "acl", false, (*call).getObjectACL},
	{http.MethodGet, "tagging", false, (*call).getObjectTagging},
	{http.MethodGet, "retention", false, (*call).getRetention},
	{http.MethodGet, "legal-hold", false, (*call).getLegalHold},
	{http.MethodGet, "", false, (*call).getObject},
	{http.MethodPut, "uploadId", true, (*call).putPart},
	{http.MethodPut, "acl", false, (*call).putObjectACL},
	{http.MethodPut, "tagging", false, (*call).putObjectTagging},
	{http.MethodPut, "retention", false, (*call).putRetention},
	{http.MethodPut, "legal-hold", false, (*call).putLegalHold},
	{http.MethodPut, "", true, (*call).putObject},
	{http.MethodPost, "uploads", false, (*call).createUpload},
	{http.MethodPost, "uploadId", false, (*call).completeUpload},
	{http.MethodDelete, "uploadId", false, (*call).abortUpload},
	{http.MethodDelete, "tagging", false, (*call).deleteObjectTagging},
	{http.MethodDelete, "", false, (*call).deleteObject},
	{http.MethodOptions, "", false, (*call).preflight},
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
