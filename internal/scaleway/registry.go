package scaleway

import (
	"context"
	"fmt"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/registry/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

func (c *Cloud) listNamespaces(ctx context.Context) ([]*registry.Namespace, error) {
	return list(ctx, c, "registry namespaces", func(v *registry.Namespace) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*registry.Namespace, uint64, error) {
		r, err := c.registry.ListNamespaces(&registry.ListNamespacesRequest{Region: c.region, ProjectID: &c.project, Page: n, PageSize: size,
			OrderBy: registry.ListNamespacesRequestOrderByCreatedAtAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Namespaces, uint64(r.TotalCount), nil
	})
}

// A namespace carries no tags. Its mark stands in its description, behind what
// the user wrote there.
func (c *Cloud) mark() string { return "[" + blueprint.TagEstate + c.estate.Name + "]" }

func (c *Cloud) describeNamespace(text string) string {
	return strings.TrimSpace(text + " " + c.mark())
}

// ownNamespace says whether a description carries the mark, and what it says
// beside it.
func (c *Cloud) ownNamespace(description string) (text string, own bool) {
	before, after, own := strings.Cut(description, c.mark())
	return strings.TrimSpace(strings.TrimSpace(before) + " " + strings.TrimSpace(after)), own
}

// applyNamespace makes the namespace, or takes up the estate's own.
func (c *Cloud) applyNamespace(ctx context.Context, j job, want blueprint.Registry) (plan.Observed, error) {
	var other *registry.Namespace
	find := func(ctx context.Context) (*registry.Namespace, bool, error) {
		all, err := c.listNamespaces(ctx)
		other = nil
		for _, n := range all {
			if n.Name != j.step.Name || n.Status == registry.NamespaceStatusDeleting {
				continue
			}
			if _, own := c.ownNamespace(n.Description); own {
				return n, true, err
			}
			other = n
		}
		return nil, false, err
	}
	n, fresh, err := ensureNew(ctx, c, forFree, find, func(ctx context.Context) (*registry.Namespace, error) {
		return c.registry.CreateNamespace(&registry.CreateNamespaceRequest{Region: c.region, ProjectID: &c.project, Name: j.step.Name,
			Description: c.describeNamespace(want.Description), IsPublic: want.Public}, scw.WithContext(ctx))
	})
	if nameTaken(err) {
		n, err = c.namespaceTaken(ctx, j.step.Name, find, &other, err)
		fresh = false
	}
	if err != nil {
		return plan.Observed{}, err
	}
	if n, err = c.namespaceReady(ctx, j, n.ID, fresh); err != nil {
		return plan.Observed{}, err
	}
	if c.namespaceSpec(n) != want {
		description := c.describeNamespace(want.Description)
		if err := c.steady(ctx, forFree, func(ctx context.Context) error {
			_, err := c.registry.UpdateNamespace(&registry.UpdateNamespaceRequest{Region: c.region, NamespaceID: n.ID, Description: &description, IsPublic: &want.Public}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return plan.Observed{}, err
		}
	}
	return j.done(n.ID, "", string(n.Status), want), nil
}

// namespaceTaken looks whose the name is that a creation was refused for. It may
// be the estate's own after all: made by a call whose answer was lost, or on its
// way out.
func (c *Cloud) namespaceTaken(ctx context.Context, name string, find func(context.Context) (*registry.Namespace, bool, error), other **registry.Namespace, cause error) (*registry.Namespace, error) {
	n, found, err := lookAgain(ctx, c, c.pace.Settle, find)
	if err != nil || found {
		return n, err
	}
	what := fmt.Sprintf("the registry namespace %s could not be made", name)
	if *other != nil {
		return nil, outcome.Fail(what, c.namespaceStrange(*other), "choose another name in services.registry.name, or hand it over").Because(cause)
	}
	return nil, outcome.Fail(what, "the name is taken, and the owner is unknown: names are unique among all customers of the region, and Scaleway does not say whose one is",
		"choose another name in services.registry.name").Because(cause)
}

func (c *Cloud) namespaceStrange(n *registry.Namespace) string {
	return fmt.Sprintf("the project has a namespace of that name (%s) without the estate's mark; to hand it over, add %s to its description", n.ID, c.mark())
}

func (c *Cloud) namespaceReady(ctx context.Context, j job, id string, fresh bool) (*registry.Namespace, error) {
	return until(ctx, c, waiting{what: j.name(), to: "become ready", limit: forFree, fresh: fresh}, c.readNamespace(id), namespaceVerdict)
}

func (c *Cloud) readNamespace(id string) func(context.Context) (*registry.Namespace, error) {
	return func(ctx context.Context) (*registry.Namespace, error) {
		return c.registry.GetNamespace(&registry.GetNamespaceRequest{Region: c.region, NamespaceID: id}, scw.WithContext(ctx))
	}
}

func namespaceVerdict(n *registry.Namespace) verdict {
	v := verdict{done: n.Status == registry.NamespaceStatusReady, status: string(n.Status)}
	switch n.Status {
	case registry.NamespaceStatusError:
		v.failed = "Scaleway says that it is in error: " + orText(n.StatusMessage, "it does not say why")
	case registry.NamespaceStatusLocked:
		v.failed = "Scaleway has locked it"
	}
	return v
}

func (c *Cloud) namespaceSpec(n *registry.Namespace) blueprint.Registry {
	text, _ := c.ownNamespace(n.Description)
	return blueprint.Registry{Public: n.IsPublic, Description: text}
}

func (r *reader) namespaces() {
	for _, n := range r.f.namespaces {
		if n.Status == registry.NamespaceStatusDeleting {
			continue
		}
		step := string(blueprint.KindRegistry) + "/" + n.Name
		if _, own := r.ownNamespace(n.Description); !own {
			r.inTheWay(step, r.namespaceStrange(n))
			continue
		}
		v := namespaceVerdict(n)
		r.add(Item{Kind: blueprint.KindRegistry, Step: step, Name: n.Name, CloudID: n.ID, Status: string(n.Status), Settled: v.done, Broken: v.failed,
			Created: moment(n.CreatedAt), Spec: r.namespaceSpec(n)})
	}
}

// removeNamespace takes the images along.
func (c *Cloud) removeNamespace(ctx context.Context, it Item) error {
	return c.gone(ctx, it, forFree,
		func() error {
			_, err := c.registry.DeleteNamespace(&registry.DeleteNamespaceRequest{Region: c.region, NamespaceID: it.CloudID}, scw.WithContext(ctx))
			return err
		},
		func(ctx context.Context) error { _, err := c.readNamespace(it.CloudID)(ctx); return err })
}
