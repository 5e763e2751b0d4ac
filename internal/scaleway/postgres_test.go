package scaleway_test

import (
	"strings"
	"testing"

	"bastide/internal/estate"
)

// postgresEstate is a small private estate with a database, an administrator and
// a user with few rights.
func postgresEstate() *estate.Estate {
	e := privateEstate(1)
	e.ControlPlane.Count = 1
	e.Services.Postgres = &estate.Postgres{
		Engine: "PostgreSQL-16", Type: "DB-DEV-S", Volume: estate.DatabaseVolume{Size: 10e9, IOPS: 5000},
		Backup: estate.DatabaseBackup{EveryHours: 12, KeepDays: 14}, Settings: map[string]string{"max_connections": "200"},
		Databases: []string{"app", "reports"},
		Users: []estate.DatabaseUser{{Name: "owner", Admin: true, PasswordVersion: 1},
			{Name: "app", PasswordVersion: 1, Privileges: map[string]string{"app": "readwrite", "reports": "none"}}},
	}
	return e
}

// A database: made, found as wanted, left alone, taken down.
func TestPostgres(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgresEstate())
	w.mustUp()
	w.wantConverged()
	mark := len(w.region.Requests(0))
	w.mustUp()
	if n, which := w.writes(mark); n != 0 {
		t.Errorf("a second run wrote %d times: %s", n, strings.Join(which, "; "))
	}
	t.Logf("an inventory takes %d calls", len(w.region.Requests(mark)))
	if n := len(w.region.Requests(mark)); n > 40 {
		t.Errorf("an inventory took %d calls", n)
	}
	if err := w.destroy(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	w.wantNothingLeft()
}
