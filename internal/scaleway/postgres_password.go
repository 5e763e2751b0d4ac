package scaleway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"bastide/internal/outcome"
	"bastide/internal/vault"

	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// A password has two halves: one in the database, one in Secret Manager. They
// are moved in this order, so that a run that dies anywhere is finished by the
// next one and no password is in the database alone:
//
//  1. the new password is written to the secret as a version that says pending,
//     and disabled if there is an enabled one before it;
//  2. the database gets it;
//  3. the version is enabled, so that applications read it;
//  4. the instance's tag for the user says the new number;
//  5. the version says live, older ones are disabled, the secret is read until it
//     shows that, and those before the last one that was live are deleted.
//
// A pending version is never made twice: a run that finds one reads it back and
// goes on with it.
//
// An application that reads the newest enabled version gets one that the database
// refuses in two windows. A user has one password, so one window there must be;
// and Scaleway makes every version enabled, with nothing in the call to prevent it
// (disable_previous takes the old one away, which is worse). Within 1, from one
// call to the next, it gets the new password too early. From 2 to 3, from one call
// to the next, it gets the old one too late. A run that dies in a window leaves it
// open until the next up, as does one that has to read a disabled version back:
// it enables it for that long, with the effect of 1.
//
// The database first and the secret after it would have the second window alone.
// But who dies between them has locked the application out with a password that
// nobody knows, which weighs more than a moment. The tag comes after the enabling,
// because an instance takes its time for a tag: what the version and the tag say
// is true in either order, and a run that dies between gives the database the
// password that it has once more.

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

// version is the newest of the secret if it has the wanted password and address,
// or one that is written: with the password that an older version has for the same
// number, or with a new one. An older one is never taken up again, whatever it
// says: an application reads the newest, and would go on reading what came after.
func (p *password) version(ctx context.Context, want passwordVersion) (passwordVersion, error) {
	all, err := p.versions(ctx)
	if err != nil {
		return want, err
	}
	if v, ok := last(all); ok && v.says(want) {
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
			v, ok := last(all)
			return &v, ok && v.says(want), err
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
// long, and applications that read the newest enabled one get it meanwhile.
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

// publish makes the version that the database has the one that applications read.
func (p *password) publish(ctx context.Context, v passwordVersion) (passwordVersion, error) {
	if v.enabled {
		return v, nil
	}
	err := p.enable(ctx, v.revision, true)
	v.enabled = err == nil
	return v, err
}

// finish says that the version is live, disables those of bastide before it, and
// reads the secret until it shows that: what is left enabled, or what somebody
// writes meanwhile, is what applications read.
func (p *password) finish(ctx context.Context, v passwordVersion) error {
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
	all, err := until(ctx, p.c, waiting{what: "the secret with the password of " + p.job.step.Name, to: fmt.Sprintf("lead applications to its version %d", v.revision), limit: forVisible},
		func(ctx context.Context) ([]passwordVersion, error) {
			all, err := p.versions(ctx)
			for _, old := range all {
				if err == nil && old.ours && old.enabled && old.revision < v.revision {
					err = p.enable(ctx, old.revision, false)
				}
			}
			return all, err
		},
		func(all []passwordVersion) verdict { return leadsTo(all, v) })
	if err != nil {
		return err
	}
	return p.discard(ctx, all, v)
}

// discard deletes the versions that are of no more use: those of bastide before
// the live one, except the one that was live before it. Each version is billed,
// disabled or not.
func (p *password) discard(ctx context.Context, all []passwordVersion, live passwordVersion) error {
	before, _ := newest(all, func(v passwordVersion) bool { return v.live && v.revision < live.revision })
	for _, old := range all {
		if !old.ours || old.revision >= live.revision || old.revision == before.revision {
			continue
		}
		if err := p.c.repeated(ctx, func(ctx context.Context) error {
			err := p.c.secrets.DeleteSecretVersion(&secret.DeleteSecretVersionRequest{Region: p.c.region, SecretID: p.store, Revision: revision(old.revision)}, scw.WithContext(ctx))
			if notFound(err) {
				return nil // it is on its way out
			}
			return err
		}); err != nil {
			return err
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
