package scaleway

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"bastide/internal/outcome"
	"bastide/internal/vault"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// ObjectStorage is the object storage of the estate's region, reached with the
// same settings as the API. It is safe for concurrent use.
//
// Its calls are tried again as those of the API are, each within Retry.Attempt,
// and are in memory while they are under way: it is for small objects.
type ObjectStorage struct {
	// Client speaks S3. It never tries twice itself and sends no trailing
	// checksum; whoever puts an object gives its MD5, and its SHA-256 if it is
	// small, and sets DisableContentSha256, so that no x-amz-checksum-* header,
	// which some stores reject, is sent either. Both digests are checked by every store.
	Client  *minio.Core
	Project string // empty for a store that is not Scaleway's
	Region  string

	access    access
	network   http.RoundTripper // the Client's
	pathStyle bool
}

// NewObjectStorage reads the settings. It makes no call. The file's project is
// part of the access key that is sent, because a key alone stands for its
// preferred project, which is another decision than the file's.
func NewObjectStorage(o Options) (*ObjectStorage, []string, error) {
	s := &settings{lookup: o.LookupEnv}
	if s.lookup == nil {
		s.lookup = os.LookupEnv
	}
	p, err := s.profile()
	if err != nil {
		return nil, s.warnings, err
	}
	where := o.Estate.Scaleway
	endpoint, err := p.objectEndpoint(where.Region)
	if err != nil {
		return nil, s.warnings, err
	}
	lookup := minio.BucketLookupDNS
	if p.PathStyle {
		lookup = minio.BucketLookupPath
	}
	objects, err := o.objectStorage(connection{
		endpoint: endpoint, region: where.Region, lookup: lookup, insecure: p.Insecure,
		accessKey: p.AccessKey + "@" + where.Project, secretKey: vault.NewSecret(p.SecretKey), protocol: s3{host: endpoint.Host},
	})
	if err != nil {
		return nil, s.warnings, outcome.Refuse("object storage cannot be reached", err.Error(), "correct "+orText(p.s3From, "the Scaleway settings"))
	}
	objects.Project, objects.access = where.Project, access{key: p.AccessKey, from: p.keyFrom, endpoint: p.s3From}
	return objects, s.warnings, nil
}

// connection is one object store and who asks.
type connection struct {
	endpoint  *url.URL
	region    string
	lookup    minio.BucketLookupType
	insecure  bool
	accessKey string
	secretKey vault.Secret
	protocol  s3
}

// objectStorage makes the client of one store. It makes no call.
func (o Options) objectStorage(c connection) (*ObjectStorage, error) {
	t := &retrying{protocol: c.protocol, next: o.network(c.insecure), retry: o.Retry.orDefaults(), trouble: trouble{notice: o.Notice}}
	network := denying{wording{t}, c.protocol}
	client, err := minio.NewCore(c.endpoint.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(c.accessKey, c.secretKey.Reveal(), ""),
		Secure: c.endpoint.Scheme == "https", Region: c.region, BucketLookup: c.lookup, Transport: network, MaxRetries: 1,
	})
	if err != nil {
		return nil, err
	}
	name, version, _ := strings.Cut(orText(o.UserAgent, "bastide/unknown"), "/")
	client.SetAppInfo(name, version)
	return &ObjectStorage{Client: client, Region: c.region, network: network, pathStyle: c.lookup == minio.BucketLookupPath}, nil
}

// objectEndpoint is where the region's object storage is. When the API was
// pointed elsewhere, object storage has to be too: half of an estate somewhere
// else is nobody's wish.
func (p profile) objectEndpoint(region string) (*url.URL, error) {
	const what = "object storage cannot be reached"
	if p.SecretKey == "" || p.AccessKey == "" {
		return nil, outcome.Refuse(what, "there is no API key", "set SCW_ACCESS_KEY and SCW_SECRET_KEY, or run scw init")
	}
	if p.S3URL == "" && p.APIURL != "" && !strings.HasSuffix(hostOf(p.APIURL), ".scaleway.com") {
		return nil, outcome.Refuse(what, fmt.Sprintf("%s says that the API is at %s, and nothing says where object storage is then", p.urlFrom, p.APIURL), "set SCW_S3_ENDPOINT as well")
	}
	text := p.objectAddress(region)
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" {
		return nil, outcome.Refuse(what, fmt.Sprintf("%s is not the address of an object store", text), "correct it in "+orText(p.s3From, "the Scaleway settings"))
	}
	return u, nil
}

// objectAddress is the address that the settings give, or Scaleway's own.
func (p profile) objectAddress(region string) string {
	return orText(p.S3URL, fmt.Sprintf("https://s3.%s.scw.cloud", region))
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// wording keeps the client from replacing an error that speaks of an EOF by one
// of its own, which says less and cannot be told from others.
type wording struct{ next http.RoundTripper }

func (w wording) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := w.next.RoundTrip(req)
	if err != nil && strings.Contains(err.Error(), "EOF") {
		err = &cutError{err}
	}
	return res, err
}

type cutError struct{ err error }

func (e *cutError) Error() string {
	return strings.NewReplacer("unexpected EOF", "the connection was cut", "EOF", "the connection was cut").Replace(e.err.Error())
}
func (e *cutError) Unwrap() error { return e.err }
