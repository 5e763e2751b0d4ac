package s3

import "encoding/xml"

type listedVersion struct {
	marker            bool
	ETag              string `xml:",omitempty"`
	IsLatest          bool
	Key               string
	LastModified      string
	Owner             *owner
	Size              *int64 `xml:",omitempty"`
	StorageClass      string `xml:",omitempty"`
	VersionID         string `xml:"VersionId"`
	ChecksumAlgorithm string `xml:",omitempty"`
	ChecksumType      string `xml:",omitempty"`
}

// MarshalXML names a line by what it is. An xml.Name in the struct would take it
// out of the listing's namespace.
func (v listedVersion) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	type plain listedVersion
	start.Name = xml.Name{Local: "Version"}
	if v.marker {
		start.Name.Local = "DeleteMarker"
	}
	return e.EncodeElement(plain(v), start)
}

type versionListing struct {
	XMLName             xml.Name
	Name                string
	Prefix              string
	Delimiter           string `xml:",omitempty"`
	EncodingType        string `xml:",omitempty"`
	IsTruncated         bool
	KeyMarker           string
	MaxKeys             int
	NextKeyMarker       string `xml:",omitempty"`
	NextVersionIDMarker string `xml:"NextVersionIdMarker,omitempty"`
	Versions            []listedVersion
	VersionIDMarker     string `xml:"VersionIdMarker"`
	CommonPrefixes      []commonPrefix
}

// listVersions lists all versions and delete markers, newest first within a key.
func (c *call) listVersions() (*reply, error) {
	b, err := c.bucket(need{"s3:ListBucketVersions", aclRead, nil})
	if err != nil {
		return nil, err
	}
	keyMarker, versionMarker := c.query.Get("key-marker"), c.query.Get("version-id-marker")
	if versionMarker != "" && keyMarker == "" {
		return nil, invalidArgument("A version-id marker cannot be specified without a key marker.").with("ArgumentName", "version-id-marker")
	}
	p, err := c.page("", "max-keys")
	if err != nil {
		return nil, err
	}
	limit := p.max
	p.max = len(b.keys) + 1 // every key; versions are counted below
	var keys []string
	for k := range b.keys {
		if k > keyMarker || (k == keyMarker && versionMarker != "") {
			keys = append(keys, k)
		}
	}
	entries, _ := p.entries(keys)
	out := &versionListing{XMLName: root("ListVersionsResult"), Name: b.name, Prefix: p.encode(p.prefix), Delimiter: p.encode(p.delimiter),
		EncodingType: p.encoding, KeyMarker: p.encode(keyMarker), VersionIDMarker: versionMarker, MaxKeys: limit}
	n := 0
	full := func(key, id string) bool {
		if n == limit {
			out.IsTruncated = limit > 0
			return true
		}
		n++
		out.NextKeyMarker, out.NextVersionIDMarker = p.encode(key), id
		return false
	}
	for _, e := range entries {
		if out.IsTruncated || (e.common && e.key <= keyMarker) {
			continue
		}
		if e.common {
			if !full(e.key, "") {
				out.CommonPrefixes = append(out.CommonPrefixes, commonPrefix{p.encode(e.key)})
			}
			continue
		}
		passed := e.key != keyMarker || versionMarker == ""
		for i, v := range b.keys[e.key] {
			if !passed {
				passed = v.id == versionMarker
				continue
			}
			if full(v.key, v.id) {
				break
			}
			out.Versions = append(out.Versions, v.listed(p, b.owner, i == 0))
		}
	}
	if !out.IsTruncated {
		out.NextKeyMarker, out.NextVersionIDMarker = "", ""
	}
	out.Versions = out.Versions[:max(0, len(out.Versions)-c.short)]
	return xmlReply(out)
}

func (v *version) listed(p page, project string, latest bool) listedVersion {
	out := listedVersion{marker: v.marker, IsLatest: latest, Key: p.encode(v.key), LastModified: stamp(v.modified),
		Owner: ownerOf(project), VersionID: v.id}
	if v.marker {
		return out
	}
	out.ETag, out.Size, out.StorageClass = `"`+v.etag+`"`, &v.size, v.storageClass()
	out.ChecksumAlgorithm, out.ChecksumType = v.sums.name(), v.sums.kind()
	return out
}
