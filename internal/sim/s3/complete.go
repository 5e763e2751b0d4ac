package s3

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"strconv"
	"strings"
)

type completeBody struct {
	XMLName xml.Name
	Part    []completePart
}

type completePart struct {
	PartNumber int
	ETag       string
	elements
}

func (c *call) completeUpload() (*reply, error) {
	b, u, err := c.upload("s3:PutObject")
	if err != nil {
		return nil, err
	}
	var in completeBody
	if err := decodeXML(c.config, "CompleteMultipartUpload", &in); err != nil {
		return nil, err
	}
	parts, err := u.chosen(in.Part)
	if err != nil {
		return nil, err
	}
	v := u.template
	v.key = u.key
	digest := md5.New()
	for _, p := range parts {
		raw, err := hex.DecodeString(p.etag)
		if err != nil {
			return nil, err
		}
		_, _ = digest.Write(raw)
		v.content = append(v.content, p)
		v.size += p.size
	}
	if v.size > maxObject {
		return nil, badRequest("EntityTooLarge", "Your proposed upload exceeds the maximum allowed size")
	}
	v.etag = hex.EncodeToString(digest.Sum(nil)) + "-" + strconv.Itoa(len(parts))
	if v.sums, err = u.checksum(parts); err != nil {
		return nil, err
	}
	if err := c.promised(v.sums); err != nil {
		return nil, err
	}
	if err := c.commitLocked(b, &v); err != nil {
		return nil, err // the upload stays: the client may try again
	}
	delete(b.uploads, u.id)
	c.s.discard(u.left(parts))
	r, err := xmlReply(struct {
		XMLName  xml.Name
		Location string
		Bucket   string
		Key      string
		ETag     string
		elements
		ChecksumType string `xml:",omitempty"`
	}{root("CompleteMultipartUploadResult"), "/" + b.name + "/" + v.key, b.name, v.key, `"` + v.etag + `"`, v.sums.elements(), u.kind()})
	v.seal.write(r.header)
	return versioned(r, b, &v), err
}

// chosen are the parts that a client lists: in order, each as it was uploaded,
// none too small but the last.
func (u *upload) chosen(list []completePart) ([]blob, error) {
	if len(list) == 0 || len(list) > maxParts {
		return nil, malformedXML()
	}
	var out []blob
	for i, want := range list {
		if i > 0 && want.PartNumber <= list[i-1].PartNumber {
			return nil, badRequest("InvalidPartOrder", "The list of parts was not in ascending order. Parts must be ordered by part number.").with("UploadId", u.id)
		}
		have, ok := u.parts[want.PartNumber]
		for algorithm, value := range want.checksums() {
			ok = ok && have.sums[algorithm] == value
		}
		if !ok || !sameTag(want.ETag, have.etag) {
			return nil, badRequest("InvalidPart", "One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.").
				with("UploadId", u.id).with("PartNumber", strconv.Itoa(want.PartNumber)).with("ETag", strings.Trim(want.ETag, `"`))
		}
		out = append(out, have.blob)
	}
	for i, have := range out[:len(out)-1] {
		if have.size < minPart {
			return nil, badRequest("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size").
				with("ProposedSize", strconv.FormatInt(have.size, 10)).with("MinSizeAllowed", strconv.Itoa(minPart)).
				with("PartNumber", strconv.Itoa(list[i].PartNumber)).with("ETag", have.etag)
		}
	}
	return out, nil
}

// left are the files of parts that the client uploaded and did not list.
func (u *upload) left(used []blob) []blob {
	taken := map[string]bool{}
	for _, b := range used {
		taken[b.file] = true
	}
	var out []blob
	for _, b := range u.blobs() {
		if !taken[b.file] {
			out = append(out, b)
		}
	}
	return out
}

// checksum is that of the object: over its bytes, or over its parts' checksums
// with their number behind it.
func (u *upload) checksum(parts []blob) (checksums, error) {
	if u.algorithm == "" {
		return nil, nil
	}
	if u.whole {
		kind, _ := crcOf(u.algorithm)
		sum := parts[0].sums[u.algorithm]
		for _, p := range parts[1:] {
			sum = kind.combine(sum, p.sums[u.algorithm], p.size)
		}
		return checksums{u.algorithm: sum}, nil
	}
	h := newHash(u.algorithm)
	for _, p := range parts {
		raw, err := base64.StdEncoding.DecodeString(p.sums[u.algorithm])
		if err != nil {
			return nil, err
		}
		_, _ = h.Write(raw)
	}
	return checksums{u.algorithm: base64.StdEncoding.EncodeToString(h.Sum(nil)) + "-" + strconv.Itoa(len(parts))}, nil
}

// promised compares the object's checksum with what the request's header says
// of the object. The header of this call is not about its body.
func (c *call) promised(have checksums) error {
	for algorithm, value := range have {
		given := c.req.Header.Get(checksumPrefix + algorithm)
		if given != "" && given != value && given+"-" != value[:min(len(given)+1, len(value))] {
			return badRequest("XAmzContentChecksumMismatch", "The provided 'x-amz-checksum' header does not match what was computed.")
		}
	}
	return nil
}
