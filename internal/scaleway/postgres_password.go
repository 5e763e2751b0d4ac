package scaleway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/vault"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// A password has two halves: one in the database, one in Secret Manager. They
// are moved in this order, so that a run that dies anywhere is finished by the
// next one, and an application that reads the newest enabled version has a
// password that works at nearly every moment:
//
//  1. the new password is written to the secret as a version that says pending,
//     and disabled if there is an enabled one before it;
//  2. the database gets it;
//  3. the instance's tag for the user says the new number;
//  4. the version is enabled and says live, and older ones are disabled.
//
// A pending version is never made twice: a run that finds one reads it back and
// goes on with it. Only between 2 and 4 does an application that connects anew
// have to try again.

// tagPassword is the tag of an instance that says which version of a user's
// password the database has: bastide:password:USER=N.
const tagPassword = "bastide:password:"

// passwordTags reads which passwords the database has, by user.
func passwordTags(tags []string) map[string]int {
	out := map[string]int{}
	for _, t := range tags {
		text, ok := strings.CutPrefix(t, tagPassword)
		if user, number, cut := strings.Cut(text, "="); ok && cut {
			if n, err := strconv.Atoi(number); err == nil && n > 0 {
				out[user] = n
			}
		}
	}
	return out
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

// applyPostgresUser brings a user with its password, in both halves, and its
// privileges to what is wanted.
func (c *Cloud) applyPostgresUser(ctx context.Context, j job, want blueprint.PostgresUser) (plan.Observed, error) {
	instance, err := j.id(want.Postgres)
	if err != nil {
		return plan.Observed{}, err
	}
	store, err := j.id(want.Store)
	if err != nil {
		return plan.Observed{}, err
	}
	release, err := c.alone(ctx)
	if err != nil {
		return plan.Observed{}, err
	}
	defer release()
	i, err := c.postgresReady(ctx, "the database instance "+instance, instance)
	if err != nil {
		return plan.Observed{}, err
	}
	wanted := passwordVersion{ours: true, password: want.Database, login: want.Login, address: privateAddress(i)}
	if wanted.address == "" {
		return plan.Observed{}, outcome.Fail("the user "+j.step.Name+" was not made", "the database instance has no endpoint in the private network", again)
	}
	p := &password{c: c, job: j, store: store}
	v, err := p.version(ctx, wanted)
	if err != nil {
		return plan.Observed{}, err
	}
	known := v.live && passwordTags(i.Tags)[j.step.Name] == want.Database
	reveal := func(ctx context.Context) (vault.Secret, error) { return p.reveal(ctx, v) }
	if err := c.userAs(ctx, j, instance, want.Admin, known, reveal); err != nil {
		return plan.Observed{}, err
	}
	if err := c.noteInDatabase(ctx, j, instance, want.Database); err != nil {
		return plan.Observed{}, err
	}
	if err := p.finish(ctx, v); err != nil {
		return plan.Observed{}, err
	}
	if err := c.privilegesAs(ctx, j, instance, want.Privileges); err != nil {
		return plan.Observed{}, err
	}
	return j.done(instance+"/users/"+j.step.Name, "", present, want), nil
}

// privateAddress is the host and port of the instance's endpoint in a private
// network; empty when it has none.
func privateAddress(i *rdb.Instance) string {
	for _, e := range i.Endpoints {
		if e != nil && e.PrivateNetwork != nil && e.IP != nil {
			return net.JoinHostPort(e.IP.String(), strconv.Itoa(int(e.Port)))
		}
	}
	return ""
}

// noteInDatabase makes the instance's tags say which version of the password the
// database has. The other tags are kept as they are read, so the next user's note
// has to wait until this one shows.
func (c *Cloud) noteInDatabase(ctx context.Context, j job, instance string, version int) error {
	note := fmt.Sprintf("%s%s=%d", tagPassword, j.step.Name, version)
	_, err := c.alter(ctx, "the database instance "+instance, instance, alteration{"take the tag " + note,
		func(i *rdb.Instance) bool { return has(i.Tags, note) },
		func(ctx context.Context, i *rdb.Instance) error {
			tags := slices.DeleteFunc(slices.Clone(i.Tags), func(t string) bool { return strings.HasPrefix(t, tagPassword+j.step.Name+"=") })
			tags = append(tags, note)
			_, err := c.databases.UpdateInstance(&rdb.UpdateInstanceRequest{Region: c.region, InstanceID: instance, Tags: &tags}, scw.WithContext(ctx))
			return err
		}, false})
	return err
}

// password is the half in Secret Manager at work.
type password struct {
	c     *Cloud
	job   job
	store string       // ID of the secret
	value vault.Secret // once it is known
}

func (p *password) versions(ctx context.Context) ([]passwordVersion, error) {
	all, err := p.c.listSecretVersions(ctx, p.store)
	return passwordVersions(all), err
}

// version finds the version of the secret with the wanted password and address,
// or writes it: with the password that an older version has for the same number,
// or with a new one.
func (p *password) version(ctx context.Context, want passwordVersion) (passwordVersion, error) {
	all, err := p.versions(ctx)
	if err != nil {
		return want, err
	}
	same := func(v passwordVersion) bool {
		return v.password == want.password && v.address == want.address && v.login == want.login
	}
	if v, ok := newest(all, same); ok {
		return v, nil
	}
	if v, ok := newest(all, func(v passwordVersion) bool { return v.password == want.password }); ok {
		if _, err := p.reveal(ctx, v); err != nil {
			return want, err
		}
	} else {
		p.learn(vault.NewPassword())
	}
	made := false
	v, err := ensure(ctx, p.c, forVisible,
		func(ctx context.Context) (*passwordVersion, bool, error) {
			all, err := p.versions(ctx)
			v, ok := newest(all, same)
			return &v, ok, err
		},
		func(ctx context.Context) (*passwordVersion, error) {
			v, err := p.write(ctx, want)
			made = err == nil
			return v, err
		})
	if err != nil {
		return want, err
	}
	if !made { // the answer was lost: what is there is read back
		p.value = vault.Secret{}
		if _, err := p.reveal(ctx, *v); err != nil {
			return want, err
		}
	}
	if slices.ContainsFunc(all, func(v passwordVersion) bool { return v.enabled }) {
		if err := p.enable(ctx, v.revision, false); err != nil {
			return want, err
		}
		v.enabled = false
	}
	return *v, nil
}

// write adds a version that says pending.
func (p *password) write(ctx context.Context, want passwordVersion) (*passwordVersion, error) {
	host, port, err := net.SplitHostPort(want.address)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(secret.DatabaseCredentials{Engine: "postgres", Username: p.job.step.Name, Password: p.value.Reveal(), Host: host, Port: port, Dbname: want.login})
	if err != nil {
		return nil, err
	}
	want.live = false
	v, err := p.c.secrets.CreateSecretVersion(&secret.CreateSecretVersionRequest{Region: p.c.region, SecretID: p.store, Data: data,
		Description: scw.StringPtr(want.description())}, scw.WithContext(ctx))
	if err != nil {
		return nil, withhold(err, p.value)
	}
	if v.Revision == 0 {
		return nil, &lostError{method: "the", path: "creation", err: errors.New("the answer names no revision")}
	}
	want.revision, want.enabled = v.Revision, true
	return &want, nil
}

// reveal reads a version's password. One that is disabled is enabled for that
// long.
func (p *password) reveal(ctx context.Context, v passwordVersion) (vault.Secret, error) {
	if !p.value.Empty() {
		return p.value, nil
	}
	if !v.enabled {
		if err := p.enable(ctx, v.revision, true); err != nil {
			return p.value, err
		}
	}
	r, err := p.c.secrets.AccessSecretVersion(&secret.AccessSecretVersionRequest{Region: p.c.region, SecretID: p.store, Revision: revision(v.revision)}, scw.WithContext(ctx))
	if err != nil {
		return p.value, err
	}
	var said secret.DatabaseCredentials
	if json.Unmarshal(r.Data, &said) != nil || said.Password == "" {
		return p.value, outcome.Fail(fmt.Sprintf("the password of %s could not be read back", p.job.step.Name),
			fmt.Sprintf("version %d of its secret %s has no password in it", v.revision, p.store), "delete that version, then run the command again; it makes another password")
	}
	p.learn(vault.NewSecret(said.Password))
	if !v.enabled {
		if err := p.enable(ctx, v.revision, false); err != nil {
			return p.value, err
		}
	}
	return p.value, nil
}

// learn keeps the password for this step and tells it to what redacts output.
func (p *password) learn(s vault.Secret) {
	p.value = s
	if p.c.learnt != nil {
		p.c.learnt(s.Reveal())
	}
}

func revision(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func (p *password) enable(ctx context.Context, n uint32, on bool) error {
	return p.c.repeated(ctx, func(ctx context.Context) (err error) {
		if on {
			_, err = p.c.secrets.EnableSecretVersion(&secret.EnableSecretVersionRequest{Region: p.c.region, SecretID: p.store, Revision: revision(n)}, scw.WithContext(ctx))
		} else {
			_, err = p.c.secrets.DisableSecretVersion(&secret.DisableSecretVersionRequest{Region: p.c.region, SecretID: p.store, Revision: revision(n)}, scw.WithContext(ctx))
		}
		return err
	})
}

// finish makes the version that the database has the one that applications read,
// and disables those of bastide before it.
func (p *password) finish(ctx context.Context, v passwordVersion) error {
	if !v.enabled {
		if err := p.enable(ctx, v.revision, true); err != nil {
			return err
		}
	}
	if !v.live {
		v.live = true
		if err := p.c.repeated(ctx, func(ctx context.Context) error {
			_, err := p.c.secrets.UpdateSecretVersion(&secret.UpdateSecretVersionRequest{Region: p.c.region, SecretID: p.store, Revision: revision(v.revision),
				Description: scw.StringPtr(v.description())}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return err
		}
	}
	all, err := p.versions(ctx)
	if err != nil {
		return err
	}
	for _, old := range all {
		if old.ours && old.enabled && old.revision < v.revision {
			if err := p.enable(ctx, old.revision, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// withhold keeps an error from telling a secret that the call had sent: no
// answer is trusted not to repeat it.
func withhold(err error, s vault.Secret) error {
	if err == nil || s.Empty() || !strings.Contains(err.Error(), s.Reveal()) {
		return err
	}
	return errors.New("Scaleway refuses the call, with words that hold a secret and are not shown")
}

// passwordState is what an inventory can tell of both halves of a user's
// password beside what the plan compares.
type passwordState struct {
	pending int    // version that is on its way to the database
	newer   uint32 // revision of a version after bastide's last that somebody else made
}

// halves lays the secret's versions beside the database's tag.
func halves(all []passwordVersion) (spec blueprint.PostgresUser, state passwordState) {
	live, _ := newest(all, func(v passwordVersion) bool { return v.live })
	spec.Secret, spec.Login, spec.Address = live.password, live.login, live.address
	older := func(v passwordVersion) bool { return v.enabled && v.revision < live.revision }
	if _, left := newest(all, older); left {
		spec.Doubt = "an older one enabled"
	}
	if live.revision > 0 && !live.enabled {
		spec.Doubt = "disabled"
	}
	last := live.revision
	for _, v := range all {
		switch {
		case v.ours && !v.live && v.revision > live.revision:
			state.pending = max(state.pending, v.password)
			last = max(last, v.revision)
		case !v.ours && v.revision > live.revision:
			state.newer = v.revision
		}
	}
	if state.newer < last {
		state.newer = 0
	}
	if state.pending > 0 {
		spec.Doubt = fmt.Sprintf("%d unfinished", state.pending)
	}
	return spec, state
}

// judgePassword says why a user's password cannot become what the file asks.
func judgePassword(it Item, have, want blueprint.PostgresUser) string {
	p := it.password
	switch highest := max(have.Database, have.Secret, p.pending); {
	case highest > want.Database:
		return fmt.Sprintf("passwordVersion is %d in the file, and %d was begun already: a password is not gone back to, so write %d or more", want.Database, highest, highest)
	case p.newer > 0 && have.Secret == want.Secret && p.pending == 0:
		return fmt.Sprintf("somebody has written version %d into its secret after bastide's: delete that version, or raise passwordVersion to replace it", p.newer)
	}
	return ""
}
