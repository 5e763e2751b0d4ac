package scaleway

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// listSecrets lists the project's secrets, without what is in them: that is
// another call, which nothing here makes.
func (c *Cloud) listSecrets(ctx context.Context, tags []string) ([]*secret.Secret, error) {
	return c.secretsOf(ctx, &secret.ListSecretsRequest{Tags: tags})
}

func (c *Cloud) secretsOf(ctx context.Context, req *secret.ListSecretsRequest) ([]*secret.Secret, error) {
	return list(ctx, c, "secrets", func(v *secret.Secret) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*secret.Secret, uint64, error) {
		page := *req
		page.Region, page.ProjectID, page.Page, page.PageSize, page.OrderBy = c.region, &c.project, n, size, secret.ListSecretsRequestOrderByCreatedAtAsc
		r, err := c.secrets.ListSecrets(&page, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Secrets, r.TotalCount, nil
	})
}

// findSecret finds a step's secret. One that is scheduled for deletion keeps its
// name for a week, so it is brought back, with its content.
func (c *Cloud) findSecret(step blueprint.Step) func(context.Context) (*secret.Secret, bool, error) {
	return func(ctx context.Context) (*secret.Secret, bool, error) {
		all, err := c.listSecrets(ctx, stepTag(step))
		if s, found, err := claimed(c, step, all, err, func(v *secret.Secret) []string { return v.Tags }); err != nil || found {
			return s, found, err
		}
		return c.bringBack(ctx, step)
	}
}

// applySecret makes a container and keeps its tags and protection. Its content
// is never touched.
func (c *Cloud) applySecret(ctx context.Context, j job, want blueprint.Secret) (plan.Observed, error) {
	s, err := ensure(ctx, c, forFree,
		c.findSecret(j.step),
		func(ctx context.Context) (*secret.Secret, error) {
			return c.secrets.CreateSecret(&secret.CreateSecretRequest{Region: c.region, ProjectID: c.project, Name: want.Name, Path: &want.Path,
				Type: secret.SecretType(want.Type), Tags: c.serviceTags(j.step, want.Tags), Protected: want.Protected}, scw.WithContext(ctx))
		})
	if err != nil {
		return plan.Observed{}, c.secretTaken(ctx, j.step.Name, want, err)
	}
	if s.Name != want.Name || s.Path != want.Path || !sameTags(userTags(s.Tags), want.Tags) {
		tags := c.serviceTags(j.step, want.Tags)
		if err := c.steady(ctx, forFree, func(ctx context.Context) error {
			_, err := c.secrets.UpdateSecret(&secret.UpdateSecretRequest{Region: c.region, SecretID: s.ID, Name: &want.Name, Path: &want.Path, Tags: &tags}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return plan.Observed{}, err
		}
	}
	if s.Protected != want.Protected {
		if err := c.protect(ctx, s.ID, want.Protected); err != nil {
			return plan.Observed{}, err
		}
	}
	return j.done(s.ID, "", present, want), nil
}

// protect is asked again when the answer is lost: it may be asked twice, although
// it is a POST.
func (c *Cloud) protect(ctx context.Context, id string, on bool) error {
	return c.steady(ctx, forFree, func(ctx context.Context) error {
		return c.repeated(ctx, func(ctx context.Context) (err error) {
			if on {
				_, err = c.secrets.ProtectSecret(&secret.ProtectSecretRequest{Region: c.region, SecretID: id}, scw.WithContext(ctx))
			} else {
				_, err = c.secrets.UnprotectSecret(&secret.UnprotectSecretRequest{Region: c.region, SecretID: id}, scw.WithContext(ctx))
			}
			return err
		})
	})
}

// secretTaken explains a refused creation by the secret that has the name, one
// without the mark or one that waits for its end: Scaleway keeps a deleted
// secret for seven days.
func (c *Cloud) secretTaken(ctx context.Context, name string, want blueprint.Secret, cause error) error {
	var invalid *scw.InvalidArgumentsError
	if !errors.As(cause, &invalid) && !nameTaken(cause) {
		return cause
	}
	what := fmt.Sprintf("the secret %s could not be made", name)
	for _, leaving := range []bool{false, true} {
		all, err := c.secretsOf(ctx, &secret.ListSecretsRequest{Path: &want.Path, ScheduledForDeletion: leaving})
		if err != nil {
			return cause
		}
		for _, s := range all {
			if s.Name != want.Name || s.Path != want.Path {
				continue
			}
			if !leaving {
				return outcome.Fail(what, c.secretStrange(s), "choose another name in services.secrets, or hand it over").Because(cause)
			}
			return outcome.Fail(what, deletedSecret(s), keptName).Because(cause)
		}
	}
	return cause
}

// keptName is what to do about a name that a deleted secret of others keeps.
const keptName = "choose another name in services.secrets, or wait until it is gone"

// deletedSecret says why the name of a secret that is scheduled for deletion is
// not free.
func deletedSecret(s *secret.Secret) string {
	if s.DeletionRequestedAt == nil {
		return fmt.Sprintf("a secret of that name (%s) is scheduled for deletion and keeps the name until it is gone, after seven days", s.ID)
	}
	return fmt.Sprintf("a secret of that name (%s) was deleted on %s and keeps the name for seven days", s.ID, s.DeletionRequestedAt.UTC().Format(time.DateOnly))
}

// deletedSecrets refuses steps whose name a deleted secret keeps, unless it is
// the step's own: that one is brought back.
func (r *reader) deletedSecrets() {
	wanted := map[string]string{}
	for _, s := range r.estate.Services.Secrets {
		wanted[string(blueprint.KindSecret)+"/"+s.Name] = s.Type
	}
	for _, s := range r.f.deleted {
		step := secretStep(s)
		own := r.marked(s.Tags) && stepOf(s.Tags) == step
		switch kind := wanted[step]; {
		case !own:
			r.inTheWay(step, deletedSecret(s)+"; "+keptName)
		case kind != "" && kind != string(s.Type):
			r.inTheWay(step, fmt.Sprintf("%s; it is of the type %s, which cannot be changed; %s", deletedSecret(s), s.Type, keptName))
		}
	}
}

func (c *Cloud) secretStrange(s *secret.Secret) string {
	return fmt.Sprintf("the project has a secret of that name (%s) without the estate's mark; to hand it over, give it the tags %s%s and %s%s", s.ID,
		blueprint.TagEstate, c.estate.Name, blueprint.TagStep, secretStep(s))
}

// secretStep is the step that a secret's place stands for.
func secretStep(s *secret.Secret) string {
	return string(blueprint.KindSecret) + "/" + strings.TrimPrefix(path.Join(s.Path, s.Name), "/")
}

func (r *reader) secrets() {
	r.deletedSecrets()
	for _, s := range r.f.secrets {
		step := stepOf(s.Tags)
		kind, _, _ := strings.Cut(step, "/")
		switch {
		case s.DeletionRequestedAt != nil:
		case !r.marked(s.Tags):
			r.inTheWay(secretStep(s), r.secretStrange(s))
		case step == "" || kind == string(blueprint.KindSecret):
			it := Item{Kind: blueprint.KindSecret, Step: step, Name: strings.TrimPrefix(path.Join(s.Path, s.Name), "/"), CloudID: s.ID, Settled: true,
				Created: moment(s.CreatedAt), Spec: blueprint.Secret{Name: s.Name, Path: s.Path, Type: string(s.Type), Tags: userTags(s.Tags), Protected: s.Protected}}
			if s.Status == secret.SecretStatusLocked {
				it.Status, it.Broken = string(s.Status), "Scaleway has locked it"
			}
			r.add(it)
		}
	}
}

// removeSecret schedules the deletion, which Scaleway carries out seven days
// later. A secret that says when its deletion was asked for counts as gone.
func (c *Cloud) removeSecret(ctx context.Context, it Item) error {
	if how, ok := protected(it); ok {
		return outcome.Fail(fmt.Sprintf("the secret %s is not deleted", it.Name), "it is protected", fmt.Sprintf("take the protection away (%s), then run the command again", how))
	}
	return c.gone(ctx, it, forFree,
		func() error {
			return c.secrets.DeleteSecret(&secret.DeleteSecretRequest{Region: c.region, SecretID: it.CloudID}, scw.WithContext(ctx))
		},
		func(ctx context.Context) error {
			s, err := c.secrets.GetSecret(&secret.GetSecretRequest{Region: c.region, SecretID: it.CloudID}, scw.WithContext(ctx))
			if err == nil && s.DeletionRequestedAt != nil {
				return &scw.ResourceNotFoundError{Resource: "secret", ResourceID: it.CloudID}
			}
			return err
		})
}

func sameTags(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
