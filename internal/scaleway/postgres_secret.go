package scaleway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

func (c *Cloud) listSecretVersions(ctx context.Context, id string) ([]*secret.SecretVersion, error) {
	number := func(v *secret.SecretVersion) string { return strconv.Itoa(int(v.Revision)) }
	return list(ctx, c, "versions of the secret "+id, number, func(ctx context.Context, n *int32, size *uint32) ([]*secret.SecretVersion, uint64, error) {
		r, err := c.secrets.ListSecretVersions(&secret.ListSecretVersionsRequest{Region: c.region, SecretID: id, Page: n, PageSize: size}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Versions, r.TotalCount, nil
	})
}

// applyPostgresSecret makes the place for a user's password.
func (c *Cloud) applyPostgresSecret(ctx context.Context, j job, want blueprint.PostgresSecret) (plan.Observed, error) {
	s, err := ensure(ctx, c, forVisible,
		c.findSecret(j.step),
		func(ctx context.Context) (*secret.Secret, error) {
			return c.secrets.CreateSecret(&secret.CreateSecretRequest{Region: c.region, ProjectID: c.project, Name: want.Name, Path: &want.Path, Tags: c.tags(j.step),
				Type: secret.SecretType(want.Type), Description: &want.Description}, scw.WithContext(ctx))
		})
	if err != nil {
		return plan.Observed{}, c.secretTaken(ctx, j.step, want.Path, want.Name, err)
	}
	if s.Name != want.Name || s.Path != want.Path || s.Description == nil || *s.Description != want.Description {
		if err := c.repeated(ctx, func(ctx context.Context) error {
			_, err := c.secrets.UpdateSecret(&secret.UpdateSecretRequest{Region: c.region, SecretID: s.ID, Name: &want.Name, Path: &want.Path, Description: &want.Description}, scw.WithContext(ctx))
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
	return j.done(s.ID, "", string(s.Status), want), nil
}

// bringBack restores the step's secret from those scheduled for deletion.
func (c *Cloud) bringBack(ctx context.Context, step blueprint.Step) (*secret.Secret, bool, error) {
	all, err := c.secretsOf(ctx, &secret.ListSecretsRequest{Tags: stepTag(step), ScheduledForDeletion: true})
	s, found, err := claimed(c, step, all, err, func(v *secret.Secret) []string { return v.Tags })
	if err != nil || !found {
		return nil, false, err
	}
	err = c.repeated(ctx, func(ctx context.Context) error {
		_, err := c.secrets.RestoreSecret(&secret.RestoreSecretRequest{Region: c.region, SecretID: s.ID}, scw.WithContext(ctx))
		return err
	})
	return s, true, err
}

// repeated makes a change that may be made twice, again while it fails in passing.
func (c *Cloud) repeated(ctx context.Context, change func(context.Context) error) error {
	for n := 1; ; n++ {
		err := change(ctx)
		if err == nil || !passing(err) || n == attempts {
			return err
		}
		if ended := sleep(ctx, c.retry.pause(n)); ended != nil {
			return orLast(ended, err)
		}
	}
}

// passwordVersion is one version of a secret, as far as it can be told without
// reading the password.
type passwordVersion struct {
	revision uint32
	enabled  bool
	ours     bool // its description is bastide's
	password int  // version of the password
	address  string
	login    string
	live     bool // the database has it; otherwise it is on its way there
}

// The words of a version's description.
const (
	markPassword = "bastide:password="
	markAddress  = "bastide:address="
	markLogin    = "bastide:database="
	markLive     = "bastide:state=live"
	markPending  = "bastide:state=pending"
)

func (v passwordVersion) description() string {
	state := markPending
	if v.live {
		state = markLive
	}
	return fmt.Sprintf("%s%d %s%s %s%s %s", markPassword, v.password, markAddress, v.address, markLogin, v.login, state)
}

// passwordVersions reads versions that still can be read, oldest first.
func passwordVersions(all []*secret.SecretVersion) []passwordVersion {
	var out []passwordVersion
	for _, v := range all {
		if v.Status != secret.SecretVersionStatusEnabled && v.Status != secret.SecretVersionStatusDisabled {
			continue
		}
		p := passwordVersion{revision: v.Revision, enabled: v.Status == secret.SecretVersionStatusEnabled}
		if v.Description != nil {
			p.read(*v.Description)
		}
		out = append(out, p)
	}
	sortVersions(out)
	return out
}

func (v *passwordVersion) read(description string) {
	state := false
	for _, word := range strings.Fields(description) {
		if text, ok := strings.CutPrefix(word, markPassword); ok {
			v.password, _ = strconv.Atoi(text)
		} else if text, ok := strings.CutPrefix(word, markAddress); ok {
			v.address = text
		} else if text, ok := strings.CutPrefix(word, markLogin); ok {
			v.login = text
		} else if word == markLive || word == markPending {
			v.live, state = word == markLive, true
		}
	}
	v.ours = state && v.password > 0
}

func sortVersions(all []passwordVersion) {
	slices.SortFunc(all, func(a, b passwordVersion) int { return cmp.Compare(a.revision, b.revision) })
}

// newest finds the last of bastide's versions of a password for which a
// condition holds.
func newest(all []passwordVersion, holds func(passwordVersion) bool) (passwordVersion, bool) {
	for _, v := range slices.Backward(all) {
		if v.ours && holds(v) {
			return v, true
		}
	}
	return passwordVersion{}, false
}

// last is the newest version, whoever wrote it.
func last(all []passwordVersion) (passwordVersion, bool) {
	if len(all) == 0 {
		return passwordVersion{}, false
	}
	return all[len(all)-1], true
}

// says whether a version of bastide's is of a password and leads to the database.
func (v passwordVersion) says(want passwordVersion) bool {
	return v.ours && v.password == want.password && v.address == want.address && v.login == want.login
}

// numbers are the versions of a password that can be read back: one that is not
// among them was lost, and another password takes its place.
func numbers(all []passwordVersion) []int {
	var out []int
	for _, v := range all {
		if v.ours {
			out = append(out, v.password)
		}
	}
	return out
}
