package scaleway_test

import (
	"slices"
	"strings"
	"testing"

	"bastide/internal/estate"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
)

// strays are what a plan lists as not in the file, by kind and name.
func (w *world) strays() map[string]string {
	w.Helper()
	_, p, _, err := w.plan(w.Context(), w.cloud())
	if err != nil {
		w.Fatal(err)
	}
	out := map[string]string{}
	for _, s := range p.Strays {
		out[s.Step] = s.Why
	}
	return out
}

// A database and a user that were taken out of the file are not gone, and nobody
// is let believe it: the plan and doctor say that they are there, who still
// reaches what, and how they are removed. up touches neither.
func TestWhatTheFileNoLongerNamesIsTold(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	id := w.instance().ID
	p := w.estate.Services.Postgres
	p.Databases = []string{"app"}
	p.Users = p.Users[:1]
	mark := len(w.region.Requests(0))
	w.mustUp()
	if n, which := w.writes(mark); n > 0 {
		t.Errorf("up made %d writes: %s", n, which)
	}
	strays := w.strays()
	want := map[string][]string{
		"postgres-database/reports": {"the file does not name it; it stays with its data, and owner (all) may use it", "name it in services.postgres.databases", "scw rdb database delete instance-id=" + id + " name=reports region=fr-par"},
		"postgres-user/app":         {"it can still log in, and use app (readwrite)", "scw rdb privilege set instance-id=" + id + " database-name=app user-name=app permission=none region=fr-par && scw rdb user delete instance-id=" + id + " name=app region=fr-par"},
		"postgres-secret/app":       {"it holds the password of app, whom the file does not name", "scw secret secret delete "},
	}
	found := w.examine()
	for step, words := range want {
		for _, word := range words {
			if !strings.Contains(strays[step], word) {
				t.Errorf("%s: %q lacks %q", step, strays[step], word)
			}
		}
		kind, name, _ := strings.Cut(step, "/")
		if !slices.ContainsFunc(found["unexplained-marks"], func(what string) bool { return strings.HasPrefix(what, kind+" ") && strings.Contains(what, name) }) {
			t.Errorf("doctor does not know %s: %q", step, found["unexplained-marks"])
		}
	}
	if len(strays) != len(want) {
		t.Errorf("strays %q", strays)
	}

	// Named again, they are what they were.
	w.estate.Services = withPostgres(&estate.Estate{}).Services
	w.wantConverged()
}

// What others made is told apart where Scaleway tells it: a database that a person
// made through Scaleway may be taken into the file, one that an application made
// by SQL, or the one that every instance has, is nobody's business here.
func TestDatabasesOfOthers(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	must(rdb.NewAPI(w.somebody()).CreateDatabase(&rdb.CreateDatabaseRequest{Region: "fr-par", InstanceID: w.instance().ID, Name: "byhand"}))(t)
	if s := w.strays(); len(s) != 1 || !strings.Contains(s["postgres-database/byhand"], "name it in services.postgres.databases") {
		t.Errorf("strays %q", s)
	}
	w.estate.Services.Postgres.Databases = append(w.estate.Services.Postgres.Databases, "byhand")
	w.mustUp()
	w.wantConverged()
}
