package s3

import (
	"encoding/hex"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Key is a secret key of the region and what it may do.
type Key struct {
	Secret string
	// Project owns what the key makes where the access key names no other.
	Project string
	// Projects may be chosen with SCW...@project-id; nil means any.
	Projects []string
	// May says whether the key has a right in a project, which is the one that the
	// call was signed for; nil has every right. It is asked once for each right
	// that a call needs. The rule is that of the fault script which
	// took it away, if one did.
	May func(need Right, project string) (ok bool, rule string)
}

// caller is who signed a request; the zero value is nobody.
type caller struct {
	project string
	rights  func(need Right, project string) (ok bool, rule string)
}

func (c caller) anonymous() bool { return c.project == "" }

// proof is a verified signature and what is needed to verify the body with it.
type proof struct {
	caller  caller
	key     []byte // signing key; nil without a signature
	seed    string // the request's signature, with which signed chunks begin
	stamp   string
	scope   string
	payload string // value of x-amz-content-sha256
	region  string
}

// skew is how far a client's clock may be off.
const skew = 15 * time.Minute

var accessKeyPattern = regexp.MustCompile(`^SCW[A-Z0-9]{17}(@[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?$`)

// authenticate verifies a request's signature. Host is the region in the host
// name, empty where the name has none.
func (s *Server) authenticate(r *http.Request, host string) (proof, error) {
	query := r.URL.Query()
	authorization := r.Header.Get("Authorization")
	switch {
	case query.Has("X-Amz-Algorithm") || query.Has("X-Amz-Signature"):
		if authorization != "" {
			return proof{}, invalidArgument("Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string parameter or the Authorization header should be specified")
		}
		return s.presigned(r, query, host)
	case authorization != "":
		return s.signed(r, authorization, host)
	case query.Has("AWSAccessKeyId"):
		return proof{}, invalidRequest("The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.")
	}
	return proof{payload: "UNSIGNED-PAYLOAD", region: host}, nil
}

// credential is the scope of a signature: KEY/20261130/fr-par/s3/aws4_request.
type credential struct{ access, date, region string }

func parseCredential(text string) (credential, error) {
	f := strings.Split(text, "/")
	if len(f) != 5 || f[3] != "s3" || f[4] != "aws4_request" {
		return credential{}, badRequest("AuthorizationHeaderMalformed", "The authorization header is malformed; the Credential is mal-formed; expecting \"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\".")
	}
	return credential{f[0], f[1], f[2]}, nil
}

// signed verifies an Authorization header.
func (s *Server) signed(r *http.Request, authorization, host string) (proof, error) {
	kind, rest, _ := strings.Cut(authorization, " ")
	if kind != algorithmV4 {
		return proof{}, invalidRequest("The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.")
	}
	fields := map[string]string{}
	for _, f := range strings.Split(rest, ",") {
		k, v, ok := strings.Cut(strings.TrimSpace(f), "=")
		if !ok {
			return proof{}, badRequest("AuthorizationHeaderMalformed", "The authorization header is malformed.")
		}
		fields[k] = v
	}
	c, err := parseCredential(fields["Credential"])
	if err != nil {
		return proof{}, err
	}
	stamp := r.Header.Get("X-Amz-Date")
	at, err := time.Parse(timeV4, stamp)
	if err != nil {
		return proof{}, accessDenied("AWS authentication requires a valid Date or x-amz-date header")
	}
	payload := r.Header.Get("X-Amz-Content-Sha256")
	if payload == "" {
		return proof{}, invalidRequest("Missing required header for this request: x-amz-content-sha256")
	}
	signed := strings.Split(fields["SignedHeaders"], ";")
	for name := range r.Header {
		if l := strings.ToLower(name); strings.HasPrefix(l, "x-amz-") && !slices.Contains(signed, l) {
			return proof{}, accessDenied("There were headers present in the request which were not signed").with("HeadersNotSigned", l)
		}
	}
	if off := time.Since(at); off > skew || off < -skew {
		return proof{}, refuse(http.StatusForbidden, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.").
			with("RequestTime", stamp).with("ServerTime", time.Now().UTC().Format(time.RFC3339)).with("MaxAllowedSkewMilliseconds", strconv.Itoa(int(skew.Milliseconds())))
	}
	return s.verify(r, c, signed, stamp, payload, fields["Signature"], "", host)
}

// presigned verifies a signature in the query.
func (s *Server) presigned(r *http.Request, q url.Values, host string) (proof, error) {
	wrong := func(what string) error {
		return badRequest("AuthorizationQueryParametersError", "%s", what)
	}
	if q.Get("X-Amz-Algorithm") != algorithmV4 {
		return proof{}, wrong("X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\"")
	}
	c, err := parseCredential(q.Get("X-Amz-Credential"))
	if err != nil {
		return proof{}, wrong("Error parsing the X-Amz-Credential parameter")
	}
	stamp := q.Get("X-Amz-Date")
	at, err := time.Parse(timeV4, stamp)
	if err != nil {
		return proof{}, wrong("X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"")
	}
	seconds, err := strconv.Atoi(q.Get("X-Amz-Expires"))
	if err != nil || seconds < 1 || seconds > 604800 {
		return proof{}, wrong("X-Amz-Expires must be between 1 and 604800 seconds")
	}
	if time.Until(at) > skew {
		return proof{}, accessDenied("Request is not yet valid")
	}
	if time.Since(at) > time.Duration(seconds)*time.Second {
		return proof{}, accessDenied("Request has expired").with("X-Amz-Expires", strconv.Itoa(seconds))
	}
	payload := q.Get("X-Amz-Content-Sha256")
	if payload == "" {
		payload = r.Header.Get("X-Amz-Content-Sha256")
	}
	if payload == "" {
		payload = "UNSIGNED-PAYLOAD"
	}
	return s.verify(r, c, strings.Split(q.Get("X-Amz-SignedHeaders"), ";"), stamp, payload, q.Get("X-Amz-Signature"), "X-Amz-Signature", host)
}

// verify compares a signature with what the key's secret makes of the request.
func (s *Server) verify(r *http.Request, c credential, signed []string, stamp, payload, signature, skip, host string) (proof, error) {
	if !slices.Contains(signed, "host") {
		return proof{}, accessDenied("There were headers present in the request which were not signed").with("HeadersNotSigned", "host")
	}
	want := host
	if want == "" && !slices.Contains(regions, c.region) {
		want = s.opts.Region
	}
	if want != "" && c.region != want {
		return proof{}, badRequest("AuthorizationHeaderMalformed", "The authorization header is malformed; the region '%s' is wrong; expecting '%s'", c.region, want).with("Region", want)
	}
	if !strings.HasPrefix(stamp, c.date) {
		return proof{}, badRequest("AuthorizationHeaderMalformed", "The authorization header is malformed; Invalid credential date \"%s\".", c.date)
	}
	key, project, err := s.key(c.access)
	if err != nil {
		return proof{}, err
	}
	scope := c.date + "/" + c.region + "/s3/aws4_request"
	k := signingKey(key.Secret, c.date, c.region)
	request := canonicalRequest(r, signed, payload, skip)
	text := algorithmV4 + "\n" + stamp + "\n" + scope + "\n" + hexSHA256(request)
	if !sameSignature(hex.EncodeToString(mac(k, text)), signature) {
		return proof{}, signatureDoesNotMatch()
	}
	return proof{caller: caller{project, key.May}, key: k, seed: signature, stamp: stamp, scope: scope, payload: payload, region: c.region}, nil
}

func signatureDoesNotMatch() *refusal {
	return refuse(http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your key and signing method.")
}

// key finds a secret by SCW... or SCW...@project-id.
func (s *Server) key(access string) (Key, string, error) {
	unknown := refuse(http.StatusForbidden, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
	if !accessKeyPattern.MatchString(access) {
		return Key{}, "", unknown
	}
	id, project, chosen := strings.Cut(access, "@")
	key, ok := s.opts.Keys(id)
	if !ok {
		return Key{}, "", unknown
	}
	if !chosen {
		return key, key.Project, nil
	}
	if project != key.Project && key.Projects != nil && !slices.Contains(key.Projects, project) {
		return Key{}, "", accessDenied("Access Denied.")
	}
	return key, project, nil
}
