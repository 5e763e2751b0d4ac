package s3

import (
	"encoding/xml"
	"maps"
	"slices"
	"strconv"
)

type listedUpload struct {
	Key               string
	UploadID          string `xml:"UploadId"`
	Initiator         *owner
	Owner             *owner
	StorageClass      string
	Initiated         string
	ChecksumAlgorithm string `xml:",omitempty"`
	ChecksumType      string `xml:",omitempty"`
}

type uploadListing struct {
	XMLName            xml.Name
	Bucket             string
	KeyMarker          string
	UploadIDMarker     string `xml:"UploadIdMarker"`
	NextKeyMarker      string `xml:",omitempty"`
	NextUploadIDMarker string `xml:"NextUploadIdMarker,omitempty"`
	Prefix             string
	Delimiter          string `xml:",omitempty"`
	EncodingType       string `xml:",omitempty"`
	MaxUploads         int
	IsTruncated        bool
	Upload             []listedUpload
	CommonPrefixes     []commonPrefix
}

func (c *call) listUploads() (*reply, error) {
	b, err := c.bucket(need{action: "s3:ListBucketMultipartUploads"})
	if err != nil {
		return nil, err
	}
	keyMarker, idMarker := c.query.Get("key-marker"), c.query.Get("upload-id-marker")
	p, err := c.page("", "max-uploads")
	if err != nil {
		return nil, err
	}
	limit := p.max
	p.max = len(b.uploads) + 1
	out := &uploadListing{XMLName: root("ListMultipartUploadsResult"), Bucket: b.name, KeyMarker: p.encode(keyMarker), UploadIDMarker: idMarker,
		Prefix: p.encode(p.prefix), Delimiter: p.encode(p.delimiter), EncodingType: p.encoding, MaxUploads: limit}
	uploads := b.sortedUploads()
	if keyMarker != "" {
		uploads = behind(uploads, keyMarker, idMarker)
	}
	var keys []string
	for _, u := range uploads {
		keys = append(keys, u.key)
	}
	entries, _ := p.entries(slices.Compact(keys))
	for _, e := range entries {
		if e.common {
			out.CommonPrefixes = append(out.CommonPrefixes, commonPrefix{p.encode(e.key)})
			continue
		}
		for _, u := range uploads {
			if u.key != e.key {
				continue
			}
			if len(out.Upload) == limit {
				out.IsTruncated = limit > 0
				break
			}
			out.Upload = append(out.Upload, u.listed(p))
			out.NextKeyMarker, out.NextUploadIDMarker = p.encode(u.key), u.id
		}
	}
	if !out.IsTruncated {
		out.NextKeyMarker, out.NextUploadIDMarker = "", ""
	}
	out.Upload = out.Upload[:max(0, len(out.Upload)-c.short)]
	return xmlReply(out)
}

// behind are the uploads that come after a marker.
func behind(sorted []*upload, key, id string) []*upload {
	i := slices.IndexFunc(sorted, func(u *upload) bool { return u.key == key && u.id == id })
	return slices.DeleteFunc(slices.Clone(sorted[i+1:]), func(u *upload) bool { return u.key < key || (u.key == key && i < 0) })
}

func (u *upload) listed(p page) listedUpload {
	out := listedUpload{Key: p.encode(u.key), UploadID: u.id, Initiator: ownerOf(u.owner), Owner: ownerOf(u.owner),
		StorageClass: u.template.storageClass(), Initiated: stamp(u.started), ChecksumType: u.kind()}
	if u.algorithm != "" {
		out.ChecksumAlgorithm = (checksums{u.algorithm: ""}).name()
	}
	return out
}

type listedPart struct {
	PartNumber   int
	LastModified string
	ETag         string
	Size         int64
	elements
}

// listParts lists the parts of an upload that has not ended.
func (c *call) listParts() (*reply, error) {
	b, u, err := c.upload("s3:ListMultipartUploadParts")
	if err != nil {
		return nil, err
	}
	p, err := c.page("", "max-parts")
	if err != nil {
		return nil, err
	}
	marker, err := strconv.Atoi("0" + c.query.Get("part-number-marker"))
	if err != nil {
		return nil, invalidArgument("Argument part-number-marker must be an integer between 0 and 2147483647").with("ArgumentName", "part-number-marker")
	}
	out := struct {
		XMLName              xml.Name
		Bucket               string
		Key                  string
		UploadID             string `xml:"UploadId"`
		Initiator            *owner
		Owner                *owner
		StorageClass         string
		PartNumberMarker     int
		NextPartNumberMarker int
		MaxParts             int
		IsTruncated          bool
		ChecksumAlgorithm    string `xml:",omitempty"`
		ChecksumType         string `xml:",omitempty"`
		Part                 []listedPart
	}{XMLName: root("ListPartsResult"), Bucket: b.name, Key: p.encode(u.key), UploadID: u.id, Initiator: ownerOf(u.owner), Owner: ownerOf(u.owner),
		StorageClass: u.template.storageClass(), PartNumberMarker: marker, MaxParts: p.max, ChecksumType: u.kind()}
	if u.algorithm != "" {
		out.ChecksumAlgorithm = (checksums{u.algorithm: ""}).name()
	}
	for _, n := range slices.Sorted(maps.Keys(u.parts)) {
		if n <= marker {
			continue
		}
		if len(out.Part) == p.max {
			out.IsTruncated = p.max > 0
			break
		}
		one := u.parts[n]
		out.Part = append(out.Part, listedPart{n, stamp(one.modified), `"` + one.etag + `"`, one.size, one.sums.elements()})
		out.NextPartNumberMarker = n
	}
	out.Part = out.Part[:max(0, len(out.Part)-c.short)]
	return xmlReply(out)
}
