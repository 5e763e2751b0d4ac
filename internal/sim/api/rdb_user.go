package api

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
)

// rdbUser is a user of an instance. Of the password only what the engine checks
// against is kept; see scramVerifier.
type rdbUser struct {
	Name     string
	Admin    bool
	Verifier string
}

// rdbDatabase is a logical database of an instance.
type rdbDatabase struct {
	Name string
	Made time.Time
	Used bool // rights were given in it, which takes some room
}

func (r *Region) rdbUserRoutes(one string) {
	r.route("GET "+one+"/users", http.StatusOK, listRDBUsers)
	r.route("POST "+one+"/users", http.StatusOK, createRDBUser)
	r.route("PATCH "+one+"/users/{name}", http.StatusOK, updateRDBUser)
	r.route("DELETE "+one+"/users/{name}", http.StatusNoContent, deleteRDBUser)
}

func (r *Region) rdbDatabaseRoutes(one string) {
	r.route("GET "+one+"/databases", http.StatusOK, listRDBDatabases)
	r.route("POST "+one+"/databases", http.StatusOK, createRDBDatabase)
	r.route("DELETE "+one+"/databases/{name}", http.StatusNoContent, deleteRDBDatabase)
}

func viewRDBUser(u rdbUser) doc { return doc{"name": u.Name, "is_admin": u.Admin} }

// viewRDBDatabase shows sizes as PostgreSQL has them: some megabytes of its own
// tables, and a little more for each set of rights.
func viewRDBDatabase(d rdbDatabase) doc {
	size := 7739059
	if d.Used {
		size += 24576
	}
	return doc{"name": d.Name, "owner": "_rdb_superadmin", "managed": true, "size": size}
}

func newRDBUser(name, password string, admin bool) (rdbUser, error) {
	if err := checkRDBName("name", name); err != nil {
		return rdbUser{}, err
	}
	if err := checkRDBPassword(password); err != nil {
		return rdbUser{}, err
	}
	return rdbUser{Name: name, Admin: admin, Verifier: scramVerifier(password)}, nil
}

// checkRDBName refuses names that the engine or the provider keeps to itself.
func checkRDBName(argument, name string) error {
	if name == "" {
		return invalid(argument, "required", "a name is needed")
	}
	if len(name) > 63 || strings.HasPrefix(name, "_rdb") || strings.HasPrefix(name, "pg_") || strings.ContainsAny(name, "/\x00\n\"") ||
		slices.Contains([]string{"postgres", "template0", "template1", "public", "none"}, name) {
		return invalid(argument, "constraint", "the name "+name+" cannot be used")
	}
	return nil
}

// checkRDBPassword is the provider's rule: 8 to 128 characters, among them a
// digit, a lower and an upper case letter and something else.
func checkRDBPassword(p string) error {
	var digit, lower, upper, special bool
	for _, r := range p {
		switch {
		case unicode.IsDigit(r):
			digit = true
		case unicode.IsLower(r):
			lower = true
		case unicode.IsUpper(r):
			upper = true
		default:
			special = true
		}
	}
	if n := len([]rune(p)); n < 8 || n > 128 || !digit || !lower || !upper || !special {
		return invalid("password", "constraint", "the password must have 8 to 128 characters with a digit, a lower case and an upper case letter and a special character")
	}
	return nil
}

// named is a listing of things that have a name and no identifier: part of a
// name, an order, pages.
func named[T any](c *call, key string, items []T, name func(T) string, view func(T) doc) (any, error) {
	items = slices.DeleteFunc(slices.Clone(items), func(v T) bool { return !strings.Contains(name(v), c.query("name")) })
	slices.SortStableFunc(items, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	if strings.HasSuffix(c.query("order_by"), "_desc") {
		slices.Reverse(items)
	}
	return doc{key: views(page(c, items, "page_size", 20), view), "total_count": len(items)}, nil
}

func (i *rdbInstance) user(name string) *rdbUser {
	for n := range i.Users {
		if i.Users[n].Name == name {
			return &i.Users[n]
		}
	}
	return nil
}

func (i *rdbInstance) database(name string) *rdbDatabase {
	for n := range i.Databases {
		if i.Databases[n].Name == name {
			return &i.Databases[n]
		}
	}
	return nil
}

func listRDBUsers(c *call) (any, error) {
	i, err := c.runningRDB()
	if err != nil {
		return nil, err
	}
	return named(c, "users", i.Users, func(u rdbUser) string { return u.Name }, viewRDBUser)
}

func createRDBUser(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Name     string `json:"name"`
		Password string `json:"password"`
		Admin    bool   `json:"is_admin"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	u, err := newRDBUser(in.Name, in.Password, in.Admin)
	if err != nil {
		return nil, err
	}
	if i.user(in.Name) != nil {
		return nil, conflict("user " + in.Name + " already exists")
	}
	i.Users = append(i.Users, u)
	c.changeRDB(i)
	return viewRDBUser(u), nil
}

// updateRDBUser changes a password or makes an administrator. Sessions that are
// open stay open.
func updateRDBUser(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	u := i.user(c.path("name"))
	if u == nil {
		return nil, notFound("user", c.path("name"))
	}
	var in struct {
		Password opt[string] `json:"password"`
		Admin    opt[bool]   `json:"is_admin"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Password.given && !in.Password.null {
		if err := checkRDBPassword(in.Password.value); err != nil {
			return nil, err
		}
		u.Verifier = scramVerifier(in.Password.value)
	}
	u.Admin = in.Admin.or(u.Admin)
	c.changeRDB(i)
	return viewRDBUser(*u), nil
}

// deleteRDBUser refuses while the user has rights in a database.
func deleteRDBUser(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	name := c.path("name")
	if i.user(name) == nil {
		return nil, notFound("user", name)
	}
	for _, p := range i.Privileges {
		if p.User == name && p.Permission != "none" {
			return nil, stillInUse("user " + name + " has privileges on database " + p.Database)
		}
	}
	i.Users = slices.DeleteFunc(i.Users, func(u rdbUser) bool { return u.Name == name })
	i.Privileges = slices.DeleteFunc(i.Privileges, func(p rdbPrivilege) bool { return p.User == name })
	c.changeRDB(i)
	return nil, nil
}

func listRDBDatabases(c *call) (any, error) {
	i, err := c.runningRDB()
	if err != nil {
		return nil, err
	}
	items := slices.Clone(i.Databases)
	if !oneOf("_rdb_superadmin", c.values("owner")) || !c.agrees("managed", true) {
		items = nil
	}
	return named(c, "databases", items, func(d rdbDatabase) string { return d.Name }, viewRDBDatabase)
}

func createRDBDatabase(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Name string `json:"name"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := checkRDBName("name", in.Name); err != nil {
		return nil, err
	}
	if i.database(in.Name) != nil {
		return nil, conflict("database " + in.Name + " already exists")
	}
	i.Databases = append(i.Databases, rdbDatabase{Name: in.Name, Made: now()})
	c.changeRDB(i)
	return doc{"name": in.Name, "owner": "", "managed": true, "size": 0}, nil // the owner shows from the first read on
}

func deleteRDBDatabase(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	name := c.path("name")
	if i.database(name) == nil {
		return nil, notFound("database", name)
	}
	i.Databases = slices.DeleteFunc(i.Databases, func(d rdbDatabase) bool { return d.Name == name })
	i.Privileges = slices.DeleteFunc(i.Privileges, func(p rdbPrivilege) bool { return p.Database == name })
	c.changeRDB(i)
	return nil, nil
}

// changeRDB notes a change of what is on an instance; the call is answered when
// the engine has it.
func (c *call) changeRDB(i *rdbInstance) {
	change(c.world, c.RDBInstances, i)
	c.applyRDB(i)
	c.awaits = allDatabases
}
