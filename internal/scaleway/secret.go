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
		return plan.Observed{}, c.secretTaken(ctx, j.step, want.Path, want.Name, err)
	}
	if s.Name != want.Name || s.Path != want.Path || !sameTags(userTags(s.Tags), want.Tags) {
		tags := c.serviceTags(j.step, want.Tags)
		if err := c.steady(ctx, forFree, func(ctx context.Context) error {
			_, err := c.secrets.UpdateSecret(&secret.UpdateSecretRequest{Region: c.region, SecretID: s.ID, Name: &want.Name, Path: &want.Path, Tags: &tags}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return plan.Observed{}, c.secretTaken(ctx, j.step, want.Path, want.Name, err)
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

// secretTaken explains a refused creation or move by the secret that has the name,
// one without the mark or one that waits for its end: Scaleway keeps a deleted
// secret for seven days.
func (c *Cloud) secretTaken(ctx context.Context, step blueprint.Step, path, name string, cause error) error {
	var invalid *scw.InvalidArgumentsError
	if !errors.As(cause, &invalid) && !nameTaken(cause) {
		return cause
	}
	what := fmt.Sprintf("the %s %s could not be made", step.Kind, step.Name)
	for _, leaving := range []bool{false, true} {
		all, err := c.secretsOf(ctx, &secret.ListSecretsRequest{Path: &path, ScheduledForDeletion: leaving})
		if err != nil {
			return cause
		}
		for _, s := range all {
			if s.Name != name || s.Path != path || !leaving && c.marked(s.Tags) && stepOf(s.Tags) == step.ID {
				continue // the step's own, which was made after all
			}
			if !leaving {
				return outcome.Fail(what, c.secretStrange(s), elsewhere(step.Kind)+", or hand it over").Because(cause)
			}
			return outcome.Fail(what, deletedSecret(s), keptName(step.Kind)).Because(cause)
		}
	}
	return cause
}

// elsewhere is what to do about a name that a secret of others has.
func elsewhere(k blueprint.Kind) string {
	if k == blueprint.KindPostgresSecret {
		return "move that secret to another path, or name the user otherwise in services.postgres.users"
	}
	return "choose another name in services.secrets"
}

// keptName is what to do about a name that a deleted secret of others keeps.
func keptName(k blueprint.Kind) string {
	if k == blueprint.KindPostgresSecret {
		return "restore that secret and move it to another path, name the user otherwise in services.postgres.users, or wait until it is gone"
	}
	return elsewhere(k) + ", or wait until it is gone"
}

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
		kind, step := r.placeOf(s)
		own := r.marked(s.Tags) && stepOf(s.Tags) == step
		if kind == blueprint.KindPostgresSecret {
			wanted[step] = string(secret.SecretTypeDatabaseCredentials)
		}
		switch is := wanted[step]; {
		case !own:
			r.inTheWay(step, deletedSecret(s)+"; "+keptName(kind))
		case is != "" && is != string(s.Type):
			r.inTheWay(step, fmt.Sprintf("%s; it is of the type %s, which cannot be changed; %s", deletedSecret(s), s.Type, keptName(kind)))
		}
	}
}

// secretStrange says of a secret in the place of a step why it is not the step's,
// and how it becomes that.
func (c *Cloud) secretStrange(s *secret.Secret) string {
	_, step := c.placeOf(s)
	if c.marked(s.Tags) {
		return fmt.Sprintf("the secret there (%s) has the tag %s%s, wanted %s%s; put it right", s.ID, blueprint.TagStep, stepOf(s.Tags), blueprint.TagStep, step)
	}
	return fmt.Sprintf("the project has a secret of that name (%s) without the estate's mark; to hand it over, give it the tags %s%s and %s%s", s.ID,
		blueprint.TagEstate, c.estate.Name, blueprint.TagStep, step)
}

// placeOf is the step that a secret's path and name stand for: no two secrets of a
// project have the same. Passwords of the database have a folder of their own.
func (c *Cloud) placeOf(s *secret.Secret) (blueprint.Kind, string) {
	kind, name := blueprint.KindSecret, strings.TrimPrefix(path.Join(s.Path, s.Name), "/")
	if path.Join("/", s.Path) == blueprint.PasswordsPath(c.estate.Name) {
		kind, name = blueprint.KindPostgresSecret, s.Name
	}
	return kind, string(kind) + "/" + name
}

func (r *reader) secrets() {
	r.deletedSecrets()
	for _, s := range r.f.secrets {
		if s.DeletionRequestedAt != nil {
			continue
		}
		step := stepOf(s.Tags)
		place, there := r.placeOf(s)
		claimed, _, _ := strings.Cut(step, "/")
		if !r.marked(s.Tags) || step != "" && claimed != string(place) {
			r.inTheWay(there, r.secretStrange(s))
		}
		if !r.marked(s.Tags) || r.isPassword(s) || step != "" && claimed != string(blueprint.KindSecret) {
			continue
		}
		it := Item{Kind: blueprint.KindSecret, Step: step, Name: strings.TrimPrefix(path.Join(s.Path, s.Name), "/"), CloudID: s.ID, Settled: true,
			Created: moment(s.CreatedAt), Spec: blueprint.Secret{Name: s.Name, Path: s.Path, Type: string(s.Type), Tags: userTags(s.Tags), Protected: s.Protected}}
		if s.Status == secret.SecretStatusLocked {
			it.Status, it.Broken = string(s.Status), "Scaleway has locked it"
		}
		r.add(it)
	}
}

// comesBack says whether a step's own secret is scheduled for deletion: up brings
// it back with its content.
func (r *reader) comesBack(step string) bool {
	return slices.ContainsFunc(r.f.deleted, func(s *secret.Secret) bool { return r.marked(s.Tags) && stepOf(s.Tags) == step })
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
