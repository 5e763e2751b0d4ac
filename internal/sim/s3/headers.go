package s3

import (
	"crypto/md5"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// keptHeaders are those of a PUT that come back with a GET.
var keptHeaders = []string{"Content-Type", "Content-Language", "Content-Disposition", "Content-Encoding", "Cache-Control", "Expires",
	"X-Amz-Website-Redirect-Location", "X-Amz-Storage-Class"}

const metaPrefix = "X-Amz-Meta-"

// objectHeaders are what a request says of an object besides its content.
func objectHeaders(h http.Header) (map[string]string, error) {
	out := map[string]string{"Content-Type": "binary/octet-stream"}
	for _, name := range keptHeaders {
		if v := h.Get(name); v != "" {
			out[name] = v
		}
	}
	if e, ok := out["Content-Encoding"]; ok {
		// aws-chunked is of the transport and not of the object.
		var kept []string
		for _, one := range strings.Split(e, ",") {
			if one = strings.TrimSpace(one); one != "" && one != "aws-chunked" {
				kept = append(kept, one)
			}
		}
		if out["Content-Encoding"] = strings.Join(kept, ","); len(kept) == 0 {
			delete(out, "Content-Encoding")
		}
	}
	size := 0
	for name, values := range h {
		if strings.HasPrefix(name, metaPrefix) {
			out[name] = strings.Join(values, ",")
			size += len(name) - len(metaPrefix) + len(out[name])
		}
	}
	if size > maxUserMeta {
		return nil, badRequest("MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size")
	}
	if class := out["X-Amz-Storage-Class"]; class != "" && !slices.Contains([]string{"STANDARD", "ONEZONE_IA", "GLACIER"}, class) {
		return nil, badRequest("InvalidStorageClass", "The storage class you specified is not valid").with("StorageClassRequested", class)
	}
	return out, nil
}

func (v *version) storageClass() string {
	if class := v.headers["X-Amz-Storage-Class"]; class != "" {
		return class
	}
	return "STANDARD"
}

// template is a new version as the request's header describes it.
func (c *call) template(b *bucket) (*version, error) {
	at := now()
	v := &version{key: c.key, modified: at}
	var err error
	if v.headers, err = objectHeaders(c.req.Header); err != nil {
		return nil, err
	}
	if v.tags, err = c.headerTags(); err != nil {
		return nil, err
	}
	if v.acl, err = c.headerACL(b.owner); err != nil {
		return nil, err
	}
	if v.retain, v.hold, err = c.headerLock(b, at); err != nil {
		return nil, err
	}
	v.seal, err = c.headerSeal(b)
	return v, err
}

// headerSeal is the encryption that a request asks for, or the bucket's.
func (c *call) headerSeal(b *bucket) (seal, error) {
	s := seal{algorithm: c.req.Header.Get("X-Amz-Server-Side-Encryption"), kmsKey: c.req.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id")}
	var err error
	if s.customerMD5, err = customerKey(c.req.Header, "X-Amz-Server-Side-Encryption-Customer-"); err != nil {
		return s, err
	}
	switch {
	case s.customerMD5 != "" && s.algorithm != "":
		return s, invalidArgument("Server Side Encryption with Customer provided key is incompatible with the encryption method specified")
	case s.algorithm != "" && s.algorithm != "AES256" && s.algorithm != "aws:kms":
		return s, badRequest("InvalidEncryptionAlgorithmError", "The encryption request that you specified is not valid. Supported value: AES256.")
	case s.algorithm == "" && s.customerMD5 == "" && b.encryption != nil:
		d := b.encryption.Rule[0].Default
		s.algorithm, s.kmsKey = d.SSEAlgorithm, d.KMSMasterKeyID
	}
	return s, nil
}

// customerKey verifies a key that the client keeps and returns its MD5.
func customerKey(h http.Header, prefix string) (string, error) {
	algorithm, key, sum := h.Get(prefix+"Algorithm"), h.Get(prefix+"Key"), h.Get(prefix+"Key-Md5")
	if algorithm+key+sum == "" {
		return "", nil
	}
	raw, err := base64.StdEncoding.DecodeString(key)
	if algorithm != "AES256" || err != nil || len(raw) != 32 {
		return "", invalidArgument("The secret key was invalid for the specified algorithm.")
	}
	if got := md5.Sum(raw); base64.StdEncoding.EncodeToString(got[:]) != sum {
		return "", invalidArgument("The calculated MD5 hash of the key did not match the hash that was provided.")
	}
	return sum, nil
}

// opens says whether a request has the key that an object needs.
func (v *version) opens(h http.Header, prefix string) error {
	given, err := customerKey(h, prefix)
	switch {
	case err != nil:
		return err
	case v.seal.customerMD5 == "" && given != "":
		return invalidRequest("The encryption parameters are not applicable to this object.")
	case v.seal.customerMD5 != "" && given == "":
		return invalidRequest("The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object.")
	case v.seal.customerMD5 != given:
		return accessDenied("Access Denied.")
	}
	return nil
}

func (s seal) write(h http.Header) {
	if s.algorithm != "" {
		h.Set("X-Amz-Server-Side-Encryption", s.algorithm)
	}
	if s.kmsKey != "" {
		h.Set("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id", s.kmsKey)
	}
	if s.customerMD5 != "" {
		h.Set("X-Amz-Server-Side-Encryption-Customer-Algorithm", "AES256")
		h.Set("X-Amz-Server-Side-Encryption-Customer-Key-Md5", s.customerMD5)
	}
}

// describe writes everything about a version into an answer's header.
func (v *version) describe(h http.Header) {
	for name, value := range v.headers {
		if name != "X-Amz-Storage-Class" || value != "STANDARD" {
			h.Set(name, value)
		}
	}
	h.Set("Etag", `"`+v.etag+`"`)
	h.Set("Last-Modified", httpTime(v.modified))
	h.Set("Accept-Ranges", "bytes")
	tagCount(h, v.tags)
	v.seal.write(h)
	if v.retain.mode != "" {
		h.Set("X-Amz-Object-Lock-Mode", v.retain.mode)
		h.Set("X-Amz-Object-Lock-Retain-Until-Date", stamp(v.retain.until))
	}
	if v.hold {
		h.Set("X-Amz-Object-Lock-Legal-Hold", "ON")
	}
}
