package scaleway

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"bastide/internal/blueprint"
	"bastide/internal/plan"
	"bastide/internal/vault"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

func (c *Cloud) listDatabases(ctx context.Context, instance string) ([]*rdb.Database, error) {
	return list(ctx, c, "databases of the instance "+instance, func(v *rdb.Database) string { return v.Name }, func(ctx context.Context, n *int32, size *uint32) ([]*rdb.Database, uint64, error) {
		r, err := c.databases.ListDatabases(&rdb.ListDatabasesRequest{Region: c.region, InstanceID: instance, Page: n, PageSize: size}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Databases, uint64(r.TotalCount), nil
	})
}

func (c *Cloud) listDatabaseUsers(ctx context.Context, instance string) ([]*rdb.User, error) {
	return list(ctx, c, "users of the database instance "+instance, func(v *rdb.User) string { return v.Name }, func(ctx context.Context, n *int32, size *uint32) ([]*rdb.User, uint64, error) {
		r, err := c.databases.ListUsers(&rdb.ListUsersRequest{Region: c.region, InstanceID: instance, Page: n, PageSize: size}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Users, uint64(r.TotalCount), nil
	})
}

func (c *Cloud) listPrivileges(ctx context.Context, instance string) ([]*rdb.Privilege, error) {
	id := func(p *rdb.Privilege) string { return p.UserName + " in " + p.DatabaseName }
	return list(ctx, c, "privileges on the instance "+instance, id, func(ctx context.Context, n *int32, size *uint32) ([]*rdb.Privilege, uint64, error) {
		r, err := c.databases.ListPrivileges(&rdb.ListPrivilegesRequest{Region: c.region, InstanceID: instance, Page: n, PageSize: size}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Privileges, uint64(r.TotalCount), nil
	})
}

// onPostgres makes a change of what is on an instance when it is ready, and
// again while it is busy: nothing else is taken meanwhile.
func (c *Cloud) onPostgres(ctx context.Context, name, id string, change func(context.Context) error) error {
	return c.steady(ctx, forPostgres, func(ctx context.Context) error {
		if _, err := c.postgresReady(ctx, name, id); err != nil {
			return err
		}
		return change(ctx)
	})
}

func (c *Cloud) applyPostgresDatabase(ctx context.Context, j job, want blueprint.PostgresDatabase) (plan.Observed, error) {
	instance, err := j.id(want.Postgres)
	if err != nil {
		return plan.Observed{}, err
	}
	release, err := c.alone(ctx)
	if err != nil {
		return plan.Observed{}, err
	}
	defer release()
	name := "the database instance " + instance
	if _, err := c.postgresReady(ctx, name, instance); err != nil {
		return plan.Observed{}, err
	}
	_, err = ensure(ctx, c, forPostgres,
		func(ctx context.Context) (*rdb.Database, bool, error) {
			all, err := c.listDatabases(ctx, instance)
			i := slices.IndexFunc(all, func(d *rdb.Database) bool { return d.Name == j.step.Name })
			if err != nil || i < 0 {
				return nil, false, err
			}
			return all[i], true, nil
		},
		func(ctx context.Context) (d *rdb.Database, err error) {
			err = c.onPostgres(ctx, name, instance, func(ctx context.Context) error {
				d, err = c.databases.CreateDatabase(&rdb.CreateDatabaseRequest{Region: c.region, InstanceID: instance, Name: j.step.Name}, scw.WithContext(ctx))
				return err
			})
			return d, err
		})
	if err != nil {
		return plan.Observed{}, err
	}
	return j.done(instance+"/databases/"+j.step.Name, "", present, want), nil
}

// userAs makes the user, or gives one that is there its password and its rank.
// known says that it has the password already.
func (c *Cloud) userAs(ctx context.Context, j job, instance string, admin, known bool, password func(context.Context) (vault.Secret, error)) error {
	var secret vault.Secret
	u, fresh, err := ensureNew(ctx, c, forPostgres,
		func(ctx context.Context) (*rdb.User, bool, error) { return c.findUser(ctx, instance, j.step.Name) },
		func(ctx context.Context) (u *rdb.User, err error) {
			if secret, err = password(ctx); err != nil {
				return nil, err
			}
			err = c.onPostgres(ctx, j.name(), instance, func(ctx context.Context) error {
				u, err = c.databases.CreateUser(&rdb.CreateUserRequest{Region: c.region, InstanceID: instance, Name: j.step.Name, Password: secret.Reveal(), IsAdmin: admin}, scw.WithContext(ctx))
				return err
			})
			return u, withhold(err, secret)
		})
	if err != nil || fresh && u.IsAdmin == admin || known && !fresh && u.IsAdmin == admin {
		return err
	}
	change := &rdb.UpdateUserRequest{Region: c.region, InstanceID: instance, Name: j.step.Name}
	if u.IsAdmin != admin {
		change.IsAdmin = &admin
	}
	if !known && !fresh {
		if secret, err = password(ctx); err != nil {
			return err
		}
		change.Password = scw.StringPtr(secret.Reveal())
	}
	return c.onPostgres(ctx, j.name(), instance, func(ctx context.Context) error {
		_, err := c.databases.UpdateUser(change, scw.WithContext(ctx))
		return withhold(err, secret)
	})
}

func (c *Cloud) findUser(ctx context.Context, instance, name string) (*rdb.User, bool, error) {
	all, err := c.listDatabaseUsers(ctx, instance)
	i := slices.IndexFunc(all, func(u *rdb.User) bool { return u.Name == name })
	if err != nil || i < 0 {
		return nil, false, err
	}
	return all[i], true, nil
}

// privilegesAs sets what a user may do in each database of the file, one after
// the other. Databases that the file does not name are left alone.
func (c *Cloud) privilegesAs(ctx context.Context, j job, instance string, want map[string]string) error {
	all, err := c.listPrivileges(ctx, instance)
	if err != nil {
		return err
	}
	have := map[string]string{}
	for _, p := range all {
		if p.UserName == j.step.Name {
			have[p.DatabaseName] = string(p.Permission)
		}
	}
	for _, database := range c.fileDatabases() {
		permission := orText(want[database], string(rdb.PermissionNone))
		if permission == orText(have[database], string(rdb.PermissionNone)) {
			continue
		}
		if err := c.onPostgres(ctx, j.name(), instance, func(ctx context.Context) error {
			_, err := c.databases.SetPrivilege(&rdb.SetPrivilegeRequest{Region: c.region, InstanceID: instance, DatabaseName: database, UserName: j.step.Name,
				Permission: rdb.Permission(permission)}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return fmt.Errorf("%s on the database %s: %w", permission, database, err)
		}
	}
	return nil
}

// fileDatabases are the databases that the file names.
func (c *Cloud) fileDatabases() []string {
	if p := c.estate.Services.Postgres; p != nil {
		return p.Databases
	}
	return nil
}

// unsettled lists the settings that differ from what is wanted, in order.
func unsettled(i *rdb.Instance, want map[string]string) []*rdb.InstanceSetting {
	have := settingsOf(i)
	var out []*rdb.InstanceSetting
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if value, set := have[name]; !set || value != want[name] {
			out = append(out, &rdb.InstanceSetting{Name: name, Value: want[name]})
		}
	}
	return out
}

func settingsOf(i *rdb.Instance) map[string]string {
	out := map[string]string{}
	for _, s := range i.Settings {
		if s != nil {
			out[s.Name] = s.Value
		}
	}
	return out
}
