package scaleway

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/domain/v2beta1"
	"github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	instancev2 "github.com/scaleway/scaleway-sdk-go/api/instance/v2alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	catalog "github.com/scaleway/scaleway-sdk-go/api/product_catalog/v2alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/registry/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// Options says for which estate and how to reach Scaleway.
type Options struct {
	Estate    *estate.Estate
	UserAgent string // such as "bastide/1.2"; added to the SDK's own
	// LookupEnv reads the environment; nil means os.LookupEnv.
	LookupEnv func(string) (string, bool)
	// Decorators wrap the network, first one outermost: Record, ReadOnly.
	Decorators []Decorator
	Retry      Retry // zero fields take their defaults
	Pace       Pace  // zero fields take their defaults
	// Notice tells a person why a call takes long: that it fails in passing and
	// until when it is repeated. nil tells nobody.
	Notice func(string)
	// Learnt is told every password that is made or read, so that no output ever
	// holds one; nil is allowed.
	Learnt func(secrets ...string)
}

// Cloud is one estate's view of Scaleway. It is safe for concurrent use.
type Cloud struct {
	estate  *estate.Estate
	project string
	region  scw.Region
	zone    scw.Zone
	retry   Retry
	pace    Pace
	access  access

	vpc       *vpc.API
	iam       *iam.API
	gateways  *vpcgw.API
	ipam      *ipam.API
	instances *instance.API
	nics      *instancev2.API
	blocks    *block.API
	balancers *lb.ZonedAPI
	products  *catalog.PublicCatalogAPI
	databases *rdb.API
	registry  *registry.API
	secrets   *secret.API
	domains   *domain.API
	objects   *ObjectStorage // nil where nothing says where it is

	// metBuckets are the names of buckets that were the estate's when they were
	// read: from then on they are read by name, whatever a listing lacks.
	metBuckets sync.Map

	zoneChange  sync.Mutex
	oneDatabase chan struct{} // holds one: see alone
	learnt      func(secrets ...string)
}

// New makes a Cloud from the estate's file and the user's credentials. It makes
// no call. Warnings name settings that were found and not followed: project,
// region and zone always come from the file.
func New(_ context.Context, o Options) (*Cloud, []string, error) {
	s := &settings{lookup: o.LookupEnv}
	if s.lookup == nil {
		s.lookup = os.LookupEnv
	}
	p, err := s.profile()
	if err != nil {
		return nil, s.warnings, err
	}
	s.disagreements(p, o.Estate.Scaleway)
	c := &Cloud{
		estate: o.Estate, project: o.Estate.Scaleway.Project,
		region: scw.Region(o.Estate.Scaleway.Region), zone: scw.Zone(o.Estate.Scaleway.Zones[0]),
		retry: o.Retry.orDefaults(), pace: o.Pace.orDefaults(),
		oneDatabase: make(chan struct{}, 1), learnt: o.Learnt,
	}
	c.access = access{key: p.AccessKey, from: p.keyFrom}
	if p.APIURL != "" {
		c.access.endpoint = p.urlFrom
	}
	client, err := c.client(p, o)
	if err != nil {
		return nil, s.warnings, err
	}
	c.vpc, c.iam, c.gateways, c.ipam = vpc.NewAPI(client), iam.NewAPI(client), vpcgw.NewAPI(client), ipam.NewAPI(client)
	c.instances, c.nics, c.blocks, c.balancers = instance.NewAPI(client), instancev2.NewAPI(client), block.NewAPI(client), lb.NewZonedAPI(client)
	c.products = catalog.NewPublicCatalogAPI(client)
	c.registry, c.secrets, c.domains = registry.NewAPI(client), secret.NewAPI(client), domain.NewAPI(client)
	c.databases = rdb.NewAPI(client)
	// Without buckets in the file it need not be reachable.
	if c.objects, _, err = NewObjectStorage(o); err != nil && len(o.Estate.Services.Buckets) > 0 {
		return nil, s.warnings, err
	}
	return c, s.warnings, nil
}

func (s *settings) disagreements(p profile, file estate.Scaleway) {
	for _, d := range []struct{ what, have, want string }{
		{"project", p.Project, file.Project}, {"region", p.Region, file.Region}, {"zone", p.Zone, file.Zones[0]},
	} {
		if d.have != "" && d.have != d.want {
			s.warnings = append(s.warnings, fmt.Sprintf("the default %s of your Scaleway settings is %s; the file says %s and the file decides", d.what, d.have, d.want))
		}
	}
}

func (c *Cloud) client(p profile, o Options) (*scw.Client, error) {
	if p.SecretKey == "" || p.AccessKey == "" {
		return nil, outcome.Refuse("nothing at Scaleway may be read", "there is no API key",
			"set SCW_ACCESS_KEY and SCW_SECRET_KEY, or run scw init")
	}
	if u, err := url.Parse(p.APIURL); p.APIURL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return nil, outcome.Refuse("Scaleway cannot be reached", fmt.Sprintf("%s is not the address of an API", p.APIURL), "correct it in "+c.access.endpoint)
	}
	network := o.network(p.Insecure)
	options := []scw.ClientOption{
		scw.WithAuth(p.AccessKey, p.SecretKey),
		scw.WithHTTPClient(&http.Client{
			Transport: &metadata{&headers{&retrying{protocol: jsonAPI{}, next: network, retry: c.retry, trouble: trouble{notice: o.Notice}}}},
			// The API sends nobody elsewhere; whoever does must not get the secret key.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
		scw.WithDefaultProjectID(c.project), scw.WithDefaultRegion(c.region), scw.WithDefaultZone(c.zone),
		scw.WithUserAgent(orText(o.UserAgent, "bastide")),
	}
	if p.APIURL != "" {
		options = append(options, scw.WithAPIURL(strings.TrimRight(p.APIURL, "/")))
	}
	client, err := scw.NewClient(options...)
	if err != nil {
		// The SDK names the setting that it dislikes and, for a secret key, not its value.
		why := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "scaleway-sdk-go: "), p.SecretKey, "(hidden)")
		return nil, outcome.Refuse("Scaleway cannot be reached", why, "correct that setting in the environment, the scw configuration file or the estate file")
	}
	return client, nil
}

// network is the way out, with the decorators around it.
func (o Options) network(insecure bool) http.RoundTripper {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 32
	if insecure {
		base.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // the user's explicit wish
	}
	var network http.RoundTripper = base
	for i := len(o.Decorators) - 1; i >= 0; i-- {
		network = o.Decorators[i](network)
	}
	return network
}

// marked says whether tags carry the estate's mark.
func (c *Cloud) marked(tags []string) bool { return has(tags, blueprint.TagEstate+c.estate.Name) }

// ours says whether tags claim a step of the estate.
func (c *Cloud) ours(tags []string, step blueprint.Step) bool {
	return c.marked(tags) && has(tags, blueprint.TagStep+step.ID)
}

func (c *Cloud) tags(s blueprint.Step) []string { return blueprint.Tags(c.estate.Name, s) }

// stepTag filters a listing on the server. The answer is checked again here:
// most products answer with everything that has any one of the tags.
func stepTag(s blueprint.Step) []string { return []string{blueprint.TagStep + s.ID} }

func has(tags []string, tag string) bool {
	for _, t := range tags {
		if t == tag {
			return true
		}
	}
	return false
}

// idOf resolves a step that was made before to its ID at Scaleway.
func idOf(known plan.Known, step string) (string, error) {
	o, ok := known.Get(step)
	if !ok || o.CloudID == "" {
		return "", fmt.Errorf("%s is not made yet", step)
	}
	return o.CloudID, nil
}
