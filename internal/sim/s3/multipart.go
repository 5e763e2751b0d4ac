package s3

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"
)

func (c *call) createUpload() (*reply, error) {
	b, err := c.bucket(need{"s3:PutObject", aclWrite, nil})
	if err != nil {
		return nil, err
	}
	v, err := c.template(b)
	if err != nil {
		return nil, err
	}
	u := &upload{id: randomHex(24), key: c.key, started: now(), owner: b.owner, template: *v, parts: map[int]part{},
		algorithm: strings.ToLower(c.req.Header.Get("X-Amz-Checksum-Algorithm"))}
	if u.algorithm != "" && newHash(u.algorithm) == nil {
		return nil, invalidRequest("Checksum algorithm provided is unsupported. Please try again with any of the valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]")
	}
	if u.whole, err = wholeChecksum(u.algorithm, c.req.Header.Get("X-Amz-Checksum-Type")); err != nil {
		return nil, err
	}
	b.uploads[u.id] = u
	c.did("created", "upload", b.name+"/"+u.key)
	r, err := xmlReply(struct {
		XMLName  xml.Name
		Bucket   string
		Key      string
		UploadID string `xml:"UploadId"`
	}{root("InitiateMultipartUploadResult"), b.name, u.key, u.id})
	if err != nil {
		return nil, err
	}
	if u.algorithm != "" {
		r.header.Set("X-Amz-Checksum-Algorithm", strings.ToUpper(u.algorithm))
		r.header.Set("X-Amz-Checksum-Type", u.kind())
	}
	v.seal.write(r.header)
	return r, nil
}

// wholeChecksum says whether an upload's checksum is over the object; the
// algorithm decides where the client does not.
func wholeChecksum(algorithm, kind string) (bool, error) {
	_, combines := crcOf(algorithm)
	switch {
	case kind != "" && algorithm == "":
		return false, invalidRequest("The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.")
	case kind == "FULL_OBJECT" && !combines, kind == "COMPOSITE" && algorithm == "crc64nvme":
		return false, invalidRequest("The %s checksum type cannot be used with the %s checksum algorithm.", kind, algorithm)
	case kind != "" && kind != "FULL_OBJECT" && kind != "COMPOSITE":
		return false, invalidRequest("Value for x-amz-checksum-type header is invalid.")
	}
	return kind == "FULL_OBJECT" || algorithm == "crc64nvme", nil
}

func (u *upload) kind() string {
	switch {
	case u.algorithm == "":
		return ""
	case u.whole:
		return "FULL_OBJECT"
	}
	return "COMPOSITE"
}

// upload finds the upload of a call; it must be of the call's key.
func (c *call) upload(action string) (*bucket, *upload, error) {
	b, err := c.bucket(need{action, aclWrite, nil})
	if err != nil {
		return nil, nil, err
	}
	u := b.uploads[c.query.Get("uploadId")]
	if u == nil || u.key != c.key {
		return nil, nil, noSuchUpload()
	}
	return b, u, nil
}

// findUpload is upload for calls that do not run under the store's lock.
func (c *call) findUpload() (*upload, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.buckets = c.s.buckets
	_, u, err := c.upload("s3:PutObject")
	return u, err
}

func (c *call) putPart() (*reply, error) {
	text := c.query.Get("partNumber")
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 || number > maxParts {
		return nil, invalidArgument("Part number must be an integer between 1 and %d, inclusive", maxParts).with("ArgumentName", "partNumber").with("ArgumentValue", text)
	}
	u, err := c.findUpload()
	if err != nil {
		return nil, err
	}
	if c.req.Header.Get("X-Amz-Copy-Source") != "" {
		file, src, err := c.copyPart(u.algorithm)
		if err == nil {
			err = c.addPart(number, file)
		}
		if err != nil {
			return nil, err
		}
		return partCopied(file, src, stamp(now()))
	}
	if err := u.template.opensPart(c.req.Header); err != nil {
		return nil, err
	}
	var further []string
	if u.algorithm != "" {
		further = append(further, u.algorithm)
	}
	content, err := c.body(maxPut, further...)
	if err != nil {
		return nil, err
	}
	for algorithm := range content.sums {
		if u.algorithm != "" && algorithm != u.algorithm {
			return nil, invalidRequest("Checksum Type mismatch occurred, expected checksum Type: %s, actual checksum Type: %s", u.algorithm, algorithm)
		}
	}
	file, err := c.s.keep(content)
	if err != nil {
		return nil, err
	}
	if err := c.addPart(number, file); err != nil {
		return nil, err
	}
	r := newReply(http.StatusOK)
	r.header.Set("Etag", `"`+file.etag+`"`)
	for algorithm, value := range file.sums {
		r.header.Set(checksumPrefix+algorithm, value)
	}
	u.template.seal.write(r.header)
	return r, nil
}

// opensPart says whether a part comes with the key of its upload.
func (v *version) opensPart(h http.Header) error {
	given, err := customerKey(h, "X-Amz-Server-Side-Encryption-Customer-")
	if err == nil && given != v.seal.customerMD5 {
		err = invalidRequest("The multipart upload initiate requested encryption. Subsequent part requests must include the appropriate encryption parameters.")
	}
	return err
}

// addPart keeps a part, in place of one with its number. The upload may have
// ended while the part came in.
func (c *call) addPart(number int, file blob) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.buckets = c.s.buckets
	_, u, err := c.upload("s3:PutObject")
	if err != nil {
		discard([]blob{file})
		return err
	}
	if old, ok := u.parts[number]; ok {
		c.s.discard([]blob{old.blob})
	}
	u.parts[number] = part{file, now()}
	c.did("created", "part", c.name+"/"+c.key+"#"+strconv.Itoa(number))
	return nil
}

func (c *call) abortUpload() (*reply, error) {
	b, u, err := c.upload("s3:AbortMultipartUpload")
	if err != nil {
		return nil, err
	}
	delete(b.uploads, u.id)
	c.s.discard(u.blobs())
	c.did("deleted", "upload", b.name+"/"+u.key)
	return newReply(http.StatusNoContent), nil
}
