package scaleway

import (
	"fmt"
	"slices"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/estate"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
)

// leftover is what there is to say of a thing that the file asks for no more and
// that bastide never deletes by itself: what it still does, and what removes it.
type leftover struct{ why, fix string }

// ofInstance is the database that each instance is made with.
const ofInstance = "rdb"

// leftDatabases brings the databases that the file does not name, so that nobody
// takes one for gone. Nothing tells those that bastide made for an earlier file
// from those that a person made through Scaleway; what an application made by SQL
// is its own affair, and Scaleway calls it not managed.
func (r *reader) leftDatabases(i *postgresFound, step string) {
	if r.estate.Services.Postgres == nil {
		return // the instance itself is not asked for, which says it all
	}
	for _, d := range i.databases {
		if !d.Managed || d.Name == ofInstance || slices.Contains(r.fileDatabases(), d.Name) {
			continue
		}
		why := "the file does not name it; it stays with its data"
		if who := reaching(i, d.Name); who != "" {
			why += ", and " + who + " may use it"
		}
		r.add(Item{Kind: blueprint.KindPostgresDatabase, Step: string(blueprint.KindPostgresDatabase) + "/" + d.Name, Name: d.Name, CloudID: i.ID + "/databases/" + d.Name,
			Settled: true, Created: moment(i.CreatedAt), Spec: blueprint.PostgresDatabase{Postgres: step}, on: i.ID, left: leftover{why,
				fmt.Sprintf("name it in services.postgres.databases, or, without its data: scw rdb database delete instance-id=%s name=%s region=%s", i.ID, d.Name, i.Region)}})
	}
}

// reaching are the users that have privileges in a database.
func reaching(i *postgresFound, database string) string {
	var who []string
	for _, p := range i.privileges {
		if p.DatabaseName == database && p.Permission != rdb.PermissionNone {
			who = append(who, fmt.Sprintf("%s (%s)", p.UserName, p.Permission))
		}
	}
	slices.Sort(who)
	return strings.Join(who, " and ")
}

// leftUser is what a user can still do that bastide made and the file does not
// name. Scaleway deletes none that has privileges.
func (r *reader) leftUser(i *postgresFound, name string) leftover {
	if r.estate.Services.Postgres == nil || r.names(name) || !slices.ContainsFunc(i.users, func(u *rdb.User) bool { return u.Name == name }) {
		return leftover{}
	}
	var may, fix []string
	for _, v := range i.privileges {
		if v.UserName != name || v.Permission == rdb.PermissionNone {
			continue
		}
		may = append(may, fmt.Sprintf("%s (%s)", v.DatabaseName, v.Permission))
		fix = append(fix, fmt.Sprintf("scw rdb privilege set instance-id=%s database-name=%s user-name=%s permission=none region=%s", i.ID, v.DatabaseName, name, i.Region))
	}
	slices.Sort(may)
	why := "the file does not name it; it can still log in"
	if len(may) > 0 {
		why += ", and use " + strings.Join(may, " and ")
	}
	fix = append(fix, fmt.Sprintf("scw rdb user delete instance-id=%s name=%s region=%s", i.ID, name, i.Region))
	return leftover{why, strings.Join(fix, " && ")}
}

// leftPassword is the place of a password whose user the file does not name.
func (r *reader) leftPassword(step, id string) leftover {
	_, user, _ := strings.Cut(step, "/")
	if r.estate.Services.Postgres == nil || r.names(user) {
		return leftover{}
	}
	return leftover{"it holds the password of " + user + ", whom the file does not name",
		fmt.Sprintf("when that user is gone: scw secret secret delete %s region=%s", id, r.region)}
}

// names says whether the file names a user of the database.
func (r *reader) names(user string) bool {
	p := r.estate.Services.Postgres
	return p != nil && slices.ContainsFunc(p.Users, func(u estate.DatabaseUser) bool { return u.Name == user })
}

// unwanted says why a thing is a stray that the file does not ask for, and what a
// person does about it where there is more to say.
func (it Item) unwanted() string {
	if it.left.why == "" {
		return "the file does not ask for it"
	}
	return it.left.why + ". " + it.left.fix
}
