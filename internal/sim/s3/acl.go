package s3

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
)

// grant is one line of an ACL. The grantee is a project or a group of everybody.
type grant struct {
	project    string // "" for a group
	group      string // allUsers or anyKey
	permission string // FULL_CONTROL, READ, WRITE, READ_ACP, WRITE_ACP
}

const (
	allUsers = "http://acs.amazonaws.com/groups/global/AllUsers"
	anyKey   = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"
	full     = "FULL_CONTROL"
	aclRead  = "READ"
	aclWrite = "WRITE"
	readACP  = "READ_ACP"
	writeACP = "WRITE_ACP"
)

// granted says whether an ACL lets a caller do something.
func granted(acl []grant, who caller, permission string) bool {
	for _, g := range acl {
		if g.permission != full && g.permission != permission {
			continue
		}
		if g.group == allUsers || (!who.anonymous() && (g.group == anyKey || g.project == who.project)) {
			return true
		}
	}
	return false
}

// ownerID is how a project is written: its id twice, as recorded.
func ownerID(project string) string { return project + ":" + project }

type owner struct {
	DisplayName string `xml:",omitempty"`
	ID          string
}

func ownerOf(project string) *owner { return &owner{ownerID(project), ownerID(project)} }

// canned are the ACLs that x-amz-acl can name.
func canned(name, project string) ([]grant, error) {
	acl := []grant{{project: project, permission: full}}
	switch name {
	case "", "private":
	case "public-read":
		acl = append(acl, grant{group: allUsers, permission: aclRead})
	case "public-read-write":
		acl = append(acl, grant{group: allUsers, permission: aclRead}, grant{group: allUsers, permission: aclWrite})
	case "authenticated-read":
		acl = append(acl, grant{group: anyKey, permission: aclRead})
	default:
		return nil, invalidArgument("").with("ArgumentName", "x-amz-acl").with("ArgumentValue", name)
	}
	return acl, nil
}

// headerACL is the ACL that a request's header asks for.
func (c *call) headerACL(project string) ([]grant, error) {
	for name := range c.req.Header {
		if strings.HasPrefix(name, "X-Amz-Grant-") {
			return nil, notImplemented("The header " + strings.ToLower(name))
		}
	}
	return canned(c.req.Header.Get("X-Amz-Acl"), project)
}

// The wire form. Reading and writing differ only in the grantee's type.
type aclBody struct {
	XMLName xml.Name
	Owner   owner
	List    aclList `xml:"AccessControlList"`
}

type aclList struct{ Grant []aclGrant }

type aclGrant struct {
	Grantee    grantee
	Permission string
}

type grantee struct {
	XSI         string `xml:"xmlns:xsi,attr,omitempty"`
	Type        string `xml:"xsi:type,attr,omitempty"`
	ID          string `xml:",omitempty"`
	DisplayName string `xml:",omitempty"`
	URI         string `xml:",omitempty"`
}

func (c *call) bodyACL() ([]grant, error) {
	var in aclBody
	if err := decodeXML(c.config, "AccessControlPolicy", &in); err != nil {
		return nil, err
	}
	var acl []grant
	for _, g := range in.List.Grant {
		one := grant{permission: g.Permission}
		if !slices.Contains([]string{full, aclRead, aclWrite, readACP, writeACP}, g.Permission) {
			return nil, malformedXML()
		}
		switch {
		case g.Grantee.ID != "" && g.Grantee.URI == "":
			// Both ID and ID:ID are in use.
			one.project, _, _ = strings.Cut(g.Grantee.ID, ":")
		case g.Grantee.ID == "" && (g.Grantee.URI == allUsers || g.Grantee.URI == anyKey):
			one.group = g.Grantee.URI
		default:
			return nil, invalidArgument("Invalid id").with("ArgumentName", "CanonicalUser/ID").with("ArgumentValue", g.Grantee.ID)
		}
		acl = append(acl, one)
	}
	return acl, nil
}

// newACL is the ACL that a PUT ?acl asks for, in its body or its header.
func (c *call) newACL(project string) ([]grant, error) {
	if len(c.config) == 0 {
		if c.req.Header.Get("X-Amz-Acl") == "" {
			return nil, malformedXML()
		}
		return c.headerACL(project)
	}
	if c.req.Header.Get("X-Amz-Acl") != "" {
		return nil, badRequest("UnexpectedContent", "This request does not support content")
	}
	return c.bodyACL()
}

func aclReply(project string, acl []grant) (*reply, error) {
	out := aclBody{XMLName: root("AccessControlPolicy"), Owner: *ownerOf(project)}
	for _, g := range acl {
		to := grantee{XSI: "http://www.w3.org/2001/XMLSchema-instance", Type: "Group", URI: g.group}
		if g.group == "" {
			to.Type, to.ID, to.DisplayName = "CanonicalUser", ownerID(g.project), ownerID(g.project)
		}
		out.List.Grant = append(out.List.Grant, aclGrant{to, g.permission})
	}
	return xmlReply(out)
}

func (c *call) getBucketACL() (*reply, error) {
	b, err := c.bucket(need{"s3:GetBucketAcl", readACP, nil})
	if err != nil {
		return nil, err
	}
	return aclReply(b.owner, b.acl)
}

func (c *call) putBucketACL() (*reply, error) {
	b, err := c.bucket(need{"s3:PutBucketAcl", writeACP, nil})
	if err != nil {
		return nil, err
	}
	acl, err := c.newACL(b.owner)
	if err != nil {
		return nil, err
	}
	b.acl = acl
	c.did("changed", "bucket", b.name)
	return newReply(http.StatusOK), nil
}

func (c *call) getObjectACL() (*reply, error) {
	b, v, err := c.content("s3:GetObjectAcl", readACP)
	if err != nil {
		return nil, err
	}
	r, err := aclReply(b.owner, v.acl)
	return versioned(r, b, v), err
}

func (c *call) putObjectACL() (*reply, error) {
	b, v, err := c.content("s3:PutObjectAcl", writeACP)
	if err != nil {
		return nil, err
	}
	acl, err := c.newACL(b.owner)
	if err != nil {
		return nil, err
	}
	v.acl = acl
	c.did("changed", "object", b.name+"/"+v.key)
	return versioned(newReply(http.StatusOK), b, v), nil
}

// versioned adds the version to an answer where the bucket has versions.
func versioned(r *reply, b *bucket, v *version) *reply {
	if r != nil && b.versioning != "" {
		r.header.Set("X-Amz-Version-Id", v.id)
	}
	return r
}
