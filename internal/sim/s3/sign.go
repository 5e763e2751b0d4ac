package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The arithmetic of AWS Signature Version 4, as far as S3 uses it.

const (
	algorithmV4 = "AWS4-HMAC-SHA256"
	timeV4      = "20060102T150405Z"
	emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexSHA256(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// signingKey derives the key for a scope.
func signingKey(secret, date, region string) []byte {
	return mac(mac(mac(mac([]byte("AWS4"+secret), date), region), "s3"), "aws4_request")
}

// canonicalRequest is what a client signs of a request.
func canonicalRequest(r *http.Request, signed []string, payload string, skip string) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n" + uriEncode(r.URL.Path, false) + "\n" + canonicalQuery(r.URL.RawQuery, skip) + "\n")
	for _, name := range signed {
		b.WriteString(name + ":" + headerValue(r, name) + "\n")
	}
	b.WriteString("\n" + strings.Join(signed, ";") + "\n" + payload)
	return b.String()
}

// headerValue is a header as it enters the canonical request. Go's server has
// taken the host and the transfer's encoding out of the header.
func headerValue(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "transfer-encoding":
		return strings.Join(r.TransferEncoding, ",")
	}
	var values []string
	for _, v := range r.Header.Values(name) {
		values = append(values, strings.Join(strings.Fields(v), " "))
	}
	return strings.Join(values, ",")
}

// canonicalQuery sorts and encodes a query again, without one field.
func canonicalQuery(raw, skip string) string {
	var pairs []string
	for _, field := range strings.Split(raw, "&") {
		if field == "" {
			continue
		}
		k, v, _ := strings.Cut(field, "=")
		k, v = queryUnescape(k), queryUnescape(v)
		if k == skip {
			continue
		}
		pairs = append(pairs, uriEncode(k, true)+"="+uriEncode(v, true))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// queryUnescape leaves what cannot be decoded as it is; the signature will not
// match then.
func queryUnescape(s string) string {
	if out, err := url.QueryUnescape(s); err == nil {
		return out
	}
	return s
}

// uriEncode is S3's own encoding: all but letters, digits and -._~ (and slashes
// in paths) in hexadecimal of upper case, once.
func uriEncode(s string, slashes bool) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
		if plain || (c == '/' && !slashes) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

func sameSignature(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }
