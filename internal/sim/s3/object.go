package s3

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

func (c *call) getObject() (*reply, error) {
	b, v, err := c.content("s3:GetObject", aclRead)
	if err != nil {
		return nil, err
	}
	h := c.req.Header
	if err := v.opens(h, "X-Amz-Server-Side-Encryption-Customer-"); err != nil {
		return nil, err
	}
	r := versioned(newReply(http.StatusOK), b, v)
	switch status, condition := readCondition(h, "", v); status {
	case http.StatusPreconditionFailed:
		return nil, preconditionFailed(condition)
	case http.StatusNotModified:
		r.status = status
		r.header.Set("Etag", `"`+v.etag+`"`)
		r.header.Set("Last-Modified", httpTime(v.modified))
		v.sums.write(r.header) // asked for or not: the real store does that here
		return r, nil
	}
	v.describe(r.header)
	if h.Get("X-Amz-Checksum-Mode") == "ENABLED" {
		v.sums.write(r.header)
	}
	if err := c.override(r.header); err != nil {
		return nil, err
	}
	from, length, err := c.stretch(v, r)
	if err != nil {
		return nil, err
	}
	r.length = length
	if c.req.Method == http.MethodHead {
		return r, nil
	}
	if v.storageClass() == "GLACIER" {
		return nil, refuse(http.StatusForbidden, "InvalidObjectState", "The operation is not valid for the object's storage class").with("StorageClass", "GLACIER")
	}
	r.stream, err = openBlobs(v.content, from, length)
	return r, err
}

// override sets the headers that the query asks for, of signed requests only.
func (c *call) override(h http.Header) error {
	for name, values := range c.query {
		header, ok := strings.CutPrefix(name, "response-")
		if !ok {
			continue
		}
		if c.proof.caller.anonymous() {
			return invalidRequest("Request specific response headers cannot be used for anonymous GET requests.")
		}
		h.Set(header, values[0])
	}
	return nil
}

// stretch is the part of an object that a request wants: a range, one part of a
// multipart upload, or all of it.
func (c *call) stretch(v *version, r *reply) (from, length int64, err error) {
	if n := c.query.Get("partNumber"); n != "" {
		from, length, err = v.part(n, r)
	} else {
		var partial bool
		from, length, partial, err = parseRange(c.req.Header.Get("Range"), v.size)
		if ifRange := c.req.Header.Get("If-Range"); ifRange != "" && !sameTag(ifRange, v.etag) && ifRange != httpTime(v.modified) {
			return 0, v.size, nil
		}
		if err != nil || !partial {
			return from, length, err
		}
	}
	if err == nil && v.size > 0 {
		r.status = http.StatusPartialContent
		r.header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+length-1, v.size))
	}
	return from, length, err
}

// part is where one part of a multipart upload lies; other objects are one part.
func (v *version) part(number string, r *reply) (from, length int64, err error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > maxParts {
		return 0, 0, invalidArgument("Part number must be an integer between 1 and %d, inclusive", maxParts).with("ArgumentName", "partNumber").with("ArgumentValue", number)
	}
	if n > max(len(v.content), 1) {
		return 0, 0, refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidPartNumber", "The requested partnumber is not satisfiable")
	}
	if strings.Contains(v.etag, "-") {
		r.header.Set("X-Amz-Mp-Parts-Count", strconv.Itoa(len(v.content)))
	}
	if len(v.content) == 0 {
		return 0, 0, nil
	}
	for _, b := range v.content[:n-1] {
		from += b.size
	}
	return from, v.content[n-1].size, nil
}

// parseRange reads one range of bytes. What is no such range is ignored, as
// HTTP has it, and so are several ranges.
func parseRange(text string, size int64) (from, length int64, partial bool, err error) {
	spec, ok := strings.CutPrefix(text, "bytes=")
	first, last, dash := strings.Cut(spec, "-")
	a, errA := strconv.ParseInt(first, 10, 64)
	z, errZ := strconv.ParseInt(last, 10, 64)
	whole := !ok || !dash || strings.ContainsAny(spec, ", ") || (first != "" && (errA != nil || a < 0)) || (last != "" && (errZ != nil || z < 0)) ||
		first+last == "" || (first != "" && last != "" && z < a)
	if whole {
		return 0, size, false, nil
	}
	unsatisfiable := refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The requested range is not satisfiable").
		with("RangeRequested", text).with("ActualObjectSize", strconv.FormatInt(size, 10)).heading("Content-Range", fmt.Sprintf("bytes */%d", size))
	switch {
	case first == "" && (z == 0 || size == 0), first != "" && a >= size:
		return 0, 0, false, unsatisfiable
	case first == "":
		z = min(z, size)
		return size - z, z, true, nil
	case last == "":
		return a, size - a, true, nil
	}
	return a, min(z, size-1) - a + 1, true, nil
}

// begin looks at the bucket of a write before its body is read.
func (c *call) begin(n need) (*bucket, *version, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.buckets = c.s.buckets
	b, err := c.bucket(n)
	if err != nil {
		return nil, nil, err
	}
	v, err := c.template(b)
	return b, v, err
}

func (c *call) putObject() (*reply, error) {
	if c.req.Header.Get("X-Amz-Copy-Source") != "" {
		return c.copyObject()
	}
	_, v, err := c.begin(need{"s3:PutObject", aclWrite, nil})
	if err != nil {
		return nil, err
	}
	content, err := c.body(maxPut)
	if err != nil {
		return nil, err
	}
	if v.retain.mode != "" && c.req.Header.Get("Content-Md5") == "" && len(content.sums) == 0 {
		return nil, invalidRequest("Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters")
	}
	file, err := c.s.keep(content)
	if err != nil {
		return nil, err
	}
	v.content, v.size, v.etag, v.sums = []blob{file}, file.size, file.etag, file.sums
	r := newReply(http.StatusOK)
	r.header.Set("Etag", `"`+v.etag+`"`)
	v.sums.write(r.header)
	v.seal.write(r.header)
	if err := c.commit(v, r); err != nil {
		discard(v.content)
		return nil, err
	}
	return r, nil
}

// commit makes a version current, if the conditions of the request hold now, and
// tells the version in the answer.
func (c *call) commit(v *version, r *reply) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.buckets = c.s.buckets
	b, err := c.bucket(need{"s3:PutObject", aclWrite, nil}) // it may have gone meanwhile
	if err == nil {
		err = c.commitLocked(b, v)
	}
	if err == nil {
		versioned(r, b, v)
	}
	return err
}

func (c *call) commitLocked(b *bucket, v *version) error {
	if err := c.writeCondition(b); err != nil {
		return err
	}
	if len(b.keys[v.key]) >= maxVersions && b.versioning == stateOn {
		return invalidRequest("The object has the maximum number of versions, %d", maxVersions)
	}
	c.s.remember()
	v.modified = now()
	c.s.place(b, v)
	c.did("created", "object", b.name+"/"+v.key)
	return nil
}
