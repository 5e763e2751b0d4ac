package s3

// Right is what an API key needs for an operation, in IAM's words: an action on
// a kind of thing. Which operation needs which is documented by Scaleway, in the
// table of S3 actions and IAM permissions.
type Right struct {
	Thing  Thing
	Action Action
}

// Thing is a kind of thing of object storage. A bucket's policy is one of its
// own: who may set a bucket up may not say who else gets in.
type Thing string

// Action is what is done with a thing.
type Action string

// The things and actions that IAM knows. What begins an object is create, what
// changes one that is there, write.
const (
	Buckets  Thing = "bucket"
	Objects  Thing = "object"
	Policies Thing = "policy"

	List   Action = "list"
	Read   Action = "read"
	Create Action = "create"
	Write  Action = "write"
	Delete Action = "delete"
)

// allowedByKey refuses what the caller's key has no right to, whatever it is
// for. Nobody needs no key: then ACLs and policies decide.
func (c *call) allowedByKey(r Right) error {
	if c.proof.caller.rights == nil || r == (Right{}) {
		return nil
	}
	ok, rule := c.proof.caller.rights(r, c.proof.caller.project)
	if ok {
		return nil
	}
	c.ruled = rule
	return accessDenied("Access Denied.")
}
