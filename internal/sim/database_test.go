package sim_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/crypto/ssh"

	"bastide/internal/sim"
	"bastide/internal/sim/postgres"
)

const (
	project  = "11111111-1111-4111-8111-111111111111"
	token    = "22222222-2222-4222-8222-222222222222"
	first    = "First-passw0rd"
	second   = "Sec0nd-passw0rd"
	networks = "/vpc/v2/regions/fr-par/private-networks"
	rdb      = "/rdb/v1/regions/fr-par/instances"
	gateways = "/vpc-gw/v2/zones/fr-par-1"
)

type body = map[string]any

// estate is a region with a private network, a bastion and a database in it.
type estate struct {
	*testing.T
	url      string
	database string // its path
	address  string // inside the network
	bastion  *ssh.Client
	roots    *x509.CertPool
}

// A user that the API made logs in through the bastion, and what the API changes
// holds in the engine as soon as it has answered.
func TestDatabaseUsersLogIn(t *testing.T) {
	e := newEstate(t)
	e.do("POST", e.database+"/users", body{"name": "app", "password": first})
	e.do("POST", e.database+"/databases", body{"name": "app"})

	e.refused("app", "app", first, "42501") // no privileges yet
	e.do("PUT", e.database+"/privileges", body{"database_name": "app", "user_name": "app", "permission": "all"})
	e.execute("app", "app", first, "CREATE TABLE things (n int); INSERT INTO things VALUES (1)")

	e.do("POST", e.database+"/users", body{"name": "reader", "password": first})
	e.do("PUT", e.database+"/privileges", body{"database_name": "app", "user_name": "reader", "permission": "readonly"})
	e.refused("reader", "app", "Wr0ng-password", "28P01")
	if err := e.try("reader", "app", first, "INSERT INTO things VALUES (2)"); code(err) != "42501" {
		t.Errorf("a reader writes: %v", err)
	}

	e.do("PATCH", e.database+"/users/app", body{"password": second})
	e.execute("app", "app", second, "SELECT n FROM things")
	e.refused("app", "app", first, "28P01")

	e.do("PUT", e.database+"/privileges", body{"database_name": "app", "user_name": "app", "permission": "none"})
	e.refused("app", "app", second, "42501")
	e.do("DELETE", e.database+"/users/app", nil)
	e.refused("app", "app", second, "28P01")
	e.refused("_rdb_superadmin", "rdb", "", "28000")

	e.do("PUT", e.database+"/privileges", body{"database_name": "app", "user_name": "reader", "permission": "none"})
	e.do("DELETE", e.database+"/databases/app", nil)
	if err := e.try("admin", "app", first, "SELECT 1"); code(err) != "3D000" {
		t.Errorf("a database that is gone: %v", err)
	}
}

// After an upgrade to the next major version the old address leads to the new
// instance, with its users and what was in it.
func TestDatabaseUpgrade(t *testing.T) {
	e := newEstate(t)
	e.do("POST", e.database+"/users", body{"name": "app", "password": first})
	e.do("POST", e.database+"/databases", body{"name": "app"})
	e.do("PUT", e.database+"/privileges", body{"database_name": "app", "user_name": "app", "permission": "all"})
	e.execute("app", "app", first, "CREATE TABLE things (n int PRIMARY KEY); INSERT INTO things VALUES (1)")
	version := e.do("GET", e.database, nil)["upgradable_version"].([]any)[0].(body)["id"]
	old := e.database
	e.database = rdb + "/" + e.do("POST", old+"/upgrade", body{"major_upgrade_workflow": body{"upgradable_version_id": version, "with_endpoints": true}})["id"].(string)
	e.untilReady()
	e.do("DELETE", old, nil)
	e.until(old, func(status int, _ body) bool { return status == http.StatusNotFound })
	e.roots = e.certificate()
	e.do("PATCH", e.database+"/users/app", body{"password": second}) // is answered when the engine is there
	e.execute("app", "app", second, "INSERT INTO things VALUES (2)")
	if err := e.try("app", "app", second, "INSERT INTO things VALUES (1)"); code(err) != "23505" {
		t.Errorf("what was in the table is not there: %v", err)
	}
}

// A renewed certificate is what the engine shows, and the old one is not.
func TestDatabaseCertificate(t *testing.T) {
	e := newEstate(t)
	e.execute("admin", "rdb", first, "SELECT 1")
	old := e.roots
	e.do("POST", e.database+"/renew-certificate", body{})
	e.roots = e.certificate()
	e.execute("admin", "rdb", first, "SELECT 1")
	e.roots = old
	var unknown x509.UnknownAuthorityError
	if err := e.try("admin", "rdb", first, "SELECT 1"); !errors.As(err, &unknown) {
		t.Errorf("with the old certificate: %v", err)
	}
}

// A public endpoint can be dialled from outside, if the access list has anybody
// in it, and with the instance everything that listened is gone.
func TestDatabaseInPublic(t *testing.T) {
	e := newEstate(t)
	e.do("POST", e.database+"/endpoints", body{"endpoint_spec": body{"load_balancer": body{}}})
	at := e.untilReady()["endpoint"].(body)
	public := fmt.Sprintf("%v:%v", at["ip"], at["port"])
	direct := func() error {
		return e.connect("admin", "rdb", first, "SELECT 1", func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", public)
		}, &tls.Config{InsecureSkipVerify: true}) // the certificate is older than the endpoint
	}
	err := direct()
	for limit := time.Now().Add(time.Minute); errors.Is(err, syscall.ECONNREFUSED) && time.Now().Before(limit); {
		err = direct() // the API may be a moment ahead of the listener
	}
	if err != nil {
		t.Fatalf("a public endpoint: %v", err)
	}
	e.do("PUT", e.database+"/acls", body{"rules": []body{}})
	e.untilReady()
	if err := direct(); err == nil {
		t.Error("an access list without rules lets somebody in")
	}
	e.do("DELETE", e.database, nil)
	e.until(e.database, func(status int, _ body) bool { return status == http.StatusNotFound })
	if c, err := net.Dial("tcp", public); err == nil {
		c.Close()
		t.Errorf("something still listens at %s", public)
	}
	if err := e.try("admin", "rdb", first, "SELECT 1"); err == nil {
		t.Error("a deleted database lets somebody in")
	}
}

func newEstate(t *testing.T) *estate {
	if postgres.Find() == "" {
		t.Skip("PostgreSQL is not installed (package postgresql): whether users can log in is not checked")
	}
	dir := t.TempDir()
	r, err := sim.Start(sim.Options{Listen: "127.0.0.1:0", Dir: dir, Speed: 1000, Access: sim.Access{Project: project}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	e := &estate{T: t, url: r.Access.URL}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	e.do("POST", "/iam/v1alpha1/ssh-keys", body{"name": "k", "project_id": project, "public_key": string(ssh.MarshalAuthorizedKey(signer.PublicKey()))})
	network := e.do("POST", networks, body{"name": "n", "project_id": project, "subnets": []string{"172.16.0.0/22"}})["id"]
	i := e.do("POST", rdb, body{"name": "db", "project_id": project, "engine": "PostgreSQL-16", "node_type": "DB-DEV-S", "user_name": "admin", "password": first,
		"init_endpoints": []body{{"private_network": body{"private_network_id": network, "ipam_config": body{}}}}})
	e.database = rdb + "/" + i["id"].(string)
	e.address = fmt.Sprint(i["endpoints"].([]any)[0].(body)["ip"], ":5432")
	gw := e.do("POST", gateways+"/gateways", body{"name": "g", "project_id": project, "type": "VPC-GW-S", "enable_bastion": true})
	at := gateways + "/gateways/" + gw["id"].(string)
	e.untilStatus(at, "running")
	gn := e.do("POST", gateways+"/gateway-networks", body{"gateway_id": gw["id"], "private_network_id": network})
	e.untilStatus(gateways+"/gateway-networks/"+gn["id"].(string), "ready")
	e.untilStatus(at, "running")
	e.untilReady()
	e.roots = e.certificate()
	e.bastion = e.login(fmt.Sprint(gw["ipv4"].(body)["address"], ":61000"), signer)
	return e
}

// login tries again while the bastion takes up its configuration.
func (e *estate) login(at string, key ssh.Signer) *ssh.Client {
	e.Helper()
	for {
		c, err := ssh.Dial("tcp", at, &ssh.ClientConfig{User: "bastion", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
		if err == nil {
			e.Cleanup(func() { c.Close() })
			return c
		}
		select {
		case <-e.Context().Done():
			e.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (e *estate) certificate() *x509.CertPool {
	e.Helper()
	content, err := base64.StdEncoding.DecodeString(fmt.Sprint(e.do("GET", e.database+"/certificate", nil)["content"]))
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(content) {
		e.Fatalf("no certificate: %v %s", err, content)
	}
	return pool
}

// try logs in through the bastion, over TLS with the certificate that the API
// gives, and runs a statement.
func (e *estate) try(user, database, password, statement string) error {
	host, _, _ := net.SplitHostPort(e.address)
	return e.connect(user, database, password, statement, func(ctx context.Context) (net.Conn, error) {
		return e.bastion.DialContext(ctx, "tcp", e.address)
	}, &tls.Config{RootCAs: e.roots, ServerName: host})
}

func (e *estate) connect(user, database, password, statement string, dial func(context.Context) (net.Conn, error), secure *tls.Config) error {
	c, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		e.Fatal(err)
	}
	c.Host, c.Port, c.User, c.Database, c.Password, c.TLSConfig = "database.example", 5432, user, database, password, secure
	c.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"192.0.2.1"}, nil }
	c.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	conn, err := pgx.ConnectConfig(e.Context(), c)
	if err != nil {
		return err
	}
	defer conn.Close(e.Context())
	_, err = conn.Exec(e.Context(), statement, pgx.QueryExecModeSimpleProtocol)
	return err
}

func (e *estate) execute(user, database, password, statement string) {
	e.Helper()
	if err := e.try(user, database, password, statement); err != nil {
		e.Fatalf("%s in %s, %q: %v", user, database, statement, err)
	}
}

// refused logs in, which must fail with a code of PostgreSQL's.
func (e *estate) refused(user, database, password, want string) {
	e.Helper()
	if err := e.try(user, database, password, "SELECT 1"); code(err) != want {
		e.Errorf("%s in %s: %v, want error %s", user, database, err, want)
	}
}

func code(err error) string {
	var told *pgconn.PgError
	if errors.As(err, &told) {
		return told.Code
	}
	return ""
}

func (e *estate) call(method, path string, in any) (int, body) {
	e.Helper()
	var payload io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			e.Fatal(err)
		}
		payload = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(e.Context(), method, e.url+path, payload)
	if err != nil {
		e.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		e.Fatal(err)
	}
	defer res.Body.Close()
	out := body{}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil && !errors.Is(err, io.EOF) {
		e.Fatal(err)
	}
	return res.StatusCode, out
}

func (e *estate) do(method, path string, in any) body {
	e.Helper()
	status, out := e.call(method, path, in)
	if status >= 300 {
		e.Fatalf("%s %s: %d %v", method, path, status, out)
	}
	return out
}

func (e *estate) until(path string, wanted func(int, body) bool) body {
	e.Helper()
	for {
		status, b := e.call("GET", path, nil)
		if wanted(status, b) {
			return b
		}
		select {
		case <-e.Context().Done():
			e.Fatalf("GET %s: still %d %v", path, status, b)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (e *estate) untilStatus(path, status string) body {
	e.Helper()
	return e.until(path, func(_ int, b body) bool { return strings.EqualFold(fmt.Sprint(b["status"]), status) })
}

func (e *estate) untilReady() body { e.Helper(); return e.untilStatus(e.database, "ready") }
