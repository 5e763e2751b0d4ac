package scaleway_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bastide/internal/estate"
	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// withPostgres gives an estate a database, an administrator and a user with few
// rights.
func withPostgres(e *estate.Estate) *estate.Estate {
	e.Services.Postgres = &estate.Postgres{
		Engine: "PostgreSQL-16", Type: "DB-DEV-S", Volume: estate.DatabaseVolume{Size: 10e9, IOPS: 5000},
		Backup: estate.DatabaseBackup{EveryHours: 12, KeepDays: 14}, Settings: map[string]string{"max_connections": "200"},
		Databases: []string{"app", "reports"},
		Users: []estate.DatabaseUser{{Name: "owner", Admin: true, PasswordVersion: 1},
			{Name: "app", PasswordVersion: 1, Privileges: map[string]string{"app": "readwrite", "reports": "none"}}},
	}
	return e
}

// postgresEstate is the smallest estate with a database.
func postgresEstate() *estate.Estate { return withPostgres(oneNode()) }

// engine notes the passwords that the region's database is given, by user. The
// region itself keeps only what an engine checks against.
type engine struct {
	next http.Handler
	mu   sync.Mutex
	has  map[string]string
	all  []string // every password that ever was on its way to the database
}

func (e *engine) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || !strings.HasPrefix(r.URL.Path, "/rdb/") {
		e.next.ServeHTTP(rw, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var in struct {
		Password, Name string
		User           string `json:"user_name"`
	}
	if json.Unmarshal(body, &in) != nil || in.Password == "" {
		e.next.ServeHTTP(rw, r)
		return
	}
	seen := &watched{ResponseWriter: rw}
	done := false
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all = append(e.all, in.Password)
		// An answer that was cut off may hide a change; the same password follows
		// if it does not.
		if !done || seen.status/100 == 2 && strings.HasPrefix(seen.Header().Get("Content-Type"), "application/json") {
			user := in.User
			if user == "" {
				user = in.Name
			}
			if r.Method == http.MethodPatch {
				user = r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
			}
			e.has[user] = in.Password
		}
	}()
	e.next.ServeHTTP(seen, r)
	done = true
}

type watched struct {
	http.ResponseWriter
	status int
}

func (w *watched) WriteHeader(status int) { w.status = status; w.ResponseWriter.WriteHeader(status) }
func (w *watched) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = 200
	}
	return w.ResponseWriter.Write(p)
}
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// postgresWorld is a region with an eye on the passwords.
type postgresWorld struct {
	*world
	engine *engine
}

func newPostgresWorld(t testing.TB, e *estate.Estate) *postgresWorld {
	return newPostgresWorldAt(t, e, speed)
}

func newPostgresWorldAt(t testing.TB, e *estate.Estate, speed float64) *postgresWorld {
	t.Helper()
	return newPostgresWorldIn(t, e, api.New(api.Options{Clock: clock.New(speed)}), speed)
}

func newPostgresWorldIn(t testing.TB, e *estate.Estate, region *api.Region, speed float64) *postgresWorld {
	t.Helper()
	t.Cleanup(region.Close)
	if err := region.Seed(api.Seed{Projects: []api.SeedProject{{ID: project}},
		Snapshots: []api.SeedSnapshot{{Project: project, Name: e.Talos.Snapshot, Zone: zone, SizeBytes: 10e9}}}); err != nil {
		t.Fatal(err)
	}
	eye := &engine{next: region, has: map[string]string{}}
	return &postgresWorld{serve(t, e, region, eye, speed), eye}
}

// rotate raises the password version of a user in the file.
func (w *postgresWorld) rotate(user string, to int) {
	for i := range w.estate.Services.Postgres.Users {
		if u := &w.estate.Services.Postgres.Users[i]; u.Name == user {
			u.PasswordVersion = to
		}
	}
}

func (w *postgresWorld) databases() *rdb.API    { return rdb.NewAPI(w.somebody()) }
func (w *postgresWorld) secretAPI() *secret.API { return secret.NewAPI(w.somebody()) }

func (w *postgresWorld) instanceID() string {
	w.Helper()
	return w.find("postgres/staging-postgres").CloudID
}

// instance is the instance once it rests.
func (w *postgresWorld) instance() *rdb.Instance {
	w.Helper()
	return must(w.databases().WaitForInstance(&rdb.WaitForInstanceRequest{InstanceID: w.instanceID(), RetryInterval: scw.TimeDurationPtr(time.Millisecond)}))(w)
}

func (w *postgresWorld) secretID(user string) string {
	w.Helper()
	return w.find("postgres-secret/" + user).CloudID
}

// versions are the versions of a user's secret, oldest first: "1 enabled".
func (w *postgresWorld) versions(user string) []string {
	w.Helper()
	r := must(w.secretAPI().ListSecretVersions(&secret.ListSecretVersionsRequest{SecretID: w.secretID(user)}, scw.WithAllPages()))(w)
	var out []string
	for _, v := range slices.Backward(r.Versions) {
		out = append(out, string(v.Status))
	}
	return out
}

// application is what an application reads that wants to log in.
func (w *postgresWorld) application(user string) secret.DatabaseCredentials {
	w.Helper()
	r := must(w.secretAPI().AccessSecretVersion(&secret.AccessSecretVersionRequest{SecretID: w.secretID(user), Revision: "latest_enabled"}))(w)
	var out secret.DatabaseCredentials
	if err := json.Unmarshal(r.Data, &out); err != nil {
		w.Fatal(err)
	}
	return out
}

// wantHalvesEqual checks that both halves of every password are the same and that
// the secret says how to reach the database.
func (w *postgresWorld) wantHalvesEqual() {
	w.Helper()
	i := w.instance()
	for _, u := range w.estate.Services.Postgres.Users {
		said := w.application(u.Name)
		w.engine.mu.Lock()
		has := w.engine.has[u.Name]
		w.engine.mu.Unlock()
		if said.Password == "" || said.Password != has {
			w.Errorf("the password of %s in the secret is not the one that the database has", u.Name)
		}
		if said.Username != u.Name || said.Engine != "postgres" || len(i.Endpoints) != 1 || net.JoinHostPort(said.Host, said.Port) != net.JoinHostPort(i.Endpoints[0].IP.String(), "5432") {
			w.Errorf("the secret of %s says %s at %s:%s", u.Name, said.Username, said.Host, said.Port)
		}
	}
}

// change is what the plan says about one attribute of a step, as "have -> want".
func (w *postgresWorld) change(step, attribute string) string {
	w.Helper()
	a := w.action(step)
	for _, c := range a.Changes {
		if c.Attribute == attribute {
			return c.Have + " -> " + c.Want
		}
	}
	return ""
}

func asText(t testing.TB, thing any) string {
	t.Helper()
	text, err := json.Marshal(thing)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
