package postgres

import (
	"context"
	"fmt"
	"strings"

	"bastide/internal/sim/hardware"
)

// state is what an engine was made to hold so far.
type state struct {
	roles       map[string]hardware.DatabaseRole
	databases   map[string]bool
	grants      map[hardware.DatabaseGrant]bool
	certificate string
}

func newState() state {
	return state{roles: map[string]hardware.DatabaseRole{}, databases: map[string]bool{}, grants: map[hardware.DatabaseGrant]bool{}}
}

// become makes the engine hold what is wanted, and nothing else.
func (e *engine) become(ctx context.Context, d hardware.Database) error {
	for _, step := range []func(context.Context, hardware.Database) error{e.roles, e.databases, e.grants, e.dropRoles, e.renew} {
		if err := step(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) roles(ctx context.Context, d hardware.Database) error {
	for _, r := range d.Roles {
		old, known := e.have.roles[r.Name]
		if known && old == r {
			continue
		}
		if _, err := e.sql(ctx, "postgres", roleStatement(r, known)); err != nil {
			return err
		}
		e.have.roles[r.Name] = r
	}
	return nil
}

func roleStatement(r hardware.DatabaseRole, known bool) string {
	verb, rights := "CREATE", "NOCREATEDB NOCREATEROLE"
	if known {
		verb = "ALTER"
	}
	if r.Admin {
		rights = "CREATEDB CREATEROLE"
	}
	return fmt.Sprintf("%s ROLE %s LOGIN %s PASSWORD %s;\n", verb, name(r.Name), rights, text(r.Verifier))
}

func (e *engine) databases(ctx context.Context, d hardware.Database) error {
	wanted := map[string]bool{}
	for _, n := range d.Databases {
		wanted[n] = true
		if e.have.databases[n] {
			continue
		}
		statements := "CREATE DATABASE " + name(n) + ";\n"
		if n != "rdb" { // the one that comes with every instance is open to its users
			statements += "REVOKE ALL ON DATABASE " + name(n) + " FROM PUBLIC;\n"
		}
		if _, err := e.sql(ctx, "postgres", statements); err != nil {
			return err
		}
		e.have.databases[n] = true
	}
	for n := range e.have.databases {
		if wanted[n] {
			continue
		}
		if _, err := e.sql(ctx, "postgres", "DROP DATABASE IF EXISTS "+name(n)+" WITH (FORCE);\n"); err != nil {
			return err
		}
		delete(e.have.databases, n)
		for g := range e.have.grants {
			if g.Database == n {
				delete(e.have.grants, g)
			}
		}
	}
	return nil
}

func (e *engine) grants(ctx context.Context, d hardware.Database) error {
	wanted := map[hardware.DatabaseGrant]bool{}
	for _, g := range d.Grants {
		wanted[g] = true
		if e.have.grants[g] {
			continue
		}
		if _, err := e.sql(ctx, g.Database, grantStatements(g)); err != nil {
			return err
		}
		for old := range e.have.grants {
			if old.Database == g.Database && old.Role == g.Role {
				delete(e.have.grants, old)
			}
		}
		e.have.grants[g] = true
	}
	for g := range e.have.grants {
		if wanted[g] {
			continue
		}
		if _, err := e.sql(ctx, g.Database, grantStatements(hardware.DatabaseGrant{Database: g.Database, Role: g.Role})); err != nil {
			return err
		}
		delete(e.have.grants, g)
	}
	return nil
}

// grantStatements take all rights in a database from a role and give it those of
// a permission, on what there is now.
func grantStatements(g hardware.DatabaseGrant) string {
	db, role := name(g.Database), name(g.Role)
	var b strings.Builder
	change := func(verb, rights, on, preposition string) {
		fmt.Fprintf(&b, "%s %s ON %s %s %s;\n", verb, rights, on, preposition, role)
	}
	const tables, sequences = "ALL TABLES IN SCHEMA public", "ALL SEQUENCES IN SCHEMA public"
	for _, on := range []string{"DATABASE " + db, "SCHEMA public", tables, sequences} {
		change("REVOKE", "ALL", on, "FROM")
	}
	switch g.Permission {
	case "all":
		for _, on := range []string{"DATABASE " + db, "SCHEMA public", tables, sequences} {
			change("GRANT", "ALL", on, "TO")
		}
	case "readwrite", "readonly":
		change("GRANT", "CONNECT", "DATABASE "+db, "TO")
		change("GRANT", "USAGE", "SCHEMA public", "TO")
		if g.Permission == "readonly" {
			change("GRANT", "SELECT", tables, "TO")
		} else {
			change("GRANT", "SELECT, INSERT, UPDATE, DELETE", tables, "TO")
			change("GRANT", "USAGE, SELECT", sequences, "TO")
		}
	}
	return b.String()
}

// dropRoles takes away roles that are gone. What they owned becomes the
// provider's, in every database that there is.
func (e *engine) dropRoles(ctx context.Context, d hardware.Database) error {
	wanted := map[string]bool{}
	for _, r := range d.Roles {
		wanted[r.Name] = true
	}
	for n := range e.have.roles {
		if wanted[n] {
			continue
		}
		all, err := e.sql(ctx, "postgres", "SELECT datname FROM pg_database WHERE datallowconn;")
		if err != nil {
			return err
		}
		for db := range strings.Lines(all) {
			if _, err := e.sql(ctx, strings.TrimSuffix(db, "\n"), "REASSIGN OWNED BY "+name(n)+" TO "+superuser+"; DROP OWNED BY "+name(n)+";\n"); err != nil {
				return err
			}
		}
		if _, err := e.sql(ctx, "postgres", "DROP ROLE "+name(n)+";\n"); err != nil {
			return err
		}
		delete(e.have.roles, n)
	}
	return nil
}

// renew makes the engine show a new certificate.
func (e *engine) renew(ctx context.Context, d hardware.Database) error {
	if e.have.certificate == string(d.Certificate) {
		return nil
	}
	if err := e.certify(d); err != nil {
		return err
	}
	_, err := e.sql(ctx, "postgres", "SELECT pg_reload_conf();")
	if err == nil {
		e.have.certificate = string(d.Certificate)
	}
	return err
}

// inherit starts the engine with what is in another's databases. One that was
// never started has nothing in it.
func (s *server) inherit(d hardware.Database, from *server) error {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	from.work.Lock()
	defer from.work.Unlock()
	if from.engine == nil || !from.engine.runs() {
		return nil
	}
	s.mu.Lock()
	s.wanted = d
	s.mu.Unlock()
	if _, err := s.ready(ctx); err != nil {
		return err
	}
	s.work.Lock()
	defer s.work.Unlock()
	for db := range s.engine.have.databases {
		if !from.engine.have.databases[db] {
			continue
		}
		dump, err := from.engine.dump(ctx, db)
		if err != nil {
			return err
		}
		if _, err := s.engine.sql(ctx, db, dump); err != nil {
			return err
		}
	}
	return nil
}

// name and text quote for SQL.
func name(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
