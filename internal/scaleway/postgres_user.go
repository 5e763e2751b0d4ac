package scaleway

import (
	"context"
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
	"github.com/scaleway/scaleway-sdk-go/scw"
)

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
	// One that is live and disabled was disabled by somebody, who may have had it
	// replaced: the database gets it once more.
	known := v.live && v.enabled && passwordTags(i.Tags)[j.step.Name] == want.Database
	reveal := func(ctx context.Context) (vault.Secret, error) { return p.reveal(ctx, v) }
	if err := c.userAs(ctx, j, instance, want.Admin, known, reveal); err != nil {
		return plan.Observed{}, err
	}
	if v, err = p.publish(ctx, v); err != nil {
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

// leadsTo judges whether the newest version, and the newest that is enabled, is
// the one that the database has, with no other of bastide's enabled.
func leadsTo(all []passwordVersion, v passwordVersion) verdict {
	spec, state := halves(all)
	n, _ := last(all)
	switch {
	case n.revision > v.revision:
		return verdict{failed: fmt.Sprintf("somebody has written version %d meanwhile", n.revision)}
	case n != v || spec.Doubt != "" || state.newer > 0:
		return verdict{status: fmt.Sprintf("at version %d (%s)", n.revision, orText(spec.Doubt, "not live"))}
	}
	return verdict{done: true}
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
