package s3

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
)

// Settings of a bucket that the store keeps and gives back: CORS, website,
// encryption. Only CORS changes what the store answers.

type corsConfig struct {
	XMLName  xml.Name
	CORSRule []corsRule
}

type corsRule struct {
	ID            string   `xml:",omitempty"`
	AllowedHeader []string `xml:",omitempty"`
	AllowedMethod []string
	AllowedOrigin []string
	ExposeHeader  []string `xml:",omitempty"`
	MaxAgeSeconds *int     `xml:",omitempty"`
}

func (c *corsConfig) check() error {
	if len(c.CORSRule) == 0 || len(c.CORSRule) > 100 {
		return malformedXML()
	}
	for _, r := range c.CORSRule {
		if len(r.AllowedMethod) == 0 || len(r.AllowedOrigin) == 0 {
			return malformedXML()
		}
		for _, m := range r.AllowedMethod {
			if !slices.Contains([]string{"GET", "PUT", "HEAD", "POST", "DELETE"}, m) {
				return invalidRequest("Found unsupported HTTP method in CORS config. Unsupported method is %s", m)
			}
		}
		for _, o := range append(slices.Clone(r.AllowedOrigin), r.AllowedHeader...) {
			if strings.Count(o, "*") > 1 {
				return invalidRequest("AllowedOrigin \"%s\" can not have more than one wildcard.", o)
			}
			if o == "" {
				return malformedXML()
			}
		}
	}
	return nil
}

// rule is the first rule for an origin and a method.
func (c *corsConfig) rule(origin, method string) *corsRule {
	if c == nil || origin == "" {
		return nil
	}
	for i, r := range c.CORSRule {
		if slices.Contains(r.AllowedMethod, method) && matchesAny(r.AllowedOrigin, origin, false) {
			return &c.CORSRule[i]
		}
	}
	return nil
}

func (r *corsRule) write(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	if slices.Contains(r.AllowedOrigin, "*") {
		h.Set("Access-Control-Allow-Origin", "*")
	}
	h.Set("Access-Control-Allow-Methods", strings.Join(r.AllowedMethod, ", "))
	if len(r.ExposeHeader) > 0 {
		h.Set("Access-Control-Expose-Headers", strings.Join(r.ExposeHeader, ", "))
	}
	h.Set("Vary", "Origin, Access-Control-Request-Headers, Access-Control-Request-Method")
}

// crossOrigin adds what a browser needs to an answer.
func (c *call) crossOrigin(a *reply) {
	origin := c.req.Header.Get("Origin")
	if origin == "" || c.req.Method == http.MethodOptions {
		return
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if b := c.s.buckets[c.name]; b != nil {
		if r := b.cors.rule(origin, c.req.Method); r != nil {
			r.write(a.header, origin)
		}
	}
}

// preflight answers a browser that asks before it calls.
func (c *call) preflight() (*reply, error) {
	origin, method := c.req.Header.Get("Origin"), c.req.Header.Get("Access-Control-Request-Method")
	if origin == "" || method == "" {
		return nil, badRequest("BadRequest", "Insufficient information. Origin request header needed.")
	}
	b := c.buckets[c.name]
	if b == nil {
		return nil, noSuchBucket()
	}
	forbidden := refuse(http.StatusForbidden, "AccessForbidden", "CORSResponse: This CORS request is not allowed.")
	r := b.cors.rule(origin, method)
	if r == nil {
		return nil, forbidden
	}
	out := newReply(http.StatusOK)
	for _, h := range strings.Split(c.req.Header.Get("Access-Control-Request-Headers"), ",") {
		if h = strings.TrimSpace(h); h != "" && !matchesAny(r.AllowedHeader, h, true) {
			return nil, forbidden
		}
	}
	r.write(out.header, origin)
	if h := c.req.Header.Get("Access-Control-Request-Headers"); h != "" {
		out.header.Set("Access-Control-Allow-Headers", h)
	}
	return out, nil
}

type websiteConfig struct {
	XMLName       xml.Name
	IndexDocument *indexDocument `xml:",omitempty"`
	ErrorDocument *errorDocument `xml:",omitempty"`
}

type indexDocument struct{ Suffix string }

type errorDocument struct{ Key string }

func (w *websiteConfig) check() error {
	if w.IndexDocument == nil || (w.ErrorDocument != nil && w.ErrorDocument.Key == "") {
		return malformedXML()
	}
	if s := w.IndexDocument.Suffix; s == "" || strings.Contains(s, "/") {
		return invalidArgument("The IndexDocument Suffix is not well formed")
	}
	return nil
}

type encryptionConfig struct {
	XMLName xml.Name
	Rule    []encryptionRule
}

type encryptionRule struct {
	Default          *encryptionDefault `xml:"ApplyServerSideEncryptionByDefault,omitempty"`
	BucketKeyEnabled bool
}

type encryptionDefault struct {
	SSEAlgorithm   string
	KMSMasterKeyID string `xml:",omitempty"`
}

func (e *encryptionConfig) check() error {
	if len(e.Rule) != 1 || e.Rule[0].Default == nil {
		return malformedXML()
	}
	switch r := e.Rule[0]; r.Default.SSEAlgorithm {
	case "AES256":
		if r.Default.KMSMasterKeyID != "" {
			return invalidArgument("a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms")
		}
	case "aws:kms":
		if !r.BucketKeyEnabled { // recorded
			return invalidArgument("Bucket key is mandatory when using Server Side Encryption with KMS managed keys.")
		}
	default:
		return malformedXML()
	}
	return nil
}
