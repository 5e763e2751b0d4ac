package scaleway_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"
	"bastide/internal/sim/fabric"
	"bastide/internal/sim/postgres"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
)

// loggingIn is a world whose database is a real PostgreSQL, reached from inside
// the private network.
type loggingIn struct {
	*postgresWorld
	packets *fabric.Fabric
}

func newLoggingIn(t *testing.T) loggingIn {
	t.Helper()
	if postgres.Find() == "" {
		t.Skip("PostgreSQL is not installed (package postgresql): whether a password logs in is not checked")
	}
	packets := fabric.New()
	servers := postgres.New(postgres.Options{Fabric: packets, Programs: postgres.Find()})
	t.Cleanup(func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	})
	region := api.New(api.Options{Clock: clock.New(speed), Databases: servers})
	return loggingIn{newPostgresWorldIn(t, postgresEstate(), region, speed), packets}
}

// login connects with what an application reads in its secret, or with another
// password, and runs a statement.
func (w loggingIn) login(said secret.DatabaseCredentials, statement string) error {
	w.Helper()
	i := w.instance()
	network := i.Endpoints[0].PrivateNetwork.PrivateNetworkID
	file := must(w.databases().GetInstanceCertificate(&rdb.GetInstanceCertificateRequest{InstanceID: i.ID}))(w)
	pem, err := io.ReadAll(file.Content)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		w.Fatalf("no certificate: %v", err)
	}
	c, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		w.Fatal(err)
	}
	c.Host, c.Port, c.User, c.Database, c.Password = said.Host, 5432, said.Username, said.Dbname, said.Password
	c.TLSConfig = &tls.Config{RootCAs: roots, ServerName: said.Host}
	c.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return w.packets.Dial(ctx, network, netip.MustParseAddr("172.16.0.2"), netip.MustParseAddr(said.Host), 5432)
	}
	conn, err := pgx.ConnectConfig(w.Context(), c)
	if err != nil {
		return err
	}
	defer conn.Close(w.Context())
	_, err = conn.Exec(w.Context(), statement, pgx.QueryExecModeSimpleProtocol)
	return err
}

func (w loggingIn) wantCode(err error, code string) {
	w.Helper()
	var told *pgconn.PgError
	if !errors.As(err, &told) || told.Code != code {
		w.Errorf("got %v, want PostgreSQL's error %s", err, code)
	}
}

// What the secret says logs in, with the rights that the file gives. After a
// rotation the new password logs in and the old one does not; a rotation that
// died before the database had the new one leaves the old one working.
func TestPasswordsLogIn(t *testing.T) {
	t.Parallel()
	w := newLoggingIn(t)
	w.mustUp()
	owner, app := w.application("owner"), w.application("app")
	for _, try := range []struct {
		as        secret.DatabaseCredentials
		statement string
	}{{owner, "CREATE TABLE things (n int)"}, {owner, "GRANT ALL ON things TO app"}, {app, "INSERT INTO things VALUES (1)"}} {
		if err := w.login(try.as, try.statement); err != nil {
			t.Fatalf("%s as %s: %v", try.statement, try.as.Username, err)
		}
	}
	elsewhere := app
	elsewhere.Dbname = "reports"
	w.wantCode(w.login(elsewhere, "SELECT 1"), "42501")

	w.rotate("app", 2)
	ctx, cancel := context.WithCancel(t.Context())
	kill, _ := killAt(2, true, cancel) // the new version is written and disabled
	if err := w.up(ctx, w.cloud(kill)); err == nil {
		t.Fatal("the run was not killed")
	}
	cancel()
	w.served.drain()
	if w.application("app") != app {
		t.Error("an application reads a password that the database does not have")
	}
	if err := w.login(w.application("app"), "SELECT n FROM things"); err != nil {
		t.Errorf("after a run that died early: %v", err)
	}
	w.mustUp()
	if err := w.login(w.application("app"), "SELECT n FROM things"); err != nil {
		t.Errorf("with the new password: %v", err)
	}
	w.wantCode(w.login(app, "SELECT 1"), "28P01")
	if err := w.login(owner, "SELECT 1"); err != nil {
		t.Errorf("the other user: %v", err)
	}
}
