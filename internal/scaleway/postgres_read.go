package scaleway

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// postgresFound is an instance with what is on it.
type postgresFound struct {
	*rdb.Instance
	// closed says that the instance did not show what is on it, as it does not
	// while it is busy with some changes.
	closed     bool
	databases  []*rdb.Database
	users      []*rdb.User
	privileges []*rdb.Privilege
}

func (c *Cloud) findPostgres(ctx context.Context, f *found, mark []string) error {
	if c.estate.Services.Postgres != nil {
		mark = nil // one that lost its mark matters
	}
	all, err := c.listPostgres(ctx, mark)
	if err != nil {
		return err
	}
	for _, i := range all {
		switch {
		case c.marked(i.Tags):
			f.databases = append(f.databases, &postgresFound{Instance: i})
		case i.Name == blueprint.PostgresName(c.estate.Name) && i.Status != rdb.InstanceStatusDeleting:
			f.namesakes = append(f.namesakes, i)
		}
	}
	return together(ctx, len(f.databases), func(ctx context.Context, i int) error { return c.lookInside(ctx, f.databases[i]) })
}

// lookInside reads what is on an instance, unless it has nothing yet or shows
// nothing at the moment.
func (c *Cloud) lookInside(ctx context.Context, i *postgresFound) error {
	switch i.Status {
	case rdb.InstanceStatusProvisioning, rdb.InstanceStatusDeleting:
		return nil
	}
	readings := []func(context.Context) error{
		into(&i.databases, func(ctx context.Context) ([]*rdb.Database, error) { return c.listDatabases(ctx, i.ID) }),
		into(&i.users, func(ctx context.Context) ([]*rdb.User, error) { return c.listDatabaseUsers(ctx, i.ID) }),
		into(&i.privileges, func(ctx context.Context) ([]*rdb.Privilege, error) { return c.listPrivileges(ctx, i.ID) }),
	}
	err := together(ctx, len(readings), func(ctx context.Context, n int) error { return readings[n](ctx) })
	if busy(err) || notFound(err) && i.Status != rdb.InstanceStatusReady {
		i.closed = true
		return nil
	}
	return err
}

// findPasswords reads what versions the secrets with passwords have. The
// passwords themselves are not read.
func (c *Cloud) findPasswords(ctx context.Context, f *found) error {
	var ids []string
	for _, s := range f.secrets {
		if c.marked(s.Tags) && c.isPassword(s) && s.DeletionRequestedAt == nil {
			ids = append(ids, s.ID)
		}
	}
	versions := make([][]*secret.SecretVersion, len(ids))
	err := together(ctx, len(ids), func(ctx context.Context, i int) (err error) {
		versions[i], err = c.listSecretVersions(ctx, ids[i])
		return err
	})
	f.passwords = map[string][]passwordVersion{}
	for i, id := range ids {
		f.passwords[id] = passwordVersions(versions[i])
	}
	return err
}

// isPassword says whether a secret of the estate is for a user's password: by the
// tag that says so, or without one by its place.
func (c *Cloud) isPassword(s *secret.Secret) bool {
	step := stepOf(s.Tags)
	if step == "" {
		kind, _ := c.placeOf(s)
		return kind == blueprint.KindPostgresSecret
	}
	return strings.HasPrefix(step, string(blueprint.KindPostgresSecret)+"/")
}

// postgres brings instances with what is on them, and the secrets of their users.
func (r *reader) postgres() {
	for _, i := range r.f.databases {
		r.instance(i)
	}
	// Scaleway would take a second one of the name, but an empty database beside
	// the one with the data is what nobody wants.
	for _, i := range r.f.namesakes {
		step := string(blueprint.KindPostgres) + "/" + i.Name
		r.inTheWay(step, fmt.Sprintf("the project has a database instance of that name (%s) without the estate's mark; if it is the estate's, give it the tags %s%s and %s%s, otherwise rename it",
			i.ID, blueprint.TagEstate, r.estate.Name, blueprint.TagStep, step))
	}
	for _, s := range r.f.secrets {
		if r.marked(s.Tags) && r.isPassword(s) && s.DeletionRequestedAt == nil {
			it := Item{Kind: blueprint.KindPostgresSecret, Step: stepOf(s.Tags), Name: s.Path + "/" + s.Name, CloudID: s.ID, Status: string(s.Status), Settled: true,
				Created: moment(s.CreatedAt), left: r.leftPassword(stepOf(s.Tags), s.ID), Spec: blueprint.PostgresSecret{Name: s.Name, Path: s.Path, Type: string(s.Type), Protected: s.Protected}}
			if s.Description != nil {
				spec := it.Spec.(blueprint.PostgresSecret)
				spec.Description = *s.Description
				it.Spec = spec
			}
			if s.Status == secret.SecretStatusLocked {
				it.Broken = "Scaleway has locked it"
			}
			r.add(it)
		}
	}
	// Users come last: each stands on its instance and its secret.
	for _, i := range r.f.databases {
		if step := stepOf(i.Tags); step != "" && i.Status != rdb.InstanceStatusDeleting {
			r.databaseUsers(i)
		}
	}
}

func (r *reader) instance(i *postgresFound) {
	step := stepOf(i.Tags)
	v := postgresVerdict(i.Instance)
	it := Item{Kind: blueprint.KindPostgres, Step: step, Name: i.Name, CloudID: i.ID, Status: string(i.Status), Settled: v.done, Broken: v.failed, Created: moment(i.CreatedAt)}
	network, outside := "", 0
	for _, n := range r.f.networks {
		if _, ours := r.refs[n.ID]; !ours {
			continue
		}
		if inside, _ := within(i.Instance, n.ID); inside != nil {
			network = n.ID
			if inside.IP != nil {
				it.at, _ = netip.AddrFromSlice(*inside.IP)
				it.at = it.at.Unmap()
			}
		}
	}
	_, others := within(i.Instance, network)
	outside = len(others)
	it.Spec = blueprint.Postgres{Name: i.Name, Network: r.refs.step(network), Engine: i.Engine, Type: i.NodeType, HighAvailability: highlyAvailable(i.Instance),
		Size: estate.Size(sizeOf(i.Instance)), IOPS: iopsOfPostgres(i.Instance), Backup: backupOf(i.Instance), Settings: settingsOf(i.Instance), PublicEndpoints: outside}
	r.add(it)
	if i.closed && step != "" {
		r.inv.closed = string(i.Status)
	}
	for _, d := range i.databases {
		if slices.Contains(r.fileDatabases(), d.Name) {
			r.add(Item{Kind: blueprint.KindPostgresDatabase, Step: string(blueprint.KindPostgresDatabase) + "/" + d.Name, Name: d.Name, CloudID: i.ID + "/databases/" + d.Name,
				Settled: true, Created: it.Created, Spec: blueprint.PostgresDatabase{Postgres: step}, on: i.ID})
		}
	}
	r.leftDatabases(i, step)
}

// databaseUsers brings the users that the file names or that bastide gave a
// password once. Others are somebody's own affair.
func (r *reader) databaseUsers(i *postgresFound) {
	if i.closed {
		return
	}
	tags := passwordTags(i.Tags)
	there := map[string]*rdb.User{}
	for _, u := range i.users {
		there[u.Name] = u
	}
	for _, name := range r.userNames(tags) {
		step := string(blueprint.KindPostgresUser) + "/" + name
		spec, state := blueprint.PostgresUser{}, passwordState{}
		if s := r.secretOf(name); s != nil {
			spec, state = halves(r.f.passwords[s.ID])
		}
		u := there[name]
		if u == nil && (!r.names(name) || tags[name] == 0 && spec.Secret == 0 && state == (passwordState{})) {
			continue // of one that the file does not name the tag may outlive it
		}
		spec.Postgres, spec.Privileges = r.refs.step(i.ID), map[string]string{}
		if u != nil {
			spec.Admin, spec.Database = u.IsAdmin, tags[name]
		}
		if spec.Address == privateAddress(i.Instance) {
			spec.Address = ""
		}
		for _, p := range i.privileges {
			if p.UserName == name && p.Permission != rdb.PermissionNone && slices.Contains(r.fileDatabases(), p.DatabaseName) {
				spec.Privileges[p.DatabaseName] = string(p.Permission)
			}
		}
		kept := []int{spec.Database} // by a secret that is brought back
		if s := r.secretOf(name); s != nil {
			kept = numbers(r.f.passwords[s.ID])
		} else if !r.comesBack(string(blueprint.KindPostgresSecret) + "/" + name) {
			kept = nil
		}
		r.add(Item{Kind: blueprint.KindPostgresUser, Step: step, Name: name, CloudID: i.ID + "/users/" + name, Settled: true, Created: moment(i.CreatedAt),
			Spec: spec, password: state, kept: kept, on: i.ID, left: r.leftUser(i, name)})
	}
}

// userNames are those of the file, and those that bastide gave a password.
func (r *reader) userNames(tags map[string]int) []string {
	names := map[string]bool{}
	for name := range tags {
		names[name] = true
	}
	if p := r.estate.Services.Postgres; p != nil {
		for _, u := range p.Users {
			names[u.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// secretOf is the secret with the password of a user.
func (r *reader) secretOf(user string) *secret.Secret {
	for _, s := range r.f.secrets {
		if _, read := r.f.passwords[s.ID]; read && stepOf(s.Tags) == string(blueprint.KindPostgresSecret)+"/"+user {
			return s
		}
	}
	return nil
}

// postgresBeside judges an instance beside the step that wants it. Settings that
// the file does not name are the provider's.
func (inv *Inventory) postgresBeside(o *plan.Observed, it Item, have, want blueprint.Postgres) {
	settings := map[string]string{}
	for name := range want.Settings {
		if value, set := have.Settings[name]; set {
			settings[name] = value
		}
	}
	have.Settings, have.FirstUser = settings, want.FirstUser
	o.Spec = have
	switch {
	case it.Status == string(rdb.InstanceStatusDiskFull) && have.Size < want.Size:
		o.Broken = ""
	case o.Broken == "" && have.HighAvailability && !want.HighAvailability:
		o.Broken = "it has a standby, the file wants none, and Scaleway takes none away from a live instance"
	}
	if !equalBut(have, want) {
		o.Cost = plan.Brief
	}
}

// equalBut says whether nothing differs that interrupts connections.
func equalBut(have, want blueprint.Postgres) bool {
	have.Name, have.Backup, want.Backup = want.Name, blueprint.BackupSchedule{}, blueprint.BackupSchedule{}
	return fmt.Sprint(have.Attributes()) == fmt.Sprint(want.Attributes())
}

func (inv *Inventory) userBeside(o *plan.Observed, it Item, have, want blueprint.PostgresUser) {
	have.Store = want.Store
	o.Spec = have
	o.Broken = judgePassword(it, have, want)
	if have.Database > 0 && (have.Database != want.Database || !slices.Contains(it.kept, want.Database)) {
		o.Cost = plan.Brief // whoever connects anew needs the new password
	}
}

// removePostgres deletes an instance with its databases and users as soon as it
// rests: while it is busy with a change it refuses.
func (c *Cloud) removePostgres(ctx context.Context, it Item) error {
	if _, err := until(ctx, c, waiting{what: "the database instance " + it.Name, to: "come to rest", limit: forPostgres}, c.readPostgres(it.CloudID),
		func(i *rdb.Instance) verdict {
			v := postgresVerdict(i)
			return verdict{done: v.done || v.failed != "" || i.Status == rdb.InstanceStatusDeleting, status: v.status}
		}); err != nil {
		return err
	}
	return c.gone(ctx, it, forPostgres,
		func() error {
			_, err := c.databases.DeleteInstance(&rdb.DeleteInstanceRequest{Region: c.region, InstanceID: it.CloudID}, scw.WithContext(ctx))
			return err
		},
		func(ctx context.Context) error { _, err := c.readPostgres(it.CloudID)(ctx); return err })
}
