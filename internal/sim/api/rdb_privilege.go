package api

import (
	"net/http"
	"slices"
	"time"
)

// rdbPrivilege is what a user may do in a database.
type rdbPrivilege struct {
	Database, User, Permission string
}

// rdbGrants is how long a change of privileges takes. Another one on the same
// instance meanwhile is refused, as the engine's catalogue is changed by both.
const rdbGrants = 225 * time.Millisecond

func (r *Region) rdbPrivilegeRoutes(one string) {
	r.route("GET "+one+"/privileges", http.StatusOK, listPrivileges)
	r.route("PUT "+one+"/privileges", http.StatusOK, setPrivilege)
}

func viewPrivilege(p rdbPrivilege) doc {
	return doc{"database_name": p.Database, "user_name": p.User, "permission": p.Permission}
}

// privilege is what a user has in a database: nothing unless something was set.
func (i *rdbInstance) privilege(database, user string) rdbPrivilege {
	for _, p := range i.Privileges {
		if p.Database == database && p.User == user {
			return p
		}
	}
	return rdbPrivilege{database, user, "none"}
}

func listPrivileges(c *call) (any, error) {
	i, err := c.runningRDB()
	if err != nil {
		return nil, err
	}
	var items []rdbPrivilege
	for _, d := range i.Databases {
		for _, u := range i.Users {
			if oneOf(d.Name, c.values("database_name")) && oneOf(u.Name, c.values("user_name")) {
				items = append(items, i.privilege(d.Name, u.Name))
			}
		}
	}
	key := func(p rdbPrivilege) string { return p.User + "\x00" + p.Database }
	if order := c.query("order_by"); order == "database_name_asc" || order == "database_name_desc" {
		key = func(p rdbPrivilege) string { return p.Database + "\x00" + p.User }
	}
	return named(c, "privileges", items, key, viewPrivilege)
}

func setPrivilege(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Database   string `json:"database_name"`
		User       string `json:"user_name"`
		Permission string `json:"permission"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"readonly", "readwrite", "all", "none"}, in.Permission) {
		return nil, invalid("permission", "constraint", in.Permission+" is not a valid value")
	}
	if i.database(in.Database) == nil {
		return nil, notFound("database", in.Database)
	}
	if i.user(in.User) == nil {
		return nil, notFound("user", in.User)
	}
	if i.PrivilegesBusy {
		return nil, untyped(http.StatusConflict, "Tuple concurrently updated")
	}
	i.PrivilegesBusy = true
	p, id := rdbPrivilege{in.Database, in.User, in.Permission}, i.ID
	c.takes(rdbGrants, func(c *call) (any, error) {
		i, ok := c.RDBInstances.get(id)
		if !ok {
			return nil, notFound("instance", id)
		}
		i.PrivilegesBusy = false
		d := i.database(p.Database)
		if d == nil || i.user(p.User) == nil { // it went away meanwhile
			return nil, untyped(http.StatusConflict, "Tuple concurrently updated")
		}
		d.Used = d.Used || p.Permission != "none"
		i.Privileges = append(slices.DeleteFunc(i.Privileges, func(o rdbPrivilege) bool { return o.Database == p.Database && o.User == p.User }), p)
		c.changeRDB(i)
		return viewPrivilege(p), nil
	})
	return nil, nil
}
