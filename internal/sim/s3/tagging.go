package s3

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

type tag struct {
	Key   string
	Value string
}

type tagging struct {
	XMLName xml.Name
	Set     tagSet `xml:"TagSet"`
}

type tagSet struct{ Tag []tag }

// Limits of tags; a bucket may have more than an object.
const (
	maxObjectTags = 10
	maxBucketTags = 50
	maxTagKey     = 128
	maxTagValue   = 256
)

func validTags(tags []tag, most int) error {
	if len(tags) > most {
		return badRequest("BadRequest", "Object tags cannot be greater than %d", most)
	}
	seen := map[string]bool{}
	for _, t := range tags {
		switch {
		case t.Key == "" || utf8.RuneCountInString(t.Key) > maxTagKey:
			return badRequest("InvalidTag", "The TagKey you have provided is invalid").with("TagKey", t.Key)
		case utf8.RuneCountInString(t.Value) > maxTagValue:
			return badRequest("InvalidTag", "The TagValue you have provided is invalid").with("TagValue", t.Value)
		case seen[t.Key]:
			return badRequest("InvalidTag", "Cannot provide multiple Tags with the same key").with("TagKey", t.Key)
		}
		seen[t.Key] = true
	}
	return nil
}

// bodyTags are the tags of a PUT ?tagging.
func (c *call) bodyTags(most int) ([]tag, error) {
	var in tagging
	if err := decodeXML(c.config, "Tagging", &in); err != nil {
		return nil, err
	}
	return in.Set.Tag, validTags(in.Set.Tag, most)
}

// headerTags are the tags in x-amz-tagging, written like a query.
func (c *call) headerTags() ([]tag, error) {
	text := c.req.Header.Get("X-Amz-Tagging")
	fields, err := url.ParseQuery(text)
	if err != nil {
		return nil, invalidArgument("The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name duplicates.")
	}
	var tags []tag
	for k, values := range fields {
		for _, v := range values {
			tags = append(tags, tag{k, v})
		}
	}
	sortTags(tags)
	return tags, validTags(tags, maxObjectTags)
}

func (c *call) getBucketTagging() (*reply, error) {
	b, err := c.bucket(need{action: "s3:GetBucketTagging"})
	if err != nil {
		return nil, err
	}
	if len(b.tags) == 0 {
		return nil, notFound("NoSuchTagSet", "The TagSet does not exist").with("BucketName", b.name)
	}
	return xmlReply(tagging{bare("Tagging"), tagSet{b.tags}})
}

func (c *call) putBucketTagging() (*reply, error) {
	b, err := c.bucket(need{action: "s3:PutBucketTagging"})
	if err != nil {
		return nil, err
	}
	tags, err := c.bodyTags(maxBucketTags)
	if err != nil {
		return nil, err
	}
	b.tags = tags
	c.did("changed", "bucket", b.name)
	return newReply(http.StatusOK), nil
}

func (c *call) deleteBucketTagging() (*reply, error) {
	b, err := c.bucket(need{action: "s3:PutBucketTagging"})
	if err != nil {
		return nil, err
	}
	b.tags = nil
	c.did("changed", "bucket", b.name)
	return newReply(http.StatusNoContent), nil
}

func (c *call) getObjectTagging() (*reply, error) {
	b, v, err := c.content("s3:GetObjectTagging", "")
	if err != nil {
		return nil, err
	}
	r, err := xmlReply(tagging{bare("Tagging"), tagSet{v.tags}})
	return versioned(r, b, v), err
}

func (c *call) putObjectTagging() (*reply, error) {
	b, v, err := c.content("s3:PutObjectTagging", "")
	if err != nil {
		return nil, err
	}
	if v.tags, err = c.tagsOr(v.tags); err != nil {
		return nil, err
	}
	c.did("changed", "object", b.name+"/"+v.key)
	return versioned(newReply(http.StatusOK), b, v), nil
}

// tagsOr gives the old tags back where the new ones are refused.
func (c *call) tagsOr(old []tag) ([]tag, error) {
	tags, err := c.bodyTags(maxObjectTags)
	if err != nil {
		return old, err
	}
	return tags, nil
}

func (c *call) deleteObjectTagging() (*reply, error) {
	b, v, err := c.content("s3:DeleteObjectTagging", "")
	if err != nil {
		return nil, err
	}
	v.tags = nil
	c.did("changed", "object", b.name+"/"+v.key)
	return versioned(newReply(http.StatusNoContent), b, v), nil
}

func tagCount(h http.Header, tags []tag) {
	if len(tags) > 0 {
		h.Set("X-Amz-Tagging-Count", strconv.Itoa(len(tags)))
	}
}

func sortTags(tags []tag) {
	slices.SortFunc(tags, func(a, b tag) int { return strings.Compare(a.Key, b.Key) })
}
