package s3

import (
	"encoding/base64"
	"encoding/xml"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// page is what every listing takes: a prefix, a delimiter, where to go on and
// how much.
type page struct {
	prefix, delimiter, after string
	max                      int
	encode                   func(string) string
	encoding                 string
}

func (c *call) page(after, limit string) (page, error) {
	p := page{prefix: c.query.Get("prefix"), delimiter: c.query.Get("delimiter"), after: after, max: maxListing, encoding: c.query.Get("encoding-type")}
	p.encode = func(s string) string { return s }
	switch p.encoding {
	case "":
	case "url":
		p.encode = func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/") }
	default:
		return p, invalidArgument("Invalid Encoding Method specified in Request").with("ArgumentName", "encoding-type").with("ArgumentValue", p.encoding)
	}
	if text := c.query.Get(limit); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return p, invalidArgument("Argument %s must be an integer between 0 and 2147483647", limit).with("ArgumentName", limit).with("ArgumentValue", text)
		}
		p.max = min(n, maxListing)
	}
	return p, nil
}

// entry is one line of a listing: a key, or all keys with a common prefix.
type entry struct {
	key    string
	common bool
}

// entries are the next lines, and whether there are more. Keys are in the order
// of their bytes.
func (p page) entries(keys []string) (out []entry, more bool) {
	slices.Sort(keys)
	for _, k := range keys {
		rest, ok := strings.CutPrefix(k, p.prefix)
		if !ok {
			continue
		}
		e := entry{key: k}
		if p.delimiter != "" {
			if head, _, found := strings.Cut(rest, p.delimiter); found {
				e = entry{p.prefix + head + p.delimiter, true}
			}
		}
		// A common prefix that the page before ended with covers its keys.
		if e.key <= p.after || (len(out) > 0 && out[len(out)-1] == e) {
			continue
		}
		if len(out) == p.max {
			return out, p.max > 0
		}
		out = append(out, e)
	}
	return out, false
}

type commonPrefix struct{ Prefix string }

type listedObject struct {
	Key               string
	LastModified      string
	ETag              string
	Size              int64
	Owner             *owner `xml:",omitempty"`
	StorageClass      string
	ChecksumAlgorithm string `xml:",omitempty"`
	ChecksumType      string `xml:",omitempty"`
}

type objectListing struct {
	XMLName               xml.Name
	Name                  string
	Prefix                string
	Marker                *string `xml:",omitempty"`
	NextMarker            string  `xml:",omitempty"`
	StartAfter            string  `xml:",omitempty"`
	ContinuationToken     string  `xml:",omitempty"`
	NextContinuationToken string  `xml:",omitempty"`
	KeyCount              *int    `xml:",omitempty"`
	MaxKeys               int
	Delimiter             string `xml:",omitempty"`
	EncodingType          string `xml:",omitempty"`
	IsTruncated           bool
	Contents              []listedObject
	CommonPrefixes        []commonPrefix
}

// list fills a listing with current versions and returns where it ended.
func (c *call) list(p page, withOwner bool) (*objectListing, string, error) {
	b, err := c.bucket(need{"s3:ListBucket", aclRead, nil})
	if err != nil {
		return nil, "", err
	}
	var keys []string
	for k, vs := range b.keys {
		if !vs[0].marker {
			keys = append(keys, k)
		}
	}
	entries, more := p.entries(keys)
	out := &objectListing{XMLName: root("ListBucketResult"), Name: b.name, Prefix: p.encode(p.prefix), MaxKeys: p.max,
		Delimiter: p.encode(p.delimiter), EncodingType: p.encoding, IsTruncated: more}
	last := ""
	if len(entries) > 0 {
		last = entries[len(entries)-1].key
	}
	for _, e := range entries[:max(0, len(entries)-c.short)] {
		if e.common {
			out.CommonPrefixes = append(out.CommonPrefixes, commonPrefix{p.encode(e.key)})
			continue
		}
		v := b.current(e.key)
		o := listedObject{Key: p.encode(v.key), LastModified: stamp(v.modified), ETag: `"` + v.etag + `"`, Size: v.size,
			StorageClass: v.storageClass(), ChecksumAlgorithm: v.sums.name(), ChecksumType: v.sums.kind()}
		if withOwner {
			o.Owner = ownerOf(b.owner)
		}
		out.Contents = append(out.Contents, o)
	}
	return out, last, nil
}

func (c *call) listObjects() (*reply, error) {
	marker := c.query.Get("marker")
	p, err := c.page(marker, "max-keys")
	if err != nil {
		return nil, err
	}
	out, last, err := c.list(p, true)
	if err != nil {
		return nil, err
	}
	marker = p.encode(marker)
	out.Marker = &marker
	if out.IsTruncated && p.delimiter != "" { // without one the last key says it
		out.NextMarker = p.encode(last)
	}
	return xmlReply(out)
}

func (c *call) listObjectsV2() (*reply, error) {
	if v := c.query.Get("list-type"); v != "2" {
		return nil, invalidArgument("Invalid List Type specified in Request").with("ArgumentName", "list-type").with("ArgumentValue", v)
	}
	token, after := c.query.Get("continuation-token"), c.query.Get("start-after")
	from := after
	if c.query.Has("continuation-token") {
		raw, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil || len(raw) == 0 {
			return nil, invalidArgument("The continuation token provided is incorrect").with("ArgumentName", "continuation-token")
		}
		from = string(raw)
	}
	p, err := c.page(from, "max-keys")
	if err != nil {
		return nil, err
	}
	out, last, err := c.list(p, c.query.Get("fetch-owner") == "true")
	if err != nil {
		return nil, err
	}
	n := len(out.Contents) + len(out.CommonPrefixes)
	out.KeyCount, out.StartAfter, out.ContinuationToken = &n, p.encode(after), token
	if out.IsTruncated {
		out.NextContinuationToken = base64.RawURLEncoding.EncodeToString([]byte(last))
	}
	return xmlReply(out)
}

// sortedUploads are a bucket's uploads by key, then by age.
func (b *bucket) sortedUploads() []*upload {
	out := slices.Collect(maps.Values(b.uploads))
	slices.SortFunc(out, func(x, y *upload) int {
		if n := strings.Compare(x.key, y.key); n != 0 {
			return n
		}
		return x.started.Compare(y.started)
	})
	return out
}
