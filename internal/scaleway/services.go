package scaleway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/registry/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
)

// foundServices is what the listings of the small services gave.
type foundServices struct {
	edgeIPs    []*lb.IP
	namespaces []*registry.Namespace
	secrets    []*secret.Secret
	deleted    []*secret.Secret // scheduled for deletion, with their names still
	zones      []*zone
	buckets    []*bucket

	mu     sync.Mutex
	unread []string // products that the key may not read and the file does not use
}

// findServices are the listings of the services, each read to its end. They are
// read whether or not the file uses a product, because what was made for an
// earlier file is still there.
func (c *Cloud) findServices(f *found) []func(context.Context) error {
	e := c.estate
	usesSecrets := len(e.Services.Secrets) > 0 || e.Services.Postgres != nil
	usesBuckets := len(e.Services.Buckets) > 0
	c.metBuckets.Range(func(any, any) bool { usesBuckets = true; return false })
	return []func(context.Context) error{
		into(&f.edgeIPs, func(ctx context.Context) ([]*lb.IP, error) {
			return c.listEdgeIPs(ctx, []string{blueprint.TagEstate + e.Name})
		}),
		// Namespaces and secrets of others are read too: they can have the name.
		f.optional("the project's registry namespaces", e.Services.Registry != nil, into(&f.namespaces, c.listNamespaces)),
		f.optional("the project's secrets", usesSecrets, func(ctx context.Context) (err error) {
			if f.secrets, err = c.listSecrets(ctx, nil); err != nil {
				return err
			}
			return c.findPasswords(ctx, f)
		}),
		f.optional("the project's deleted secrets", usesSecrets, func(ctx context.Context) (err error) {
			if usesSecrets { // they matter to names that are wanted only
				f.deleted, err = c.secretsOf(ctx, &secret.ListSecretsRequest{ScheduledForDeletion: true})
			}
			return err
		}),
		f.optional("the project's DNS zones", e.DNS != nil, into(&f.zones, c.findZones)),
		f.optional("the project's buckets", usesBuckets, into(&f.buckets, c.findBuckets)),
	}
}

// optional lets a key be without the right to read a product that the file does
// not use. What such a product holds is then unknown, which is kept and said.
func (f *foundServices) optional(what string, used bool, read func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := read(ctx)
		if used || !forbidden(err) && !objectCode(err, "AccessDenied") && !errors.Is(err, errNoObjects) {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.unread = append(f.unread, what)
		return nil
	}
}

// services turns the listings of the services into items.
func (r *reader) services() {
	for _, what := range r.f.unread {
		r.inv.Unread = append(r.inv.Unread, what)
		r.inv.Warnings = append(r.inv.Warnings, fmt.Sprintf("the API key may not read %s; the file asks for none, so whether an earlier one left any is not checked", what))
	}
	r.edgeIPs()
	r.namespaces()
	r.secrets()
	r.records()
	r.buckets()
}

// Complete is an error with exit code 4 when a product could not be read, so
// that nothing can be said about what the estate has there.
func (inv *Inventory) Complete() error {
	if len(inv.Unread) == 0 {
		return nil
	}
	return outcome.CannotTell(fmt.Sprintf("whether %s has anything left among %s cannot be told", inv.estate, strings.Join(inv.Unread, " and ")),
		"the API key may not read them", "run the command again with a key that may; `bastide iam ENV` prints the permission sets")
}

// inTheWay notes that something without the estate's mark has the place of a
// step, so that the step is refused and not made.
func (r *reader) inTheWay(step, why string) {
	if r.inv.squatters == nil {
		r.inv.squatters = map[string]string{}
	}
	r.inv.squatters[step] = why
}

// serviceTags are the tags of a step's resource with those of the user.
func (c *Cloud) serviceTags(s blueprint.Step, users []string) []string {
	return append(c.tags(s), users...)
}

// userTags leaves out bastide's own.
func userTags(tags []string) []string {
	var out []string
	for _, t := range tags {
		if !strings.HasPrefix(t, "bastide:") {
			out = append(out, t)
		}
	}
	return out
}

func (c *Cloud) applyService(ctx context.Context, j job) (plan.Observed, error) {
	switch want := j.step.Spec.(type) {
	case blueprint.EdgeIP:
		return c.applyEdgeIP(ctx, j, want)
	case blueprint.Registry:
		return c.applyNamespace(ctx, j, want)
	case blueprint.Secret:
		return c.applySecret(ctx, j, want)
	case blueprint.DNSRecord:
		return c.applyRecord(ctx, j, want)
	case blueprint.Bucket:
		return c.applyBucket(ctx, j, want)
	}
	return plan.Observed{}, fmt.Errorf("%s is not a cloud step", j.step.ID)
}

func (c *Cloud) removeService(ctx context.Context, it Item) error {
	switch it.Kind {
	case blueprint.KindEdgeIP:
		return c.releaseEdgeIP(ctx, it)
	case blueprint.KindRegistry:
		return c.removeNamespace(ctx, it)
	case blueprint.KindSecret:
		return c.removeSecret(ctx, it)
	case blueprint.KindDNSRecord:
		return c.removeRecord(ctx, it)
	case blueprint.KindBucket:
		return c.removeBucket(ctx, it)
	}
	return fmt.Errorf("a %s cannot be deleted by itself", it.Kind)
}

// nameTaken says that a creation was refused because the name is in use. Global
// names have a status of their own, secrets refuse their argument.
func nameTaken(err error) bool { return statusOf(err) == 409 && !busy(err) }
