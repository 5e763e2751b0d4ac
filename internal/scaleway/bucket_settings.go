package scaleway

import (
	"context"
	"encoding/xml"
	"fmt"
	"slices"

	"bastide/internal/blueprint"
	"bastide/internal/estate"

	"github.com/minio/minio-go/v7/pkg/cors"
	"github.com/minio/minio-go/v7/pkg/lifecycle"
)

// How the file writes whether a bucket keeps versions.
const (
	versioningOn  = "enabled"
	versioningOff = "disabled"
)

// bucketSettings reads what bastide sets of a bucket, tags aside, and says
// whether its policy was kept from it: one call for each setting, all at the same
// time.
func (c *Cloud) bucketSettings(ctx context.Context, name string) (spec blueprint.Bucket, hidden bool, err error) {
	spec.Versioning = versioningOff
	readings := []func(context.Context) error{
		func(ctx context.Context) error {
			access, err := c.objects.AccessTo(ctx, name)
			spec.Access, hidden = access.String(), access.Unread
			return err
		},
		func(ctx context.Context) error {
			v, err := c.objects.Client.GetBucketVersioning(ctx, name)
			if v.Enabled() {
				spec.Versioning = versioningOn
			}
			return err
		},
		into(&spec.Lifecycle, func(ctx context.Context) ([]string, error) { return c.bucketLifecycle(ctx, name) }),
		into(&spec.CORS, func(ctx context.Context) ([]string, error) { return c.bucketCORS(ctx, name) }),
	}
	err = together(ctx, len(readings), func(ctx context.Context, i int) error { return readings[i](ctx) })
	return spec, hidden, err
}

func (c *Cloud) bucketLifecycle(ctx context.Context, name string) (out []string, err error) {
	rules, err := c.objects.Client.GetBucketLifecycle(ctx, name)
	if objectCode(err, "NoSuchLifecycleConfiguration") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, r := range rules.Rules {
		out = append(out, lifecycleText(r))
	}
	slices.Sort(out)
	return out, nil
}

func (c *Cloud) bucketCORS(ctx context.Context, name string) (out []string, err error) {
	open, err := c.objects.Client.GetBucketCors(ctx, name) // nil without any
	if err != nil || open == nil {
		return nil, err
	}
	for _, r := range open.CORSRules {
		out = append(out, blueprint.CORSText(estate.CORSRule{Origins: r.AllowedOrigin, Methods: r.AllowedMethod,
			Headers: r.AllowedHeader, ExposeHeaders: r.ExposeHeader, MaxAgeSeconds: r.MaxAgeSeconds}))
	}
	return out, nil
}

// correctBucket sets what is not as wanted. Each call sets one of the settings
// as a whole.
func (c *Cloud) correctBucket(ctx context.Context, name string, have, want blueprint.Bucket) error {
	file := c.estate.Services.Buckets[slices.IndexFunc(c.estate.Services.Buckets, func(b estate.Bucket) bool { return b.Name == name })]
	if have.Access != want.Access {
		if err := c.onBucket(ctx, name, "closed to everybody", func() error { return c.objects.Close(ctx, name) }); err != nil {
			return err
		}
	}
	if have.Versioning != want.Versioning {
		change := c.objects.Client.EnableVersioning
		if want.Versioning == versioningOff {
			change = c.objects.Client.SuspendVersioning
		}
		if err := c.onBucket(ctx, name, "made to keep versions, or to stop", func() error { return change(ctx, name) }); err != nil {
			return err
		}
	}
	if !slices.Equal(have.Lifecycle, want.Lifecycle) {
		rules := &lifecycle.Configuration{}
		for _, r := range file.Lifecycle {
			rules.Rules = append(rules.Rules, lifecycleRule(r))
		}
		if err := c.onBucket(ctx, name, "given its lifecycle", func() error { return c.objects.Client.SetBucketLifecycle(ctx, name, rules) }); err != nil {
			return err
		}
	}
	if slices.Equal(have.CORS, want.CORS) {
		return nil
	}
	var rules *cors.Config // nil removes them
	if len(file.CORS) > 0 {
		rules = cors.NewConfig(nil)
		for _, r := range file.CORS {
			rules.CORSRules = append(rules.CORSRules, cors.Rule{AllowedOrigin: r.Origins, AllowedMethod: r.Methods, AllowedHeader: r.Headers,
				ExposeHeader: r.ExposeHeaders, MaxAgeSeconds: r.MaxAgeSeconds})
		}
	}
	return c.onBucket(ctx, name, "opened to web pages", func() error { return c.objects.Client.SetBucketCors(ctx, name, rules) })
}

func lifecycleRule(r estate.LifecycleRule) lifecycle.Rule {
	rule := lifecycle.Rule{ID: r.Name, Status: "Enabled", RuleFilter: lifecycle.Filter{Prefix: r.Prefix}}
	rule.Expiration.Days = lifecycle.ExpirationDays(r.ExpireDays)
	rule.NoncurrentVersionExpiration.NoncurrentDays = lifecycle.ExpirationDays(r.OldVersionDays)
	rule.AbortIncompleteMultipartUpload.DaysAfterInitiation = lifecycle.ExpirationDays(r.AbortDays)
	return rule
}

// lifecycleText is a rule as the file would have it, or, for one that the file
// cannot say, its name and that it is another.
func lifecycleText(r lifecycle.Rule) string {
	prefix := r.RuleFilter.Prefix
	if prefix == "" {
		prefix = r.Prefix // the older form
	}
	said := estate.LifecycleRule{Name: r.ID, Prefix: prefix, ExpireDays: int(r.Expiration.Days),
		OldVersionDays: int(r.NoncurrentVersionExpiration.NoncurrentDays), AbortDays: int(r.AbortIncompleteMultipartUpload.DaysAfterInitiation)}
	again := lifecycleRule(said)
	again.Prefix = r.Prefix
	if again.RuleFilter.Prefix = r.RuleFilter.Prefix; !sameXML(again, r) {
		return fmt.Sprintf("%s (a rule of another form)", r.ID)
	}
	return blueprint.LifecycleText(said)
}

// sameXML compares rules by what would be sent.
func sameXML(a, b lifecycle.Rule) bool {
	x, err1 := xml.Marshal(lifecycle.Configuration{Rules: []lifecycle.Rule{a}})
	y, err2 := xml.Marshal(lifecycle.Configuration{Rules: []lifecycle.Rule{b}})
	return err1 == nil && err2 == nil && string(x) == string(y)
}
