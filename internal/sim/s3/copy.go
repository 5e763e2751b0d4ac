package s3

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const copyPrefix = "X-Amz-Copy-Source-"

// source is the version that a copy reads, as it was when its files were opened.
type source struct {
	version
	bucket    string
	versioned bool // the bucket has versions
	reader    io.ReadCloser
	length    int64
}

// tell writes the version that was read into an answer's header.
func (s *source) tell(h http.Header) {
	if s.versioned {
		h.Set(copyPrefix+"Version-Id", s.id)
	}
}

// parseSource reads x-amz-copy-source: [/]bucket/key[?versionId=id], encoded.
func parseSource(text string) (bucket, key, id string, err error) {
	wrong := invalidArgument("Copy Source must mention the source bucket and key: sourcebucket/sourcekey").with("ArgumentName", "x-amz-copy-source")
	path, query, _ := strings.Cut(strings.TrimPrefix(text, "/"), "?")
	if query != "" {
		q, err := url.ParseQuery(query)
		if err != nil || len(q) != 1 || !versionIDPattern.MatchString(q.Get("versionId")) {
			return "", "", "", wrong
		}
		id = q.Get("versionId")
	}
	if path, err = url.PathUnescape(path); err != nil {
		return "", "", "", wrong
	}
	bucket, key, _ = strings.Cut(path, "/")
	if bucket == "" || key == "" {
		return "", "", "", wrong
	}
	return bucket, key, id, nil
}

// source opens what a copy reads; whole objects, or a range of parts' copies.
func (c *call) source(ranged bool) (*source, error) {
	name, key, id, err := parseSource(c.req.Header.Get("X-Amz-Copy-Source"))
	if err != nil {
		return nil, err
	}
	if err := c.allowedByKey(Right{Objects, Read}); err != nil { // what it reads is not what it writes
		return nil, err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	from := &call{s: c.s, req: c.req, proof: c.proof, name: name, key: key, region: c.region, query: url.Values{}, buckets: c.s.buckets}
	if id != "" {
		from.query.Set("versionId", id)
	}
	b, v, err := from.content("s3:GetObject", aclRead)
	if err != nil {
		return nil, err
	}
	if err := v.opens(c.req.Header, copyPrefix+"Server-Side-Encryption-Customer-"); err != nil {
		return nil, err
	}
	if status, condition := readCondition(c.req.Header, copyPrefix, v); status != 0 {
		return nil, preconditionFailed("x-amz-copy-source-" + condition)
	}
	out, start := &source{version: *v, bucket: b.name, versioned: b.versioning != "", length: v.size}, int64(0)
	if text := c.req.Header.Get(copyPrefix + "Range"); ranged && text != "" {
		first, last, _ := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
		a, errA := strconv.ParseInt(first, 10, 64)
		z, errZ := strconv.ParseInt(last, 10, 64)
		if errA != nil || errZ != nil || !strings.HasPrefix(text, "bytes=") || a < 0 || z < a {
			return nil, invalidArgument("The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based offsets of the first and last bytes to copy")
		}
		if z >= v.size {
			return nil, invalidArgument("Range specified is not valid for source object of size: %d", v.size)
		}
		start, out.length = a, z-a+1
	}
	if out.length > maxPut {
		return nil, invalidRequest("The specified copy source is larger than the maximum allowable size for a copy source: %d", int64(maxPut))
	}
	out.reader, err = openBlobs(v.content, start, out.length)
	return out, err
}

// copyTo writes a source to a file of its own and computes what a PUT of the
// same bytes would have. It closes the source.
func (c *call) copyTo(src *source, algorithms ...string) (blob, error) {
	defer func() { _ = src.reader.Close() }()
	b := newBody(c, src.reader, src.length)
	for _, a := range algorithms {
		b.sums[a] = newHash(a)
	}
	b.copied = true
	return c.s.keep(b)
}

type copyResult struct {
	XMLName      xml.Name
	ETag         string
	LastModified string
	elements
}

func (c *call) copyObject() (*reply, error) {
	_, v, err := c.begin(need{"s3:PutObject", aclWrite, nil})
	if err != nil {
		return nil, err
	}
	src, err := c.source(false)
	if err != nil {
		return nil, err
	}
	if err := c.inherit(v, src); err != nil {
		return nil, orClose(err, src)
	}
	wanted := []string{}
	if a := strings.ToLower(c.req.Header.Get("X-Amz-Checksum-Algorithm")); a != "" {
		if newHash(a) == nil {
			return nil, orClose(invalidRequest("Checksum algorithm provided is unsupported."), src)
		}
		wanted = append(wanted, a)
	} else {
		for a := range src.sums {
			wanted = append(wanted, a)
		}
	}
	file, err := c.copyTo(src, wanted...)
	if err != nil {
		return nil, err
	}
	v.content, v.size, v.etag, v.sums = []blob{file}, file.size, file.etag, file.sums
	r, err := xmlReply(copyResult{root("CopyObjectResult"), `"` + v.etag + `"`, stamp(now()), v.sums.elements()})
	if err == nil {
		err = c.commit(v, r)
	}
	if err != nil {
		discard(v.content)
		return nil, err
	}
	v.seal.write(r.header)
	src.tell(r.header)
	return r, nil
}

func orClose(err error, src *source) error {
	_ = src.reader.Close()
	return err
}

// inherit gives the copy what it takes from its source.
func (c *call) inherit(v *version, src *source) error {
	h := c.req.Header
	keep := map[string]bool{}
	for _, name := range []string{"X-Amz-Metadata-Directive", "X-Amz-Tagging-Directive"} {
		switch h.Get(name) {
		case "", "COPY":
			keep[name] = true
		case "REPLACE":
		default:
			return invalidArgument("Unknown directive").with("ArgumentName", strings.ToLower(name)).with("ArgumentValue", h.Get(name))
		}
	}
	itself := src.bucket == c.name && src.key == c.key && !strings.Contains(h.Get("X-Amz-Copy-Source"), "versionId")
	changed := v.headers["X-Amz-Storage-Class"] != "" || v.headers["X-Amz-Website-Redirect-Location"] != "" || h.Get("X-Amz-Server-Side-Encryption") != "" || v.seal.customerMD5 != ""
	if itself && keep["X-Amz-Metadata-Directive"] && !changed {
		return invalidRequest("This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.")
	}
	if keep["X-Amz-Tagging-Directive"] {
		v.tags = src.tags
	}
	if !keep["X-Amz-Metadata-Directive"] {
		return nil
	}
	own := v.headers
	v.headers = map[string]string{}
	for name, value := range src.headers {
		if name != "X-Amz-Storage-Class" && name != "X-Amz-Website-Redirect-Location" {
			v.headers[name] = value
		}
	}
	for _, name := range []string{"X-Amz-Storage-Class", "X-Amz-Website-Redirect-Location"} {
		if own[name] != "" {
			v.headers[name] = own[name]
		}
	}
	return nil
}

// copyPart is a part whose bytes come from another object.
func (c *call) copyPart(algorithm string) (blob, *source, error) {
	src, err := c.source(true)
	if err != nil {
		return blob{}, nil, err
	}
	var wanted []string
	if algorithm != "" {
		wanted = append(wanted, algorithm)
	}
	file, err := c.copyTo(src, wanted...)
	return file, src, err
}

func partCopied(file blob, src *source, at string) (*reply, error) {
	r, err := xmlReply(copyResult{root("CopyPartResult"), `"` + file.etag + `"`, at, file.sums.elements()})
	if err == nil {
		src.tell(r.header)
	}
	return r, err
}
