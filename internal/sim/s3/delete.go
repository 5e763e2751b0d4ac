package s3

import (
	"encoding/xml"
	"net/http"
)

func (c *call) deleteObject() (*reply, error) {
	b, err := c.bucket(need{deleteAction(c.query.Get("versionId")), aclWrite, nil})
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"If-Match", "X-Amz-If-Match-Last-Modified-Time", "X-Amz-If-Match-Size"} {
		if c.req.Header.Get(name) != "" {
			return nil, notImplemented("A conditional delete")
		}
	}
	gone, err := c.remove(b, c.key, c.query.Get("versionId"))
	if err != nil {
		return nil, err
	}
	r := newReply(http.StatusNoContent)
	if gone.marker {
		r.header.Set("X-Amz-Delete-Marker", "true")
	}
	if gone.id != "" {
		r.header.Set("X-Amz-Version-Id", gone.id)
	}
	return r, nil
}

func deleteAction(versionID string) string {
	if versionID != "" {
		return "s3:DeleteObjectVersion"
	}
	return "s3:DeleteObject"
}

// deletion is what a DELETE did: removed a version, or made a marker.
type deletion struct {
	id     string // of the version or marker; "" where the bucket has no versions
	marker bool
}

// remove deletes a version for good, or the key: that leaves a marker behind
// where the bucket has versions.
func (c *call) remove(b *bucket, key, id string) (deletion, error) {
	bypass, err := c.bypass(b)
	if err != nil {
		return deletion{}, err
	}
	if id == "" && b.versioning != "" {
		return c.bury(b, key, bypass)
	}
	if id != "" && !versionIDPattern.MatchString(id) {
		return deletion{}, invalidArgument("Invalid version id specified").with("ArgumentName", "versionId").with("ArgumentValue", id)
	}
	done := deletion{id: id}
	if id == "" {
		id = nullVersion
	}
	v := b.find(key, id)
	if v == nil {
		return done, nil
	}
	if v.locked(now(), bypass) {
		return done, protected()
	}
	b.remove(key, id)
	c.s.discard(v.content)
	c.did("deleted", "object", b.name+"/"+key)
	done.marker = v.marker
	return done, nil
}

// bury puts a delete marker on top of a key.
func (c *call) bury(b *bucket, key string, bypass bool) (deletion, error) {
	if old := b.find(key, nullVersion); b.versioning == stateOff && old != nil && old.locked(now(), bypass) {
		return deletion{}, protected()
	}
	m := marker(key, now())
	c.s.place(b, m)
	c.did("deleted", "object", b.name+"/"+key)
	return deletion{m.id, true}, nil
}

type deleteBody struct {
	XMLName xml.Name
	Object  []deleteItem
	Quiet   bool
}

type deleteItem struct {
	Key       string
	VersionId string `xml:",omitempty"`
}

type deletedItem struct {
	Key                   string
	VersionId             string `xml:",omitempty"`
	DeleteMarker          bool   `xml:",omitempty"`
	DeleteMarkerVersionId string `xml:",omitempty"`
}

type failedItem struct {
	Key       string
	VersionId string `xml:",omitempty"`
	Code      string
	Message   string
}

// deleteObjects deletes up to a thousand keys; each succeeds or fails on its own.
func (c *call) deleteObjects() (*reply, error) {
	b := c.buckets[c.name]
	if b == nil || b.region != c.region {
		return nil, noSuchBucket()
	}
	if claimed, _ := claimedChecksums(c.req.Header); c.req.Header.Get("Content-Md5") == "" && len(claimed) == 0 && c.req.Header.Get("X-Amz-Trailer") == "" {
		return nil, invalidRequest("Missing required header for this request: Content-MD5 OR x-amz-checksum-*")
	}
	var in deleteBody
	if err := decodeXML(c.config, "Delete", &in); err != nil {
		return nil, err
	}
	if len(in.Object) == 0 || len(in.Object) > maxDelete {
		return nil, malformedXML()
	}
	if _, err := c.bypass(b); err != nil {
		return nil, err
	}
	out := struct {
		XMLName xml.Name
		Deleted []deletedItem
		Error   []failedItem
	}{XMLName: root("DeleteResult")}
	for _, o := range in.Object {
		done, err := deletion{}, c.may(b, o.Key, need{deleteAction(o.VersionId), aclWrite, nil})
		if err == nil {
			done, err = c.remove(b, o.Key, o.VersionId)
		}
		if no, refused := err.(*refusal); refused {
			out.Error = append(out.Error, failedItem{o.Key, o.VersionId, no.code, no.message})
			continue
		} else if err != nil {
			return nil, err
		}
		if in.Quiet {
			continue
		}
		item := deletedItem{Key: o.Key, VersionId: o.VersionId, DeleteMarker: done.marker}
		if done.marker {
			item.DeleteMarkerVersionId = done.id
		}
		out.Deleted = append(out.Deleted, item)
	}
	return xmlReply(out)
}
